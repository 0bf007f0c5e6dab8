"""Instructions an event of the core, beside plain decoding of the same records, by valgrind.

    python -m benchmarks.instructions
    python -m benchmarks.instructions --caches     data that is in no cache, too, and the Rust floor

Instructions are counted, not timed: the same program counts the same, whatever else the machine
does. One process holds the records as Kafka's batches and as plain bytes. Each load is a fork of
it: nothing, plain decoding with msgspec, and the core; the first is what the others have in common.
Prints instructions an event and the ratio to plain decoding.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import TROUBLED, WATCHED
from streamer._core import Core

EVENTS, EVENTS_WITH_CACHES = 20_000, 200_000
"""How many are counted; as many were fed before."""
FLOOR_EVENTS = (50_000, 250_000)
LAST_CACHE = "--LL=33554432,16,64"
"""32 MB: what one of many virtual machines may have of a processor's."""
KNOWN_CPU = "x86-64-v3"
"""The newest processor whose instructions valgrind knows."""
Load = tuple[str, Mapping[str, Any]]
"""Settings, and what differs from the usual traffic."""
LOADS: Mapping[str, Load] = {
    "counting": ('[metrics]\nfamilies = ["traffic"]', {}),
    "by default": ("", {}),
    "with an experiment and alerts": (WATCHED, {}),
    "a troubled log": (WATCHED, TROUBLED),
}
BENDS: Mapping[str, Load] = {
    "1,000 users": ("", {"users": 1_000, "slate": 1}),
    "1,000,000 users": ("", {"users": 1_000_000, "slate": 1, "user_exponent": 0.0}),
    "slates of 10": ("", {"items": 5_000, "position_decay": 0.0}),
    "slates of 1,000": ("", {"items": 5_000, "position_decay": 0.0, "slate": 1_000}),
}
"""Where curves of benchmarks/scaling.py bend."""
ROOT = Path(__file__).parents[1]
VALGRIND = ("valgrind", "--tool=cachegrind", "--quiet")
Prepared = Mapping[str, tuple[bytes, list[Any], list[Any], list[bytes]]]
"""Load → (spec of the core, batches that warm it up, batches, the records of these)."""


def prepared(events: int, wanted: Mapping[str, Load]) -> Prepared:
    """All loads."""
    from benchmarks.endless import Run
    from benchmarks.raw_log import RawLog
    from streamer.ingest.spec import core_spec
    from streamer.settings.load import parse
    from streamer.sources.synthetic import SyntheticTraffic, generate

    loads = {}
    for name, (settings, differences) in wanted.items():
        run = Run(parse(tomllib.loads(settings)))
        partition = run.partition
        spec = core_spec(run.settings, run.catalogue, partition.key, ranks=partition.ranks)
        usual: dict[str, Any] = {"users": 20_000, "events_per_second": 1000.0}
        traffic = SyntheticTraffic(**usual | dict(differences))
        lines = list(generate(traffic, 2 * events))
        raw = RawLog()
        warm, fed = (
            [(each.log, each.data) for some in raw.fetched(part, 5000) for each in some]
            for part in (lines[:events], lines[events:])
        )
        loads[name] = spec, warm, fed, [line for _, line in lines[events:]]
    return loads


def counted(path: str) -> None:
    """Runs in valgrind: a fork for each load, whose name is written beside the process's counts."""
    import msgspec

    from benchmarks.event import Event

    loads: Prepared = pickle.loads(Path(path).read_bytes())
    decoder = msgspec.json.Decoder(Event)
    for name, (spec, warm, fed, values) in loads.items():
        core = Core(spec)
        feed(core, warm)
        for what, load in (
            ("nothing", lambda: None),
            ("decoding", lambda values=values: decode(decoder, values)),
            ("core", lambda core=core, fed=fed: feed(core, fed)),
        ):
            fork(f"{name}/{what}", load, path)


def fork(name: str, load: Callable[[], object], path: str) -> None:
    """Do it in another process."""
    pid = os.fork()
    if pid == 0:
        load()
        with Path(path + ".names").open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {name}\n")
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(f"{name} failed")


def feed(core: Any, batches: list[tuple[str, bytes]]) -> None:
    """As a partition does."""
    for log, data in batches:
        core.feed_batches(log, data, [])
    core.end_apply([])
    core.take_rejected()
    core.refresh_user_sums()


def decode(decoder: Any, values: list[bytes]) -> None:
    """As the floor does."""
    import msgspec

    for value in values:
        try:
            decoder.decode(value)
        except msgspec.MsgspecError:
            continue


Sums = Mapping[str, int]
"""Valgrind's name → count: ``Ir`` instructions; ``D1mr``, ``DLmr`` and ``D1mw``, ``DLmw`` reads and
writes that miss the first and the last cache."""


def sums_of(path: Path) -> Sums:
    """What valgrind counted of a process."""
    text = path.read_text(encoding="ascii")
    names, counts = (re.findall(rf"^{word}: (.+)$", text, re.MULTILINE)[0] for word in _LINES)
    return dict(zip(names.split(), map(int, counts.split()), strict=True))


_LINES = ("events", "summary")


def valgrind(directory: str, has_caches: bool) -> list[str]:
    """What a command is put behind, with a file for each of its processes."""
    if shutil.which(VALGRIND[0]) is None:
        raise SystemExit("no valgrind on PATH: apt install valgrind")
    caches = ["--cache-sim=yes", LAST_CACHE] if has_caches else ["--cache-sim=no"]
    return [*VALGRIND, *caches, "--fair-sched=yes", f"--cachegrind-out-file={directory}/%p"]


def per_event(sums: Sums, base: Sums, events: int) -> dict[str, float]:
    """Beyond what both have in common."""
    more = {name: (count - base[name]) / events for name, count in sums.items()}
    found = {"instructions": more["Ir"]}
    if "DLmr" in more:
        found["misses of the first cache"] = more["D1mr"] + more["D1mw"]
        found["misses of the last cache"] = more["DLmr"] + more["DLmw"]
    return found


def measured(
    events: int = EVENTS, has_caches: bool = False, loads: Mapping[str, Load] = LOADS
) -> dict[str, dict[str, Any]]:
    """Load → what plain decoding and the core need for an event, and the ratio of instructions."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "loads"
        path.write_bytes(pickle.dumps(prepared(events, loads)))
        command = [*valgrind(directory, has_caches), sys.executable]
        command += ["-m", "benchmarks.instructions", "--counted", str(path)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        named = [
            line.split(" ", 1)
            for line in Path(f"{path}.names").read_text(encoding="utf-8").splitlines()
        ]
        sums = {name.strip(): sums_of(Path(directory) / pid) for pid, name in named}
    found: dict[str, dict[str, Any]] = {}
    for load in loads:
        base = sums[f"{load}/nothing"]
        plain, core = (
            per_event(sums[f"{load}/{what}"], base, events) for what in ("decoding", "core")
        )
        ratio = core["instructions"] / plain["instructions"]
        found[load] = {"decoding": plain, "core": core, "ratio": ratio}
    return found


def rust_floor() -> dict[str, float]:
    """What the floor in Rust needs for an event, of Kafka: a long log less a short one."""
    from benchmarks.measure import program
    from benchmarks.peers import builds
    from tests.support.servers import kafka_server, redis_server

    found = []
    program_of_floor = builds.rust("rust_floor", KNOWN_CPU)
    with kafka_server() as kafka, redis_server() as redis:
        for events in FLOOR_EVENTS:
            log = (f"--brokers={kafka.address}", f"--suffix=-{events}", f"--events={events}")
            program("benchmarks.backlog", *log, "--partitions=4")
            with tempfile.TemporaryDirectory() as directory:
                command = [*valgrind(directory, has_caches=True), *program_of_floor()]
                command += [*log, f"--redis={redis.address}", f"--prefix=floor-{events}"]
                subprocess.run(command, check=True)
                (path,) = Path(directory).iterdir()
                found.append(sums_of(path))
    short, long = found
    return per_event(long, short, FLOOR_EVENTS[1] - FLOOR_EVENTS[0])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--counted", metavar="FILE", help="what a run in valgrind is given")
    options.add_argument("--caches", action="store_true", help="misses of caches, more events")
    given = options.parse_args()
    if given.counted:
        counted(given.counted)
    elif given.caches:
        loads = {**LOADS, **BENDS}
        everything = {"the floor in Rust": rust_floor()}
        everything |= measured(EVENTS_WITH_CACHES, True, loads)
        print(json.dumps(everything, indent=1))
    else:
        print(json.dumps(measured(), indent=1))
