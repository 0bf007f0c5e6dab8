"""What a replay costs of the same log as NDJSON, as Parquet, as a pyarrow table and as mappings; no
servers.

    python -m benchmarks.tables                    a minute of one core

Each form is read, stamped and counted in turn; the median ratio to NDJSON is printed, with the
share of making the lines, and all readings have to be equal.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.json
import pyarrow.parquet

from streamer.settings.model import Settings
from streamer.sources.files import FileSource, Readable, opened
from streamer.sources.replay import Replay
from streamer.sources.synthetic import SyntheticTraffic, generate

T = TypeVar("T")


def forms_of(events: int, folder: Path) -> dict[str, Readable]:
    """The same events in all forms."""
    lines = [raw for _, raw in generate(SyntheticTraffic(), events)]
    rows = [json.loads(line) for line in lines]
    ndjson, parquet = folder / "log.ndjson", folder / "log.parquet"
    ndjson.write_bytes(b"\n".join(lines))
    table = pyarrow.json.read_json(ndjson)
    pyarrow.parquet.write_table(table, parquet)
    return {"ndjson": ndjson, "parquet": parquet, "table": table, "mappings": rows}


def cpu_seconds(run: Callable[[Readable], T], form: Readable) -> tuple[float, T]:
    """CPU seconds of a call, and what it gives."""
    begun = time.process_time()
    found = run(form)
    return time.process_time() - begun, found


def lines_of(form: Readable) -> int:
    """How many lines there are."""
    return sum(map(len, opened(form, Settings())))


def counted(form: Readable) -> Replay:
    replay = Replay(Settings())
    for batch in FileSource([form], replay.settings):
        replay.feed(batch)
    replay.finish()
    return replay


def readings_of(replay: Replay) -> dict[Any, float]:
    found = replay.readout().readings
    return {(r.name, frozenset(r.labels.items())): r.value for r in found}


def main(events: int, rounds: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        forms = forms_of(events, Path(folder))
        took: dict[str, list[float]] = {name: [] for name in forms}
        reading: dict[str, list[float]] = {name: [] for name in forms}
        found = []
        for _, (name, form) in itertools.product(range(rounds), forms.items()):
            reading[name].append(cpu_seconds(lines_of, form)[0])
            seconds, replay = cpu_seconds(counted, form)
            took[name].append(seconds)
            found.append(readings_of(replay))
    right = all(each == found[0] and len(each) > 100 for each in found)
    ratios: dict[str, float] = {}
    for name, spent in took.items():
        pairs = zip(spent, took["ndjson"], strict=True)
        ratios[name] = round(statistics.median(a / b for a, b in pairs), 2)
        each = statistics.median(spent) / events * 1e9
        share = statistics.median(a / b for a, b in zip(reading[name], spent, strict=True))
        print(f"{name}: {each:.0f} ns an event, {ratios[name]:.2f}; {share:.0%} for its lines")
    print(json.dumps(ratios | {"readings are equal": right}))
    return 0 if right else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=300_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    sys.exit(main(arguments.events, arguments.rounds))
