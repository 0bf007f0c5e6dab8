"""Instructions an event as more and more stands under one key, by valgrind.

    python -m benchmarks.growth          every shape at every size
    python -m benchmarks.growth pair     those with this in their name

A shape is what somebody may write: events whose pair, person, slate, session, request or dimension
is the same. Each is fed to a core of its own, by sizes that double; an event must not cost more
where more is kept.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.instructions import ROOT, feed, fork, sums_of, valgrind
from benchmarks.measure import WATCHED
from benchmarks.raw_log import RawLog
from streamer._core import Core
from streamer.ingest.spec import core_spec
from streamer.settings.load import parse
from streamer.sources.synthetic import KindLine

SIZES = (250, 500, 1000, 2000, 4000)
T0 = 1_700_000_000_000
GRADED = "[metrics.feedback]\nclick = 1\nconversion = 2"


class Shape(msgspec.Struct, frozen=True):
    """Events that grow under one key."""

    lines: Callable[[int], Iterable[KindLine]]
    settings: str = ""


def event(kind: str, at: int, **fields: Any) -> KindLine:
    of = {"ts": T0 + at, "user_id": "u", **fields}
    return kind, msgspec.json.encode(of)


def shown(at: int, **fields: Any) -> KindLine:
    return event("impressions", at, **{"item_id": "a", **fields})


def clicked(at: int, **fields: Any) -> KindLine:
    return event("clicks", at, **{"item_id": "a", **fields})


def bought(at: int, **fields: Any) -> KindLine:
    return event("conversions", at, **{"item_id": "a", **fields})


def clicks_before_their_impressions(n: int) -> Iterator[KindLine]:
    yield from (clicked(60_000 + i) for i in range(n))
    yield from (shown(i) for i in range(n))


def conversions_before_their_clicks(n: int) -> Iterator[KindLine]:
    yield shown(0, request_id="r")
    yield from (bought(60_000 + i) for i in range(n))
    yield from (clicked(30_000 - i, request_id="r") for i in range(n))


def conversions_and_clicks(n: int) -> Iterator[KindLine]:
    yield shown(0)
    for i in range(n):
        yield bought(60_000 + i)
        yield clicked(50_000 - i)


def falling_impressions(n: int) -> Iterator[KindLine]:
    yield from (shown(20_000 - i) for i in range(n))
    yield from (clicked(30_000 + i) for i in range(n))


def one_guest(n: int) -> Iterator[KindLine]:
    yield from (shown(i, request_id=f"r{i}") for i in range(n))
    yield from (clicked(30_000 + i, request_id=f"r{i}") for i in range(n))


def unclicked_of_a_guest(n: int) -> Iterator[KindLine]:
    for i in range(n):
        yield shown(i, request_id=f"r{i}")
        yield shown(i, request_id=f"r{i}", item_id="b")
    yield from (clicked(30_000 + i, request_id=f"r{i}", item_id="b") for i in range(n))
    yield from (bought(60_000 + i) for i in range(n))


def clicked_too_late(n: int) -> Iterator[KindLine]:
    yield from (shown(i, request_id=f"r{i}") for i in range(n))
    yield from (clicked(90_000 + i, request_id=f"r{i}") for i in range(n))
    yield from (bought(60_000 + i) for i in range(n))


def open_requests(n: int) -> Iterator[KindLine]:
    yield from (shown(i, request_id=f"r{i}", item_id="b") for i in range(n))
    yield from (shown(10_000 + i, request_id=f"r{i}") for i in range(n))


def items_of_a_person(n: int) -> Iterator[KindLine]:
    yield from (shown(i, item_id=f"i{i}") for i in range(n))
    yield from (clicked(10_000 + i, item_id=f"i{i}") for i in range(n))


def places_of_a_person(n: int) -> Iterator[KindLine]:
    yield from (shown(i, item_id=f"i{i}", surface=f"s{i % 100}") for i in range(n))
    yield from (clicked(10_000 + i, item_id=f"i{i}", surface=f"s{i % 97}") for i in range(n))


def a_slate(n: int) -> Iterator[KindLine]:
    yield from (shown(i, item_id=f"i{i}", request_id="r", position=i + 1) for i in range(n))
    yield from (clicked(10_000 + i, item_id=f"i{i}", request_id="r") for i in range(n))


def a_visit(n: int) -> Iterator[KindLine]:
    yield event("sessions", 0, action="start", session_id="s")
    for i in range(n):
        yield event("sessions", i, action="view", session_id="s")
    yield from (event("sessions", 20_000 - i, action="end", session_id="s") for i in range(n))


def visits_of_a_person(n: int) -> Iterator[KindLine]:
    for i in range(n):
        yield event("sessions", i, action="start", session_id=f"s{i}")
        yield event("sessions", i + 1, action="end", session_id=f"s{i}")


def viewings(n: int) -> Iterator[KindLine]:
    for i in range(n):
        at = 10_000 - i
        dwelt = {"start_ts": T0 + at, "end_ts": T0 + at + 5_000, "item_id": "a"}
        yield event("sessions", at, action="dwell", session_id="s", **dwelt)


def values_of_a_dimension(n: int) -> Iterator[KindLine]:
    yield from (shown(i, item_id=f"i{i}", surface=f"s{i}") for i in range(2 * n))


def earlier_exposures(n: int) -> Iterator[KindLine]:
    yield bought(60_000)
    yield from (shown(20_000 - i, item_id=f"i{i}", variant="A") for i in range(n))


def lines_of_an_order(n: int) -> Iterator[KindLine]:
    yield from (bought(i, event_id="o", item_id=f"i{i}", value=1.5) for i in range(2 * n))


def one_item_of_many(n: int) -> Iterator[KindLine]:
    yield from (shown(i, user_id=f"u{i}") for i in range(2 * n))


SHAPES: Mapping[str, Shape] = {
    "pair: clicks, then their impressions": Shape(clicks_before_their_impressions),
    "pair: conversions, then their clicks": Shape(conversions_before_their_clicks),
    "pair: conversions and clicks in turn": Shape(conversions_and_clicks),
    "pair: falling impressions, then clicks": Shape(falling_impressions),
    "pair: requests of a guest": Shape(one_guest),
    "pair: a guest's item beside others that are clicked": Shape(unclicked_of_a_guest, GRADED),
    "pair: clicks after the conversions": Shape(clicked_too_late),
    "request: open ones, then an item in each": Shape(open_requests),
    "person: items": Shape(items_of_a_person),
    "person: places": Shape(places_of_a_person),
    "slate: items": Shape(a_slate),
    "session: actions": Shape(a_visit),
    "session: those of a person": Shape(visits_of_a_person),
    "viewing: falling dwells": Shape(viewings),
    "dimension: values": Shape(values_of_a_dimension),
    "experiment: earlier and earlier exposures": Shape(earlier_exposures, WATCHED),
    "order: lines": Shape(lines_of_an_order),
    "item: people": Shape(one_item_of_many),
}

Run = tuple[bytes, list[tuple[str, bytes]]]
"""Spec of a core, and batches of its logs."""


def runs(shape: Shape, n: int) -> tuple[Run, int]:
    """What is fed of a shape, and how many events."""
    from benchmarks.endless import Run as Partition

    run = Partition(parse(tomllib.loads(shape.settings)))
    partition = run.partition
    spec = core_spec(run.settings, run.catalogue, partition.key, ranks=partition.ranks)
    lines, raw = list(shape.lines(n)), RawLog()
    fed: list[tuple[str, bytes]] = []
    first = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or lines[at][0] != lines[first][0]:
            fed.extend((x.log, x.data) for x in raw.batches(lines[first:at]))
            first = at
    core = Core(spec)
    for log, data in fed:
        core.feed_batches(log, data, [])
    if core.take_rejected()[0]:
        raise SystemExit("events of a shape are rejected")
    return (spec, fed), len(lines)


def counted(path: str) -> None:
    """Runs in valgrind: a fork for each shape and size."""
    loads: Mapping[str, Run] = pickle.loads(Path(path).read_bytes())
    for name, (spec, fed) in loads.items():
        core = Core(spec)
        fork(f"nothing {name}", lambda: None, path)
        fork(name, partial(feed, core, fed), path)


def measured(
    sizes: Iterable[int] = SIZES, shapes: Mapping[str, Shape] = SHAPES
) -> dict[str, dict[int, float]]:
    """Shape → size → instructions an event."""
    keys = {f"{name}/{n}": (shape, n) for name, shape in shapes.items() for n in sizes}
    prepared = {key: runs(*of) for key, of in keys.items()}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "runs"
        path.write_bytes(pickle.dumps({key: run for key, (run, _) in prepared.items()}))
        command = [*valgrind(directory, False), sys.executable]
        command += ["-m", "benchmarks.growth", "--counted", str(path)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        names = Path(f"{path}.names").read_text(encoding="utf-8").splitlines()
        pids = {name: pid for pid, name in (line.split(" ", 1) for line in names)}
        sums = {name: sums_of(Path(directory) / pid)["Ir"] for name, pid in pids.items()}
    found: dict[str, dict[int, float]] = {name: {} for name in shapes}
    for key, (_, events) in prepared.items():
        name, n = key.rsplit("/", 1)
        found[name][int(n)] = (sums[key] - sums[f"nothing {key}"]) / events
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--counted"]:
        counted(sys.argv[2])
    else:
        wanted = sys.argv[1:] or [""]
        some = {name: of for name, of in SHAPES.items() if any(x in name for x in wanted)}
        for name, by_size in measured(shapes=some).items():
            ratio = by_size[SIZES[-1]] / by_size[SIZES[0]]
            print(f"{name:55}", *(f"{x:9,.0f}" for x in by_size.values()), f"{ratio:6.2f}")
