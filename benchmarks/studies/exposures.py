"""What it costs to count outcomes by exposure instead of attributing them; no servers.

    python -m benchmarks.studies.exposures                 about a minute of one core

The same log, half of whose users are in no arm, is read in turn by an engine that attributes
outcomes and by one that counts them from the first exposure on, with a pass over users every four
chunks. Prints CPU seconds and their ratio; the users of each arm must be the log's own.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from collections.abc import Iterator
from random import Random

import msgspec

from streamer.query.experiments import stored_experiments
from streamer.settings.durations import DAY_MS, day_of
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.snapshot import view_of
from tests.support.engines import Engines, LogChunk, LogRecord

START = datetime.date(2025, 6, 2)
START_MS = day_of(START) * DAY_MS
USERS = 20_000
CHUNKS = 100
SIZES = {"impressions": 4000, "clicks": 400}


def settings_of(outcomes: str) -> Settings:
    """An experiment of two arms with the given ``outcomes``."""
    experiment = {
        "name": "e",
        "dimension": "variant",
        "control": "A",
        "split": {"A": 1, "B": 1},
        "start": START,
        "outcomes": outcomes,
        "metrics": [{"name": "ctr_ratio"}, {"name": "conversion_value_per_user"}],
    }
    return parse({"experiments": [experiment]})


def chunks() -> Iterator[LogChunk]:
    """A minute each; users with odd numbers are in an arm."""
    dice, offsets = Random(1), dict.fromkeys(SIZES, 0)
    for minute in range(CHUNKS):
        for kind, size in SIZES.items():
            records = []
            for i in range(size):
                ts, user = START_MS + 60_000 * minute + 15 * i, dice.randrange(USERS)
                event = {"ts": ts, "user_id": f"u{user}", "item_id": f"i{dice.randrange(500)}"}
                if kind == "impressions" and user % 2:
                    event["variant"] = "AB"[user // 2 % 2]
                value = msgspec.json.encode(event)
                records.append(LogRecord(kind, 0, offsets[kind], ts, value))
                offsets[kind] += 1
            yield LogChunk(kind, 0, records)


def seconds(outcomes: str, log: list[LogChunk]) -> float:
    """CPU seconds for the log."""
    settings = settings_of(outcomes)
    engines = Engines(settings, 1)
    begun = time.process_time()
    for number, chunk in enumerate(log, 1):
        engines.feed(chunk)
        if not number % 4:
            engines.partitions[0].refresh_user_sums()
    took = time.process_time() - begun
    views = [view_of(engines.partitions[0])]
    found = stored_experiments(settings, engines.catalogue.experiment_measures, views)["e"].read()
    if found.users != (expected := shown(log)):
        raise AssertionError(f"{outcomes}: users {found.users}, in the log {expected}")
    return took


def shown(log: list[LogChunk]) -> dict[str, int]:
    """The users of each arm."""
    users: dict[str, set[str]] = {"A": set(), "B": set()}
    for chunk in log:
        for record in chunk.records:
            event = msgspec.json.decode(record.value or b"")
            if "variant" in event:
                users[event["variant"]].add(event["user_id"])
    return {arm: len(some) for arm, some in users.items()}


def main(rounds: int) -> None:
    log = list(chunks())
    pairs = [(seconds("attributed", log), seconds("exposed", log)) for _ in range(rounds)]
    attributed, exposed = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    events = CHUNKS * sum(SIZES.values())
    print(f"{events:,} events: attributed {attributed:.2f} s, exposed {exposed:.2f} s, {ratio:.2f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--rounds", type=int, default=3)
    main(options.parse_args().rounds)
