"""Instructions an event of the core, beside plain decoding of the same records, by valgrind.

    python -m benchmarks.instructions

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

from streamer._core import Core

EVENTS = 20_000
"""How many are counted; as many were fed before."""
LOADS = {
    "counting": '[metrics]\nfamilies = ["traffic"]',
    "by default": "",
    "with an experiment and alerts": None,
    "a troubled log": None,
}
ROOT = Path(__file__).parents[1]
VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--quiet")
Prepared = Mapping[str, tuple[bytes, list[Any], list[Any], list[bytes]]]
"""Load → (spec of the core, batches that warm it up, batches, the records of these)."""


def prepared(events: int) -> Prepared:
    """All loads."""
    from benchmarks.endless import Run
    from benchmarks.measure import TROUBLED, WATCHED
    from benchmarks.raw_log import RawLog
    from streamer.ingest.spec import core_spec
    from streamer.settings.load import parse
    from streamer.sources.synthetic import SyntheticTraffic, generate

    loads = {}
    for name, settings in LOADS.items():
        run = Run(parse(tomllib.loads(WATCHED if settings is None else settings)))
        partition = run.partition
        spec = core_spec(run.settings, run.catalogue, partition.key, ranks=partition.ranks)
        trouble: dict[str, Any] = TROUBLED if name == "a troubled log" else {}
        traffic = SyntheticTraffic(users=20_000, events_per_second=1000.0, **trouble)
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
        core.feed_batches(log, data, [], True)
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


def total(path: Path) -> int:
    """Instructions of a process."""
    return int(re.findall(r"^summary: (\d+)", path.read_text(encoding="ascii"), re.MULTILINE)[0])


def measured(events: int = EVENTS) -> dict[str, dict[str, float]]:
    """Load → instructions an event of plain decoding and of the core, and their ratio."""
    if shutil.which(VALGRIND[0]) is None:
        raise SystemExit("no valgrind on PATH: apt install valgrind")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "loads"
        path.write_bytes(pickle.dumps(prepared(events)))
        command = [*VALGRIND, f"--cachegrind-out-file={directory}/%p", sys.executable]
        command += ["-m", "benchmarks.instructions", "--counted", str(path)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        named = [
            line.split(" ", 1)
            for line in Path(f"{path}.names").read_text(encoding="utf-8").splitlines()
        ]
        sums = {name.strip(): total(Path(directory) / pid) for pid, name in named}
    found = {}
    for load in LOADS:
        base = sums[f"{load}/nothing"]
        plain, core = ((sums[f"{load}/{what}"] - base) / events for what in ("decoding", "core"))
        found[load] = {"decoding": plain, "core": core, "ratio": core / plain}
    return found


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--counted", metavar="FILE", help="what a run in valgrind is given")
    given = options.parse_args()
    if given.counted:
        counted(given.counted)
    else:
        print(json.dumps(measured(), indent=1))
