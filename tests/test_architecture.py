"""The layers of docs/architecture.md, held by reading the imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "streamer"
FILES = sorted(PACKAGE.rglob("*.py"))
PURE = ("alerting", "experiments", "ingest", "metrics", "readout")
"""Folders that know of no broker, no store and no clock."""
CORE = (
    *("arrays.py", "canonical.py", "events.py", "integers.py", "judge.py", "limits.py"),
    *("partition.py", "replay.py", "rules.py", "segments.py"),
)
"""Files of the package's root that are as pure."""
IO = {
    *("aiokafka", "aiohttp", "asyncio", "faust", "kafka", "prometheus_client", "redis", "rich"),
    *("socket", "subprocess", "threading", "tempfile", "time", "os", "sys", "logging"),
}
RIM = {
    *("api", "web"),
    *("app", "chunk", "cli", "commands", "deadletters", "docs", "embedded", "exporter"),
    *(
        "exposition",
        "guard",
        "kafka",
        "owned",
        "runner",
        "store",
        "telemetry",
        "topics",
        "transport",
    ),
}
"""Modules of streamer that talk to the world."""


def is_pure(path: Path) -> bool:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] in PURE or relative.as_posix() in CORE


def imports(path: Path) -> Iterator[str]:
    """Dotted names of everything that a file imports, also below functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own(path: Path) -> set[str]:
    """What a file imports of streamer: the first part below the package."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("streamer.")}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", [p for p in FILES if is_pure(p)], ids=name_of)
def test_the_core_does_no_io_and_has_no_clock(path: Path) -> None:
    outside = {name.split(".")[0] for name in imports(path)}
    assert not outside & IO
    assert not own(path) & RIM
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"now", "utcnow", "today", "environ", "getenv"}, node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input"}, node.lineno


STATISTICS = ("alerting", "experiments")


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.relative_to(PACKAGE).parts[0] in STATISTICS], ids=name_of
)
def test_statistics_know_no_metric_and_no_core(path: Path) -> None:
    assert not own(path) & {"_core", "ingest", "metrics", "partition", "readout", "sources"}


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.relative_to(PACKAGE).parts[0] == "metrics"], ids=name_of
)
def test_metrics_know_no_reader(path: Path) -> None:
    assert not own(path) & {"_core", "ingest", "partition", "readout", "sources", "testing"}


def test_only_the_transport_and_the_app_know_faust() -> None:
    users = {name_of(p) for p in FILES if any(n.split(".")[0] == "faust" for n in imports(p))}
    assert users <= {"app.py", "transport.py"}


def test_no_file_imports_pickle() -> None:
    for path in FILES:
        assert not {name.split(".")[0] for name in imports(path)} & {"pickle", "marshal", "shelve"}


def test_files_stay_small() -> None:
    for path in FILES:
        lines = path.read_text(encoding="utf-8").count("\n")
        assert lines <= 400, f"{name_of(path)} has {lines} lines"


def test_functions_stay_small() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                assert lines <= 60, f"{name_of(path)}: {node.name} has {lines} lines"


def test_modules_are_named_after_what_they_hold() -> None:
    vague = {"utils.py", "util.py", "common.py", "helpers.py", "misc.py"}
    assert not {path.name for path in FILES} & vague
