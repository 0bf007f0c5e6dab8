"""The files of the core: what they use of each other, and where the methods of a type stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

CORE = Path(__file__).parent.parent / "core" / "src"
PATH = re.compile(r"(?<![\w:])((?:\w+::)+)(?:(\w+)|(\{[^;]*\}))")
USE = re.compile(r"\buse ([\w:]+?)(?:::(\{[^;]*\}))?;")
MODULE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE)
IMPL = re.compile(r"^impl(?:<[^>]*>)? (\w+)(?:<[^>]*>)? (?:where|\{)", re.MULTILINE)
FILES_OF_A_TYPE = 3


def name_of(path: Path) -> str:
    return "::".join(path.relative_to(CORE).with_suffix("").parts)


def code_of(path: Path) -> str:
    """Without comments, tests and who may see what."""
    code = re.sub(r"//.*|\bpub\((?:super|in [\w:]+)\)", "", path.read_text(encoding="utf-8"))
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


def absolute(name: str, path: str, code: Mapping[str, str] = CODE) -> list[str]:
    """The parts of a path that stands in a file, from the crate on; empty where it is of another
    crate, or of what the file itself has."""
    parts = path.split("::")
    here = name.split("::")
    if parts[0] == "crate":
        return parts[1:]
    if parts[0] in ("super", "self"):
        up = sum(part == "super" for part in parts)
        return here[: len(here) - up] + [part for part in parts if part not in ("super", "self")]
    return [*here, *parts] if parts[0] in MODULE.findall(code[name]) else []


def imports(name: str, code: Mapping[str, str] = CODE) -> dict[str, list[str]]:
    """The names that a file has from others, and where these have them."""
    found = {}
    for head, several in USE.findall(code[name]):
        paths = [f"{head}::{path}" for path in expanded(several)] if several else [head]
        for path in paths:
            if parts := absolute(name, path.removesuffix("::self"), code):
                found[parts[-1]] = parts
    return found


def owner(parts: list[str], code: Mapping[str, str] = CODE) -> str:
    """The file that has what a path names, however many others pass it on; empty where none has."""
    module = next((m for i in range(len(parts), 0, -1) if (m := "::".join(parts[:i])) in code), "")
    rest = parts[len(module.split("::")) :]
    passed = imports(module, code).get(rest[0]) if module and rest else None
    return owner([*passed, *rest[1:]], code) if passed and passed != parts else module


def used_by(name: str, code: Mapping[str, str] = CODE) -> Iterator[str]:
    """Other files of which a file uses something. What it only passes on it does not use."""
    known = imports(name, code)
    for room, single, several in PATH.findall(re.sub(r"\bpub use [^;]*;", "", code[name])):
        for path in expanded(several) if several else (single,):
            path = f"{room}{path}".removesuffix("::self")
            head, _, rest = path.partition("::")
            module = [*known.get(head, []), *rest.split("::")] if head in known else []
            parts = module or absolute(name, path, code)
            used = owner(parts, code) if parts else ""
            if used and used != name:
                yield used


def uses(code: Mapping[str, str] = CODE) -> dict[str, set[str]]:
    """What each file uses."""
    return {name: set(used_by(name, code)) for name in code}


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Files each of which uses the next, and the last the first; none where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_paths_are_found() -> None:
    assert list(expanded("{a, b::{self, C}}")) == ["a", "b::self", "b::C"]
    assert {"panes::dimensions", "changes"} <= set(used_by("attribution::emitted"))


def test_what_a_file_passes_on_is_of_the_file_that_has_it() -> None:
    code = {
        "a": "mod b;\nmod c;\npub use b::{B, make};\nuse c::C;\nfn main(c: C) {}",
        "a::b": "pub struct B;\npub fn make() -> B { super::helper() }",
        "a::c": "use super::B;\nuse crate::a::make;\nuse std::fmt::Write;",
        "d": "use crate::a;\nfn main() { a::make(); }",
    }
    assert uses(code) == {"a": {"a::c"}, "a::b": {"a"}, "a::c": {"a::b"}, "d": {"a", "a::b"}}
    assert set(circle(uses(code))) == {"a", "a::b", "a::c"}


def test_files_use_each_other_in_no_circle() -> None:
    """By `super` as by `crate`."""
    graph = uses()
    assert sum(map(len, graph.values())) > 500
    assert circle(graph) == []
    planted = {"json": "\nfn f(x: super::decode::draft::Draft) {}"}
    code = {name: text + planted.get(name, "") for name, text in CODE.items()}
    assert {"json", "decode::draft"} <= set(circle(uses(code)))


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
