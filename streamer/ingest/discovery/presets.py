"""Which preset fits some records, and what it says of their fields already."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from streamer.ingest.discovery.kinds import Kinds, Value, classified, find_kinds, kinds_of_topic
from streamer.ingest.discovery.profile import Profile, Seen, nearly_all, profile_of
from streamer.settings.event_fields import LINE_TYPES, TYPE_OF_KIND
from streamer.settings.paths import Path, path_of, through_lists
from streamer.settings.source_rules import (
    PRESETS,
    Recognition,
    paths_of,
    preset_alone,
    recognition,
)
from streamer.settings.sources import Source, several

_LEAST_SHARE = 0.5
_INSERTED = ("c", "r")
"""What Debezium calls rows that are new, or were there."""


def find_preset(
    profile: Profile, headers: Mapping[str, Seen], topic: str
) -> tuple[str, Kinds] | None:
    """The preset that fits, and what its records are, as far as the preset does not say it; None
    where none does."""
    scalars = profile.scalars
    known = [(preset, recognition(preset)) for preset in PRESETS]
    known = [one for one in known if _has_values(one[1], profile)]
    for preset, by in known:
        for paths in by.paths if by.has_kinds else ():
            is_alone = len(paths) == len(scalars) or not by.is_whole
            if is_alone and _are_there(paths, profile):
                return preset, Kinds()
    for preset, by in known:
        for paths in () if by.has_kinds else by.paths:
            names = _seen_at(paths[0], profile)
            if names is not None and _are_there(paths, profile):
                return preset, _kinds_by(preset_alone(preset), path_of(paths[0]), names)
    for preset, by in known:
        if by.by_names and (kinds := _kinds_of(preset_alone(preset), profile)):
            return preset, kinds
    if ("specversion",) in scalars and ("type",) in scalars:
        return "cloudevents", Kinds(path=("type",), values=_classified(scalars["type",]))
    if "ce_type" in headers:
        return "cloudevents", Kinds(header="ce_type", values=_classified(headers["ce_type"]))
    for root in ((), ("payload",)):
        is_change = any(path[: len(root) + 1] == (*root, "after") for path in scalars)
        if is_change and (op := scalars.get((*root, "op"))) is not None:
            if kinds := _of_column(profile, (*root, "after"), (*root, "op"), op):
                return "debezium", kinds
            kind = kinds_of_topic(topic)
            values = (
                Value(operation, kind or "impression" if operation in _INSERTED else "", n)
                for operation, n in op.values.items()
            )
            return "debezium", Kinds((*root, "op"), values=tuple(values), is_sure=kind is not None)
    return None


def _of_column(profile: Profile, row: Path, op_at: Path, op: Seen) -> Kinds | None:
    """The kinds of inserted rows of a table that has events of several, by a column of it."""
    columns = {path: seen for path, seen in profile.scalars.items() if path[: len(row)] == row}
    rows = max((seen.count for seen in columns.values()), default=0)  # deleted ones are none
    found = find_kinds(Profile(rows, scalars=columns), {}, "")
    if found.path is None or not found.is_sure:
        return None
    inserted = [text for text in op.values if text in _INSERTED]
    values = [
        replace(value, text=text, there=value.text)
        for text in inserted
        for value in found.values
        if value.kind
    ]
    left_out = [Value(text, "", n) for text, n in op.values.items()]
    return Kinds(op_at, values=(*values, *left_out), where=found.path)


def _classified(seen: Seen) -> tuple[Value, ...]:
    return tuple(Value(text, *_kind(text, n)) for text, n in seen.values.most_common())


def _kind(text: str, records: int) -> tuple[str, int, Mapping[str, str | bool]]:
    kind, extra = classified(text)
    return kind, records, extra


def _kinds_of(source: Source, profile: Profile) -> Kinds | None:
    """What the records are, where most have a value that the preset knows; it says of the others
    what their names say."""
    paths = several(source.kind.field or ())
    known, left_out = _names_of(source)
    found = {path: profile.scalars[path] for path in map(path_of, paths) if path in profile.scalars}
    ignored = sum(seen.values[value] for seen in found.values() for value in left_out)
    for path, seen in found.items():
        of_ours = sum(n for value, n in seen.values.items() if value in known)
        of_known = of_ours + ignored
        has_user = supplied(source, "impression", "user_id", profile)
        if of_ours and has_user and of_known >= _LEAST_SHARE * profile.records:
            return _kinds_by(source, path, seen)
    return None


def _names_of(source: Source) -> tuple[dict[str, str], Set[str]]:
    """Name of events → kind, as a source knows them, and the names that it ignores."""
    rules = [(kind, rule.value) for kind, rule in source.kind.rules if rule.value is not None]
    known = {value: kind for kind, value in rules if kind is not None}
    return known, {value for kind, value in rules if kind is None}


def _kinds_by(source: Source, path: Path, seen: Seen) -> Kinds:
    """What the names at a path say: as a source knows them, of others what they sound like."""
    known, left_out = _names_of(source)
    values = (_value(left_out, known, value, n) for value, n in seen.values.most_common())
    return Kinds(path=path, values=tuple(values))


def _are_there(paths: Sequence[str], profile: Profile) -> bool:
    lists = {*profile.lists, *profile.id_lists}
    return all(path_of(each) in lists or _stands(each, profile) for each in paths)


def _has_values(by: Recognition, profile: Profile) -> bool:
    """Whether what stands at the paths of a preset is what it says."""
    return all(
        at not in profile.scalars or _match(by.values[path], profile.scalars[at])
        for path in by.values
        for at in [path_of(path)]
    )


def _match(pattern: str, seen: Seen) -> bool:
    fitting = sum(n for text, n in seen.values.items() if re.fullmatch(pattern, text))
    return nearly_all(fitting, sum(seen.values.values()))


def _value(left_out: Set[str], known: Mapping[str, str], text: str, records: int) -> Value:
    if text in known:
        return Value(text, TYPE_OF_KIND[known[text]], records)
    if text in left_out:
        return Value(text, "", records)
    return Value(text, *_kind(text, records))


def supplied(source: Source, kind: str, name: str, profile: Profile) -> bool:
    """Whether a source reads a field of the records of a kind from where something stands."""
    said = source.fields_of(LINE_TYPES[kind]).get(name)
    if said is False:
        return True
    return said is not None and any(_stands(path, profile) for path in paths_of(said))


def _stands(path: str, profile: Profile) -> bool:
    return _seen_at(path, profile) is not None


def _seen_at(path: str, profile: Profile) -> Seen | None:
    """The values at a path, which may lead through lists; None where there are none."""
    lists, rest = through_lists(path_of(path))
    for at, _ in lists:
        if not rest and at in profile.id_lists:
            return profile.id_lists[at]
        if at not in profile.lists:
            return None
        profile = profile.lists[at]
    return profile.scalars.get(rest)


def preset_of_rows(rows: Sequence[Sequence[str]]) -> Sequence[str]:
    """The columns of rows without a header, as the preset knows them whose values they have; else
    none."""
    for name in PRESETS:
        columns = preset_alone(name).columns
        if not columns or any(len(row) != len(columns) for row in rows):
            continue
        cells = [{n: x for n, x in zip(columns, row, strict=True) if x} for row in rows]
        some = (profile_of(cells[:1]), profile_of(cells))  # the first row may be a header
        if all(_has_values(recognition(name), profile) for profile in some):
            return columns
    return ()


def shows_nothing(preset: str, profile: Profile) -> bool:
    """Whether no record has a name that a preset knows as that of an impression."""
    source = preset_alone(preset)
    shown = {rule.value for kind, rule in source.kind.rules if kind == "impressions"}
    paths = map(path_of, several(source.kind.field or ()))
    seen = [profile.scalars[path].values.keys() for path in paths if path in profile.scalars]
    return bool(shown and seen) and not any(shown & names for names in seen)


def preset_of_columns(columns: Sequence[str]) -> str | None:
    """The preset whose table has such columns."""
    return next((name for name in PRESETS if preset_alone(name).columns == tuple(columns)), None)
