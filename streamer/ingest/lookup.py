"""What stands at the paths of a mapping, in parsed records: a second, slower look than the core's,
for those who explain."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from streamer.ingest.mapping import fields_of
from streamer.settings.model import Settings
from streamer.settings.paths import Path, Step, Where, path_of, step_of, text_of
from streamer.settings.source_rules import forms_of, preset_of
from streamer.settings.sources import Source

_LOOKED_INTO = 200
"""Records of one kind in one log."""
_NAMES = 12
"""Names at one place that are shown at most."""
_APART = ("type", "ts", "user_id", "item_id", "value")
"""Fields about which something else is said where no event has them."""


def parsed(value: bytes | str) -> Any:
    """What a JSON text holds; None where it is none.

    >>> parsed(b'{"a": 1}'), parsed("{")
    ({'a': 1}, None)
    """
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):  # msgspec's and Unicode's errors are ValueErrors
        return None


def as_text(value: Any) -> str:
    """A value as kinds and ids are compared.

    >>> as_text("a"), as_text(7), as_text(True)
    ('a', '7', 'true')
    """
    return value if isinstance(value, str) else json.dumps(value)


def values_at(value: Any, path: Path) -> Iterator[Any]:
    """All values at a path that are neither null nor an empty text.

    >>> list(values_at({"a": [{"b": 1}, {"b": None}, {"c": 2}]}, path_of("a[].b")))
    [1]
    """
    if not path:
        if value is not None and value != "":
            yield value
        return
    for inner in _stepped(value, path[0]):
        yield from values_at(inner, path[1:])


def _stepped(value: Any, step: Step) -> list[Any]:
    if isinstance(step, str):
        return [value[step]] if isinstance(value, Mapping) and step in value else []
    if not isinstance(value, list):
        return []
    if isinstance(step, int):
        return value[step : step + 1]
    if isinstance(step, Where):
        return [each for each in value if _is(each, step)]
    return [each for each in value if step.only is None or _is(each, step.only)]


def _is(element: Any, where: Where) -> bool:
    steps = _stepped(element, step_of(where.key))
    return any(as_text(found) == where.equals for found in steps)


def unfolded(source: Source, record: Any) -> Any:
    """A record whose texts that hold other values are taken apart, as a source says."""
    for path, split, decimals in source.texts:
        *outer, last = path
        for at in list(values_at(record, tuple(outer))):
            if isinstance(at, dict) and isinstance(last, str) and last in at:
                held = at[last]
                at[last] = _apart(held, split) if decimals is None else _decimal(held, decimals)
    return record


def _decimal(value: Any, digits: int) -> Any:
    if not isinstance(value, str):
        return value
    try:
        whole = base64.b64decode(value, validate=True)
    except ValueError:
        return value
    return int.from_bytes(whole, signed=True) / 10**digits


def _apart(value: Any, split: Sequence[str]) -> Any:
    if not split:
        try:
            return msgspec.json.decode(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            return value
    if not isinstance(value, str | int | float):
        return value
    pieces = [piece.strip() for piece in as_text(value).split(split[0])]
    return [_apart(x, split[1:]) if split[1:] else x for x in pieces if x]


def names_near(value: Any, path: Path) -> tuple[str, list[str]]:
    """How far a path leads into a value, as the text of its steps, and the names that stand there.

    >>> names_near({"a": {"ids": 1, "who": 2}}, path_of("a.id"))
    ('a', ['ids', 'who'])
    """
    at, steps = [value], list[Step]()
    for step in path:
        inner = [found for each in at for found in _stepped(each, step)]
        if not inner:
            break
        at = inner
        steps.append(step)
    names = Counter(name for each in at if isinstance(each, Mapping) for name in each)
    return text_of(tuple(steps)), [name for name, _ in names.most_common(_NAMES)]


@dataclass
class _Looked:
    """Records of one kind in one log that were looked into."""

    records: int = 0
    seen: set[str] = field(default_factory=set)
    """Fields that one of them has."""
    first: Any = None


@dataclass(frozen=True)
class NeverSeen:
    """A field that is mapped, and that no record has."""

    kind: str
    name: str
    records: int
    path: str
    """The first of its paths."""
    near: str
    """How far it leads."""
    names: Sequence[str]
    """What stands there."""


class FieldsSeen:
    """Which of the fields that settings name stand in records."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._looked: dict[tuple[str, str], _Looked] = {}
        self._paths: dict[tuple[str, str], dict[str, list[Path]]] = {}

    def add(self, log: str, kind: str, raw: bytes) -> None:
        """Look into a record of a log that is an event of a kind."""
        looked = self._looked.setdefault((log, kind), _Looked())
        if looked.records >= _LOOKED_INTO or not self._settings.reads_sources:
            return
        record = unfolded(self._source(log), parsed(raw))
        if record is None:
            return
        looked.records += 1
        looked.first = looked.first or record
        for name, paths in self._paths_of(log, kind).items():
            if name not in looked.seen and any(
                next(values_at(record, path), None) is not None for path in paths
            ):
                looked.seen.add(name)

    def never(self) -> Iterator[NeverSeen]:
        """The fields that no record of any kind has where settings say that they stand."""
        seen = {
            (log, name, path)
            for (log, kind), looked in self._looked.items()
            for name in looked.seen
            for path in self._paths_of(log, kind)[name]
        }
        for (log, kind), looked in self._looked.items():
            for name, paths in self._paths_of(log, kind).items() if looked.records else ():
                near, names = names_near(looked.first, paths[0])
                path = text_of(paths[0])
                is_there = name in looked.seen or near == path
                if not is_there and not any((log, name, each) in seen for each in paths):
                    yield NeverSeen(kind, name, looked.records, path, near, names)

    def _source(self, log: str) -> Source:
        return self._settings.sources[self._settings.logs[log].source]

    def _paths_of(self, log: str, kind: str) -> dict[str, list[Path]]:
        """Field → its paths: of those that stand in records, and that no preset names."""
        if (log, kind) not in self._paths:
            source = self._source(log)
            preset = preset_of(source)
            usual = {} if preset is None else preset.fields_of(kind)
            found: dict[str, list[Path]] = {}
            for name in fields_of(self._settings, kind):
                said = source.fields_of(kind).get(name, False)
                forms = list(forms_of(said))
                is_apart = name in _APART or name in self._settings.kept_fields
                if is_apart or said == usual.get(name, False) or not forms:
                    continue
                paths = [path_of(form["path"]) for form in forms if "path" in form]
                if len(paths) == len(forms):
                    found[name] = paths
            self._paths[log, kind] = found
        return self._paths[log, kind]
