"""What was found, as settings with comments."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamer.formatting import printable_json
from streamer.ingest.discovery.dimensions import Dimensions, ProposedDimension
from streamer.ingest.discovery.drafts import Draft, Fields, tables
from streamer.ingest.discovery.evidence import FieldEvidence
from streamer.ingest.discovery.kinds import Value
from streamer.ingest.discovery.names import VARIANT
from streamer.ingest.discovery.profile import names_of
from streamer.settings.event_fields import EXPOSURES, LINE_TYPES, TYPE_OF_KIND
from streamer.settings.experiments import ExperimentDefaults
from streamer.settings.paths import Path, text_of
from streamer.settings.sources import FieldSource, KindValue

_EXPOSURE = TYPE_OF_KIND[EXPOSURES]
_WIDTH = 40
"""Column in which comments begin."""
_MOST_CHARS = 100
"""Of a line with a comment behind it."""
_MOST_OTHERS = 10


def toml_value(value: Any) -> str:
    """A value as TOML writes it.

    >>> toml_value(["a", {"path": "x", "unit": "s"}, True, 0.5])
    '["a", { path = "x", unit = "s" }, true, 0.5]'
    >>> import tomllib
    >>> tomllib.loads("x = " + toml_value('a"\\\\ \\n\\x7f é'))["x"] == 'a"\\\\ \\n\\x7f é'
    True
    """
    if isinstance(value, str):
        return printable_json(json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return repr(value)


def _key(key: str) -> str:
    """A key as TOML writes it.

    >>> _key("op"), _key('Attributes["a.b"]')
    ('op', '"Attributes[\\\\"a.b\\\\"]"')
    """
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def comment(text: str) -> str:
    """A text in one line of a comment."""
    return "# " + "".join(c if c.isprintable() else " " for c in text)


def written(drafts: Sequence[Draft], evidence: FieldEvidence | None = None) -> str:
    """The tables of all that was found, with what speaks for it where that is known."""
    lines: list[str] = []
    number = 0
    for draft in drafts:
        if draft.shape.is_ours:
            lines += ["", comment(f"{', '.join(draft.shape.topics)}: streamer's own events")]
        else:
            lines += ["", *_Writer(draft, evidence, number).source()]
            number += 1
    if any(d.shape.is_ours and _EXPOSURE in d.shape.profiles for d in drafts):
        lines += [
            "",
            "[kafka.topics]",
            _line('exposures = "exposures"', "none are read without it"),
        ]
    ours = [draft.dimensions for draft in drafts if draft.shape.is_ours]
    lines += _dimensions([draft.dimensions for draft in drafts], ours)
    for draft in drafts:
        lines += [""] * bool(draft.experiment)
        lines += [_line(text, note) for text, note in draft.experiment]
    lines += _experiments([draft.dimensions for draft in drafts if not draft.experiment])
    return "\n".join(lines).lstrip("\n") + "\n"


def _line(text: str, note: str = "") -> str:
    return f"{text:<{_WIDTH - 1}} {comment(note)}" if note else text


def _noted(text: str, note: str) -> Iterator[str]:
    """A line with a comment behind it, or before it where both are too long."""
    line = _line(text, note)
    if note and len(line) > _MOST_CHARS:
        yield comment(note)
        line = text
    yield line


class _Writer:
    """Writes one source."""

    def __init__(self, draft: Draft, evidence: FieldEvidence | None, number: int) -> None:
        self._draft = draft
        self._shape = draft.shape
        self._evidence = evidence
        self._number = number
        """Of the source in the settings."""

    def source(self) -> Iterator[str]:
        """Its lines."""
        shape = self._shape
        yield "[[sources]]"
        yield _line(f"topics = {toml_value(shape.topics)}", f"{shape.records:,} records looked at")
        if shape.format != "json":
            yield f"format = {toml_value(shape.format)}"
        if shape.registry is not None:
            yield f"registry = {toml_value(shape.registry)}"
        if shape.preset is not None:
            yield f"preset = {toml_value(shape.preset)}"
        if shape.preset is None:
            yield from self._opening()
        if shape.whole_ids:
            yield "whole_ids = true"
        if shape.positions_from == 0:
            yield "positions_from = 0"
        if self._draft.zone is not None:
            yield _line(f"zone = {toml_value(self._draft.zone)}", "of times without an offset")
        yield from (comment(f"? {doubt}") for doubt in dict.fromkeys(shape.doubts))
        by_kind = tables(self._draft)
        yield from self._of_preset(by_kind)
        if self._draft.knows_kinds or self._draft.ignored:
            yield from self._kind()
        for kind, fields in by_kind.items():
            yield from self._table(kind, fields, by_kind)
        for (kind, name), why in self._draft.left_out.items():
            if kind not in by_kind:
                yield comment(f"? {kind}.{name} is not read: {why}")

    def _opening(self) -> Iterator[str]:
        """How records are taken apart."""
        opening = self._shape.opening
        said = {
            "columns": self._shape.columns,
            "each": opening.each_text,
            "json": opening.json,
            "split": opening.split,
            "decimals": opening.decimals,
        }
        yield from (f"{key} = {toml_value(value)}" for key, value in said.items() if value)

    def _of_preset(self, by_kind: Mapping[str, Fields]) -> Iterator[str]:
        """What speaks for the ids that the preset reads."""
        if self._shape.preset is None or self._evidence is None:
            return
        for name in ("user_id", "item_id"):
            if not any(name in fields for fields in by_kind.values()):
                kinds = self._evidence.kinds(self._number)
                if note := self._evidence.of(self._number, name, kinds):
                    yield comment(f"{name} of the preset: {note}")

    def _table(
        self, kind: str, fields: Mapping[str, FieldSource], by_kind: Mapping[str, Fields]
    ) -> Iterator[str]:
        left_out = {n: why for (of, n), why in self._draft.left_out.items() if of == kind}
        if fields or left_out:
            yield from ("", f"[sources.{kind}.fields]" if kind else "[sources.fields]")
        for name, said in fields.items():
            if name == VARIANT:
                doubts = self._draft.dimensions.variant_doubts
                yield from (comment(f"? {doubt}") for doubt in doubts)
            line = f"{name} = {toml_value(said)}"
            if name in left_out:
                yield from _noted(line, f"? {left_out.pop(name)}")
            else:
                yield from _noted(line, self._note(kind, name, by_kind))
        for name, why in left_out.items():
            yield comment(f"? {name} is not read: {why}")

    def _note(self, kind: str, name: str, by_kind: Mapping[str, Fields]) -> str:
        """What speaks for a field of a table, of the kinds that are read by its line."""
        if self._evidence is None or any(name == d.name for d in self._draft.dimensions.chosen):
            return ""
        kinds = self._evidence.kinds(self._number)
        of_table = [k for k in kinds if (name not in by_kind.get(k, {}) if not kind else k == kind)]
        return self._evidence.of(self._number, name, of_table)

    def _kind(self) -> Iterator[str]:
        kinds = self._shape.kinds
        yield from ("", "[sources.kind]")
        if kinds.fixed is not None:
            fixed = kinds.fixed[0] if len(kinds.fixed) == 1 else kinds.fixed
            yield _line(f"fixed = {toml_value(fixed)}", "all records of the topic")
            return
        rules = self._draft.rules_of_preset
        if kinds.header is not None and not rules:
            yield f"header = {toml_value(kinds.header)}"
        elif kinds.path is not None and not rules:
            yield f"field = {toml_value(text_of(kinds.path))}"
        values_of = dict(kinds.known)
        if self._draft.ignored:
            values_of[""] = [*values_of.get("", []), *self._draft.ignored]
        ignored = {value.text for value in values_of.get("", []) if not value.extra}
        for kind in (*LINE_TYPES, ""):
            before = [rule for its, rule in rules if its == (LINE_TYPES[kind] if kind else None)]
            known = {rule.value for rule in before}
            new = [value for value in values_of.get(kind, []) if value.text not in known]
            kept = [rule for rule in before if not kind or rule.value not in ignored]
            if new:
                yield from _values(
                    kind or "ignored", [_rule(rule) for rule in kept], new, kinds.where
                )
        counted = [v for kind in LINE_TYPES for v in values_of.get(kind, [])]
        if rules and counted:
            yield comment("seen: " + ", ".join(f"{v.text} {v.records:,}" for v in counted))


def _values(
    name: str, before: Sequence[Any], new: Sequence[Value], where: Path | None
) -> Iterator[str]:
    yield f"{name} = ["
    if before:
        yield from (f"    {toml_value(one)}," for one in before)
    for value in new:
        table: dict[str, Any] = {"value": value.text} if value.text else {}
        if where is not None and value.there is not None:
            table["where"] = {text_of(where): value.there}
        table |= value.extra
        said = value.text if table == {"value": value.text} else table
        is_seen = f"{value.records:,} records" if value.records else "not seen"
        yield _line(f"    {toml_value(said)},", is_seen if value.is_sure else f"? {is_seen}")
    yield "]"


def _rule(rule: KindValue) -> Any:
    names = [name for name in rule.__struct_fields__ if name != "value"]
    extra = {name: said for name in names if (said := getattr(rule, name))}
    of_value = {} if rule.value is None else {"value": rule.value}
    return {**of_value, **extra} if extra else rule.value


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
        yield comment("To split by one of these: its line under [sources.fields]")
        for one in left[:_MOST_OTHERS]:
            line = f"# {one.name} = {toml_value(text_of(one.path))}"
            yield _line(line, f"{one.seen.distinct} values: {one.values}")


def _experiments(of_shapes: Sequence[Dimensions]) -> Iterator[str]:
    """A comment for each arm: records say who had which, not what was planned."""
    arms = [(of, one) for of in of_shapes for one in of.chosen if one.name == VARIANT]
    for of, chosen in arms[:1]:
        yield ""
        yield comment("To compare arms, with the control, split and start that were planned")
        for one in (chosen, *of.arms[:_MOST_OTHERS]):
            names = sorted(one.seen.values)
            controls = [each for each in ExperimentDefaults().controls if each in names]
            called = [re.sub(r"[^a-z0-9]+", "_", each.lower()) for each in names_of(one.path)]
            keys = {
                "name": next((each for each in reversed(called) if each != VARIANT), "test"),
                **({"dimension": VARIANT} if one is chosen else {"arm": text_of(one.path)}),
                "control": (controls or names)[0],
                "split": dict.fromkeys(names, 1),
            }
            yield "# [[experiments]]"
            yield from (f"# {key} = {toml_value(value)}" for key, value in keys.items())
            yield _line("# start = YYYY-MM-DD", "like control and split, not in the records")
