"""What experiments cost: processor time and memory of one partition, by how many there are.

    python -m benchmarks.experiments --impressions 500000

Slates of ten of 100,000 users at 50,000 events a second, 8 % clicked, some bought. Every event has
the arms of the ten experiments that its user is in, of a hundred; the cases read none, one or all
of them, each of four metrics. Each case runs in a process of its own, with commits and a recovery.
A case whose users by arm are not what was generated is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from benchmarks.endless import Run, rss_mb
from benchmarks.measure import program
from benchmarks.people import take_over
from streamer.query.experiments import stored_experiments
from streamer.settings.durations import date_of
from streamer.settings.load import parse
from streamer.sources.synthetic import KindLine
from streamer.state.snapshot import view_of

START_MS = 1_760_000_000_000
USERS = 100_000
MOST, OF_A_USER = 100, 10
RATE = 50_000
A_BATCH = 20_000
COMMIT_EVERY = 100_000
METRICS = ("ctr_ratio", "clicks_per_user", "conversions_per_user", "conversion_value_per_user")
CASES = {"none": 0, "one": 1, "ten": 10, "a hundred": MOST}


def arms_of(user: int) -> dict[str, str]:
    """The experiments of a user, and the arm in each."""
    dice = random.Random(user)
    return {f"e{n}": "AB"[dice.randrange(2)] for n in sorted(dice.sample(range(MOST), OF_A_USER))}


def lines(impressions: int) -> Iterator[tuple[KindLine, int]]:
    """Slates, clicks and orders, in order, with their user."""
    dice = random.Random(1)
    arms = [json.dumps(arms_of(user), separators=(",", ":")) for user in range(USERS)]
    for slate in range(impressions // 10):
        user = dice.randrange(USERS)
        ts = int(START_MS + slate * 10_900 / RATE)
        ids = f'"user_id":"u{user}","request_id":"r{slate}","experiments":{arms[user]}'
        items = [f"i{dice.randrange(5_000)}" for _ in range(10)]
        yield _line("impressions", f'"ts":{ts},{ids},"items":{json.dumps(items)}'), user
        for item in items:
            if dice.random() < 0.08:
                yield _line("clicks", f'"ts":{ts + 200},{ids},"item_id":"{item}"'), user
            if dice.random() < 0.01:
                bought = f'"item_id":"{item}","value":{dice.randrange(1, 90)}'
                yield _line("conversions", f'"ts":{ts + 400},{ids},{bought}'), user


def _line(kind: str, fields: str) -> KindLine:
    return kind, f'{{"type":"{kind[:-1]}",{fields}}}'.encode()


def settings_of(experiments: int) -> dict[str, Any]:
    """Settings with so many experiments."""
    each = [
        {
            "name": f"e{n}",
            "control": "A",
            "split": {"A": 1, "B": 1},
            "start": date_of(START_MS // 86_400_000),
            "metrics": [{"name": name} for name in METRICS],
        }
        for n in range(experiments)
    ]
    return {"experiments": each, "experiments_defaults": {"arm": "experiments"}}


async def measure(name: str, impressions: int) -> dict[str, object]:
    """Figures of one case."""
    run = Run(parse(settings_of(CASES[name])))
    cpu_s = 0.0
    events = since_commit = 0
    users: set[int] = set()
    log = lines(impressions)
    while batch := list(islice(log, A_BATCH)):
        users.update(user for _, user in batch)
        some = [line for line, _ in batch]
        begun = time.process_time()
        run.feed(some)
        cpu_s += time.process_time() - begun
        shown = sum(10 if kind == "impressions" else 1 for kind, _ in some)
        events, since_commit = events + shown, since_commit + shown
        if since_commit >= COMMIT_EVERY:
            since_commit = 0
            begun = time.process_time()
            await run.commit()
            cpu_s += time.process_time() - begun
    begun = time.process_time()
    run.partition.refresh_user_sums()
    refresh_s = time.process_time() - begun
    await run.commit()
    memory_mb, sizes = rss_mb(), run.partition.core.sizes()
    recovered, load_seconds, _ = await take_over(run)
    measures = run.catalogue.experiment_measures
    views = [view_of(recovered)]
    begun = time.process_time()
    found = stored_experiments(run.settings, measures, views)
    readouts = {name: stored.read() for name, stored in found.items()}
    read_s = time.process_time() - begun
    return {
        "cpu_us_an_event": round(1e6 * cpu_s / events, 2),
        "refresh_s": round(refresh_s, 2),
        "worker_mb": round(memory_mb),
        "bytes_an_exposure": round(sizes["exposures"] / max(1, sizes["exposures_rows"])),
        "bytes_a_user_besides": round(sizes["user_days"] / len(users)),
        "stored_mb": round(sum(map(len, run.store.held[0].values())) / 1e6, 1),
        "recovery_s": round(load_seconds, 2),
        "read_s": round(read_s, 2),
        "right": all(dict(readouts[n].users) == its for n, its in expected(users, found).items()),
    }


def expected(users: Iterable[int], experiments: Iterable[str]) -> dict[str, dict[str, int]]:
    """Experiment → users by arm, as they were generated."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in experiments}
    for user in users:
        for name, arm in arms_of(user).items():
            if name in counts:
                counts[name][arm] += 1
    return {name: dict(its) for name, its in counts.items()}


def main(arguments: argparse.Namespace) -> int:
    if arguments.case:
        print(json.dumps(asyncio.run(measure(arguments.case, arguments.impressions))))
        return 0
    found = {
        name: program(
            "benchmarks.experiments", f"--case={name}", f"--impressions={arguments.impressions}"
        )
        for name in CASES
    }
    one, many = found["one"], found["a hundred"]
    ratio = float(many["cpu_us_an_event"]) / float(one["cpu_us_an_event"])
    print(json.dumps({**found, "a hundred to one": round(ratio, 2)}))
    return 0 if all(case["right"] for case in found.values()) else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--impressions", type=int, default=500_000)
    options.add_argument("--case", choices=CASES, help="one case, in this process")
    sys.exit(main(options.parse_args()))
