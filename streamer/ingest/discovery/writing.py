"""What was found, as settings with comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamer.ingest.discovery.dimensions import Dimensions, ProposedDimension
from streamer.ingest.discovery.kinds import Value
from streamer.ingest.discovery.names import VARIANT
from streamer.ingest.discovery.presets import source_of
from streamer.ingest.discovery.profile import text_of
from streamer.ingest.discovery.shapes import Shape
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.sources import FieldSource, KindValue

_WIDTH = 40
"""Column in which comments begin."""
_MOST_OTHERS = 10
_KINDS = ("impression", "click", "conversion", "session")


def toml_value(value: Any) -> str:
    """A value as TOML writes it.

    >>> toml_value(["a", {"path": "x", "unit": "s"}, True, 0.5])
    '["a", { path = "x", unit = "s" }, true, 0.5]'
    >>> import tomllib
    >>> tomllib.loads("x = " + toml_value('a"\\\\ \\n\\x7f é'))["x"] == 'a"\\\\ \\n\\x7f é'
    True
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)


def comment(text: str) -> str:
    """A text in one line of a comment."""
    return "# " + "".join(c if c.isprintable() else " " for c in text)


def written(shapes: Sequence[Shape], dimensions: Sequence[Dimensions]) -> str:
    """The tables of all that was found; ``dimensions``: of each shape."""
    lines: list[str] = []
    for shape, of_shape in zip(shapes, dimensions, strict=True):
        if shape.is_ours:
            lines += ["", comment(f"{', '.join(shape.topics)}: streamer's own events")]
        else:
            lines += ["", *_source(shape, of_shape)]
    ours = [of for shape, of in zip(shapes, dimensions, strict=True) if shape.is_ours]
    lines += _dimensions(dimensions, ours)
    return "\n".join(lines).lstrip("\n") + "\n"


def _line(text: str, note: str = "") -> str:
    return f"{text:<{_WIDTH - 1}} {comment(note)}" if note else text


def _source(shape: Shape, dimensions: Dimensions) -> Iterator[str]:
    yield "[[sources]]"
    yield _line(f"topics = {toml_value(shape.topics)}", f"{shape.records:,} records looked at")
    if shape.format != "json":
        yield f"format = {toml_value(shape.format)}"
    if shape.registry is not None:
        yield f"registry = {toml_value(shape.registry)}"
    if shape.preset is not None:
        yield f"preset = {toml_value(shape.preset)}"
    if shape.columns:
        yield f"columns = {toml_value(shape.columns)}"
    if shape.positions_from == 0:
        yield "positions_from = 0"
    yield from (comment(f"? {doubt}") for doubt in dict.fromkeys(shape.doubts))
    yield from _kind(shape)
    first, *_ = [*(kind for kind in _KINDS if kind in shape.fields), "impression"]
    base = dict(shape.fields.get(first, {}))
    for kind in _KINDS:
        for name, field_source in shape.fields.get(kind, {}).items():
            is_only = all(kind == k or name not in f for k, f in shape.fields.items())
            if is_only and name != "item_id":
                base.setdefault(name, field_source)
    for one in dimensions.chosen:
        base[one.name] = text_of(one.path)
    yield from _table("sources.fields", base, dimensions.variant_doubts)
    for kind in _KINDS:
        if kind != first and kind in shape.fields:
            own = {n: said for n, said in shape.fields[kind].items() if base.get(n) != said}
            yield from _table(f"sources.{kind}.fields", own)


def _table(
    name: str, fields: Mapping[str, FieldSource], of_variant: Sequence[str] = ()
) -> Iterator[str]:
    """``of_variant``: what is not sure about the arm."""
    if fields:
        yield from ("", f"[{name}]")
    for ours, said in fields.items():
        if ours == VARIANT:
            yield from (comment(f"? {doubt}") for doubt in of_variant)
        yield f"{ours} = {toml_value(said)}"


def _kind(shape: Shape) -> Iterator[str]:
    kinds = shape.kinds
    yield from ("", "[sources.kind]")
    if kinds.fixed is not None:
        yield _line(f"fixed = {toml_value(kinds.fixed)}", "all records of the topic")
        return
    source = None if shape.preset is None else source_of(shape.preset)
    if source is None or shape.preset in ("cloudevents", "debezium"):
        source = None
        if kinds.header is not None:
            yield f"header = {toml_value(kinds.header)}"
        elif kinds.path is not None:
            yield f"field = {toml_value(text_of(kinds.path))}"
    rules = [] if source is None else source.kind.rules
    values_of = kinds.known
    for kind in (*_KINDS, ""):
        before = [rule for its, rule in rules if its == (LINE_TYPES[kind] if kind else None)]
        known = {rule.value for rule in before}
        new = [value for value in values_of.get(kind, []) if value.text not in known]
        if new:
            yield from _values(kind or "ignored", [_rule(rule) for rule in before], new)
    if rules:
        counted = [v for kind in _KINDS for v in values_of.get(kind, [])]
        yield comment("seen: " + ", ".join(f"{v.text} {v.records:,}" for v in counted))


def _values(name: str, before: Sequence[Any], new: Sequence[Value]) -> Iterator[str]:
    yield f"{name} = ["
    if before:
        yield from (f"    {toml_value(one)}," for one in before)
    for value in new:
        said = {"value": value.text, **value.extra} if value.extra else value.text
        is_seen = f"{value.records:,} records" if value.records else "not seen"
        yield _line(f"    {toml_value(said)},", is_seen if value.is_sure else f"? {is_seen}")
    yield "]"


def _rule(rule: KindValue) -> Any:
    names = ("where", "has", "lacks", "feedback", "action")
    extra = {name: said for name in names if (said := getattr(rule, name))}
    return {"value": rule.value, **extra} if extra else rule.value


def _dimensions(of_shapes: Sequence[Dimensions], ours: Sequence[Dimensions]) -> Iterator[str]:
    """``ours``: of shapes without a source, where no line says where the arm stands."""
    chosen: dict[str, ProposedDimension] = {}
    others: dict[str, ProposedDimension] = {}
    for of_shape in of_shapes:
        chosen |= {one.name: one for one in of_shape.chosen if one.name not in chosen}
        others |= {one.name: one for one in of_shape.others if one.name not in others}
    doubts = [d for of in ours for d in of.variant_doubts]
    for one in chosen.values():
        yield from ("", "[[dimensions]]")
        if one.name == VARIANT:
            yield from (comment(f"? {doubt}") for doubt in dict.fromkeys(doubts))
        yield _line(f"name = {toml_value(one.name)}", one.values)
    left = [one for one in others.values() if one.name not in chosen]
    if left:
        yield ""
        yield comment(
            "To split by one of these: its line under [sources.fields], and [[dimensions]] with "
            "its name"
        )
        for one in left[:_MOST_OTHERS]:
            line = f"# {one.name} = {toml_value(text_of(one.path))}"
            yield _line(line, f"{one.seen.distinct} values: {one.values}")
