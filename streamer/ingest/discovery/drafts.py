"""What will be written of one shape: what was found, with what was corrected since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from streamer.ingest.discovery.dimensions import Dimensions
from streamer.ingest.discovery.kinds import Value
from streamer.ingest.discovery.shapes import Shape
from streamer.settings.event_fields import FIELDS, LINE_TYPES
from streamer.settings.paths import Each, Path, path_of, text_of
from streamer.settings.source_rules import paths_of, preset_alone
from streamer.settings.sources import FieldSource, KindValue, Source

Fields = dict[str, FieldSource]
_NEEDED = ("ts", "user_id")
"""Fields that each event has, most likely in one place."""


@dataclass
class Draft:
    """A shape, its dimensions, and what was corrected."""

    shape: Shape
    dimensions: Dimensions = field(default_factory=lambda: Dimensions((), ()))
    zone: str | None = None
    ignored: list[Value] = field(default_factory=list)
    """Values of what says the kind that are ignored beside those of the shape."""
    experiment: Sequence[tuple[str, str]] = ()
    """Lines of the experiment that a table without times is, each with a comment."""
    left_out: dict[tuple[str, str], str] = field(default_factory=dict)
    """(kind, field) → where it would stand, and why it is not read."""

    @property
    def knows_kinds(self) -> bool:
        """Whether what each record is was found, rather than said by the preset alone."""
        kinds = self.shape.kinds
        return bool(kinds.path or kinds.header or kinds.fixed or kinds.values)

    @property
    def preset(self) -> Source | None:
        """The preset as a source."""
        return None if self.shape.preset is None else preset_alone(self.shape.preset)

    @property
    def rules_of_preset(self) -> Sequence[tuple[str | None, KindValue]]:
        """As `SourceKind.rules`; none where the preset leaves it to the settings what counts."""
        rules = [] if self.preset is None else self.preset.kind.rules
        return rules if any(kind is not None for kind, _ in rules) else ()

    @property
    def each(self) -> Path:
        """The path to each event of a record."""
        if self.preset is not None and self.preset.each is not None:
            return path_of(self.preset.each)
        return self.shape.opening.each

    def of_preset(self, kind: str) -> Mapping[str, FieldSource]:
        """What the preset says of a kind."""
        return {} if self.preset is None else self.preset.fields_of(LINE_TYPES[kind])

    def said(self, kind: str) -> Fields:
        """Where the fields of a kind stand, those of the preset with them."""
        return {**self.of_preset(kind), **self.shape.fields.get(kind, {})}

    def leave_out(self, kind: str, name: str, why: str) -> None:
        """Stop reading a field of a kind."""
        said = self.said(kind)[name]
        where = next((text for text in paths_of(said)), name)
        self.left_out[kind, name] = f"{where}: {why}"
        own = self.shape.fields.setdefault(kind, {})
        own[name] = False
        is_free = name not in self.of_preset(kind) and not any(
            fields.get(name, False) for fields in self.shape.fields.values()
        )
        if is_free:
            for fields in self.shape.fields.values():
                fields.pop(name, None)

    def ignore(self, kind: str, texts: Sequence[str] | None = None) -> int:
        """Count the records of a kind no longer, or those with some values; how many there are of
        them."""
        kinds, values, records = self.shape.kinds, list[Value](), 0
        for value in kinds.values:
            if value.kind != kind or (texts is not None and value.text not in texts):
                values.append(value)
                continue
            records += value.records
            here = (value.text, value.there)
            is_other = any((v.text, v.there) == here and v.kind != kind for v in kinds.values)
            if not is_other:
                values.append(replace(value, kind="", extra={}, is_sure=False))
        self.shape.kinds = replace(kinds, values=tuple(values))
        if not any(value.kind == kind for value in values):
            self.shape.fields.pop(kind, None)
            self.shape.profiles.pop(kind, None)
            marks = (f"({kind})",)
            self.shape.doubts = [d for d in self.shape.doubts if not d.endswith(marks)]
        return records


def through(said: FieldSource, each: Path = ()) -> list[str]:
    """The list that each path of a field passes through, from an event that stands at ``each``; ""
    where it passes through none."""
    found = []
    for text in paths_of(said):
        path = path_of(text)
        path = path[len(each) :] if path[: len(each)] == each else path
        last = max((i for i, step in enumerate(path) if isinstance(step, Each)), default=-1)
        found.append(text_of(path[: last + 1]))
    return found


def tables(draft: Draft) -> dict[str, Fields]:
    """Kind → the lines of its table; "" → those of all kinds."""
    fields = draft.shape.fields
    kinds = [kind for kind in LINE_TYPES if kind in fields]
    base: Fields = {}
    for kind in kinds:
        for name, said in fields[kind].items():
            if name not in base and said is not False and _is_of_all(draft, kinds, name, said):
                base[name] = said
    found = {"": base}
    for kind in kinds:
        of_preset = draft.of_preset(kind)
        found[kind] = {
            name: said
            for name, said in fields[kind].items()
            if base.get(name) != said and (said is not False or name in {*base, *of_preset})
        }
    for one in draft.dimensions.chosen:
        if one.path:
            base[one.name] = text_of(one.path)
    return found


def _is_of_all(draft: Draft, kinds: Sequence[str], name: str, said: FieldSource) -> bool:
    """Whether a field stands in the table of all kinds: where no other that may have it would look
    for it in vain, or in a list that is none of its items."""
    may = [kind for kind in kinds if kind in _kinds_with(name)]
    own = {kind: draft.shape.fields[kind].get(name) for kind in may}
    preset = draft.preset
    if preset is not None and any(name in getattr(preset, kind).fields for kind in may):
        return False
    if name == "item_id":
        return not any(one is None and name in draft.of_preset(kind) for kind, one in own.items())
    if any(through(said, draft.each)):
        return all(one == said for one in own.values())
    is_free = name in _NEEDED and not any(name in draft.of_preset(kind) for kind in may)
    return is_free or all(one not in (None, False) for one in own.values())


def _kinds_with(name: str) -> list[str]:
    """The kinds that have a field; all where it is none of ours."""
    field = FIELDS.get(name)
    return [k for k, of in LINE_TYPES.items() if field is None or of in field.kinds]
