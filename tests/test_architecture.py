"""The rooms of docs/architecture.md, held by reading the imports of each folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.all_cases import hold_for_all

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "streamer"
FILES = sorted(PACKAGE.rglob("*.py"))
FLOORS = (
    *(("_core",), ("errors", "formatting"), ("logs",), ("encoding",), ("settings",)),
    *(("stats",), ("metrics",), ("kafka",), ("ingest",), ("state",), ("query",)),
    *(
        ("worker", "server"),
        ("actions", "monitoring"),
        ("sources",),
        ("library",),
        ("testing",),
        ("app",),
    ),
    *(("cli",), ("__main__",)),
)
"""From the ground up: a room may import from itself and from lower floors. Every folder and every
file of the package's root is named here."""
BESIDE_THE_PACKAGE = {"core", "deploy", "docs"}
WHOLE_SYSTEM = {"conformance", "foreign", "oracle", "simulation", "system"}
"""Rooms of tests that are about more than one room."""
PURE = ("encoding", "stats", "metrics", "query")
"""Rooms that do no I/O and have no clock; of others, these files:"""
PURE_FILES = ("ingest/record.py", "state/partition.py")
IO = {
    *("aiokafka", "aiohttp", "asyncio", "faust", "kafka", "prometheus_client", "redis", "rich"),
    *("socket", "subprocess", "threading", "tempfile", "time", "os", "sys", "logging"),
}


@cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed once for all laws."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[str]:
    """Dotted names of everything that a file imports, also below functions and for types only."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    """The first part of a file's place below the package."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def rooms_below(path: Path) -> set[str]:
    """The rooms that a file imports from."""
    own = (name.split(".") for name in imports(path) if name.startswith("streamer."))
    return {parts[1] for parts in own if parts[1] != "__version__"} - {room_of(path)}


def floor_of(room: str) -> int:
    return next(i for i, rooms in enumerate(FLOORS) if room in rooms)


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(path) for path in FILES} | {"_core"}
    assert rooms - {"__init__"} == {room for rooms in FLOORS for room in rooms}


def imports_what_is_below(path: Path) -> None:
    if path.parent != PACKAGE or path.stem != "__init__":
        assert {r for r in rooms_below(path) if floor_of(r) >= floor_of(room_of(path))} == set()


def test_imports_run_downwards() -> None:
    hold_for_all(FILES, imports_what_is_below, name_of, at_least=300)


def test_tests_lie_in_the_rooms_of_what_they_test() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")}
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert folders <= rooms | BESIDE_THE_PACKAGE | WHOLE_SYSTEM | {"support"}


def test_no_imports_run_in_a_circle() -> None:
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in FILES
    }
    graph = {}
    for path in FILES:
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        name, found = name.removesuffix(".__init__"), set(imports(path))
        modules_of = {x if x in modules else x.rpartition(".")[0] for x in found}
        graph[name] = (modules_of & modules) - {name, "streamer"}
    TopologicalSorter(graph).prepare()  # CycleError names them


@pytest.mark.parametrize("path", [p for p in FILES if p.parent == PACKAGE], ids=name_of)
def test_the_root_holds_only_what_every_room_needs(path: Path) -> None:
    ground = {*FLOORS[1], *FLOORS[2], "app", "__init__", "__main__"}
    assert path.stem in ground


def does_no_io_and_has_no_clock(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & IO
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"now", "utcnow", "today", "environ", "getenv"}, node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input"}, node.lineno


def test_what_makes_numbers_does_no_io_and_has_no_clock() -> None:
    files = [p for p in FILES if room_of(p) in PURE or name_of(p) in PURE_FILES]
    hold_for_all(files, does_no_io_and_has_no_clock, name_of, at_least=100)


def test_only_the_transport_and_the_app_know_faust() -> None:
    users = {name_of(p) for p in FILES if any(n.split(".")[0] == "faust" for n in imports(p))}
    assert users <= {"worker/app.py", "kafka/transport.py"}


def test_no_file_imports_pickle() -> None:
    assert any(imports(path) for path in FILES)
    for path in FILES:
        assert not {name.split(".")[0] for name in imports(path)} & {"pickle", "marshal", "shelve"}


def test_functions_stay_small() -> None:
    found = 0
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                assert lines <= 60, f"{name_of(path)}: {node.name} has {lines} lines"
                found += 1
    assert found > 1000


def test_public_types_have_names_of_their_own() -> None:
    rooms: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms.setdefault(node.name, []).append(name_of(path))
    assert {name for name, places in rooms.items() if len(places) > 1} == set()


def test_modules_are_named_after_what_they_hold() -> None:
    vague = {"utils.py", "util.py", "common.py", "helpers.py", "misc.py"}
    assert not {path.name for path in FILES} & vague
