"""What stands at paths in parsed records, and which fields of settings never do: for those who
explain."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import msgspec

from streamer._core import RecordDecoder
from streamer.ingest.mapping import fields_of
from streamer.settings.model import Settings
from streamer.settings.paths import Path, Step, Where, path_of, step_of, text_of
from streamer.settings.source_rules import forms_of, preset_of

Beside = tuple[()] | tuple[bytes | None, bytes, int]
"""Key, headers (as Kafka sends them) and timestamp of a record."""
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
    first: bytes = b""
    """The text of one."""


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

    def __init__(self, settings: Settings, decoder: RecordDecoder) -> None:
        self._settings, self._decoder = settings, decoder
        self._looked: dict[tuple[str, str], _Looked] = {}
        self._paths: dict[tuple[str, str], dict[str, list[str]]] = {}

    def add(self, log: str, kinds: Set[str], value: bytes, beside: Beside) -> None:
        """Look into a record of a log that is events of some kinds."""
        if not self._settings.reads_sources:
            return
        looked = {kind: self._looked.setdefault((log, kind), _Looked()) for kind in kinds}
        if all(of_kind.records >= _LOOKED_INTO for of_kind in looked.values()):
            return
        for reason, kind, _, values, _ in self._decoder.trace(log, value, *beside):
            of_kind = looked.get(kind or "")
            if reason is not None or of_kind is None:
                continue
            of_kind.records += 1
            of_kind.first = of_kind.first or self._decoder.text(log, value) or b""
            of_kind.seen.update(name for name, *_ in values)

    def never(self) -> Iterator[NeverSeen]:
        """The fields that no record of any kind has where settings say that they stand."""
        seen = {
            (log, name, path)
            for (log, kind), looked in self._looked.items()
            for name, paths in self._paths_of(log, kind).items()
            for path in paths
            if name in looked.seen
        }
        for (log, kind), looked in self._looked.items():
            for name, paths in self._paths_of(log, kind).items() if looked.records else ():
                near, names = names_near(parsed(looked.first), path_of(paths[0]))
                is_there = name in looked.seen or near == paths[0]
                if not is_there and not any((log, name, path) in seen for path in paths):
                    yield NeverSeen(kind, name, looked.records, paths[0], near, names)

    def _paths_of(self, log: str, kind: str) -> dict[str, list[str]]:
        """Field → its paths: of those that stand in records, and that no preset names."""
        if (log, kind) not in self._paths:
            source = self._settings.sources[self._settings.logs[log].source]
            preset = preset_of(source)
            usual = {} if preset is None else preset.fields_of(kind)
            found: dict[str, list[str]] = {}
            for name in fields_of(self._settings, kind):
                said = source.fields_of(kind).get(name, False)
                forms = list(forms_of(said))
                is_apart = name in _APART or name in self._settings.kept_fields
                if is_apart or said == usual.get(name, False) or not forms:
                    continue
                paths = [form["path"] for form in forms if "path" in form]
                if len(paths) == len(forms):
                    found[name] = paths
            self._paths[log, kind] = found
        return self._paths[log, kind]
