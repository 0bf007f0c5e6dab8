"""The files of the core: what they use of each other, and where the methods of a type stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

CORE = Path(__file__).parent.parent / "core" / "src"
PATH = re.compile(r"\bcrate::((?:\w+::)*)(?:(\w+)|(\{[^;]*\}))")
IMPL = re.compile(r"^impl(?:<[^>]*>)? (\w+)(?:<[^>]*>)? (?:where|\{)", re.MULTILINE)
FILES_OF_A_TYPE = 3


def name_of(path: Path) -> str:
    return "::".join(path.relative_to(CORE).with_suffix("").parts)


def code_of(path: Path) -> str:
    """Without comments and tests."""
    code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    return code.partition("#[cfg(test)]\nmod tests {")[0]


CODE = {
    name_of(path): code_of(path)
    for path in sorted(CORE.rglob("*.rs"))
    if path.stem not in {"lib", "tests", "testing"}
}


def expanded(names: str) -> Iterator[str]:
    """The paths of a list in braces, which may hold others."""
    start, depth = 1, 0
    for i, c in enumerate(names):
        depth += (c == "{") - (c == "}")
        if (c == "," and depth == 1) or depth == 0:
            head, brace, rest = names[start:i].strip().partition("{")
            yield from (head + name for name in expanded(brace + rest)) if brace else (head,)
            start = i + 1


def used_by(name: str) -> Iterator[str]:
    """Other files whose names stand after `crate::`. What a file has of the module that it is a
    part of is `super`, and no use."""
    for room, single, several in PATH.findall(CODE[name]):
        for path in expanded(several) if several else (single,):
            parts = f"{room}{path}".split("::")
            found = ("::".join(parts[:i]) for i in range(len(parts), 0, -1))
            used = next((module for module in found if module in CODE), name)
            if used != name:
                yield used


def test_paths_are_found() -> None:
    assert list(expanded("{a, b::{self, C}}")) == ["a", "b::self", "b::C"]
    assert {"panes::dimensions", "changes"} <= set(used_by("attribution::emitted"))


def test_files_use_each_other_in_no_circle() -> None:
    graph = {name: set(used_by(name)) for name in CODE}
    TopologicalSorter(graph).prepare()  # CycleError names it


def test_the_spec_uses_no_room() -> None:
    used = {used for name in CODE if name.startswith("spec") for used in used_by(name)}
    assert {name.partition("::")[0] for name in used} <= {"spec", "hash"}


def test_the_methods_of_a_type_stand_in_few_files() -> None:
    files: dict[str, set[str]] = {}
    for name, code in CODE.items():
        for of in IMPL.findall(code):
            files.setdefault(of, set()).add(name)
    assert len(files) > 100
    assert {of: at for of, at in files.items() if len(at) > FILES_OF_A_TYPE} == {}
