"""Rules of ``[[sources]]`` and ``[clusters.NAME]`` that types cannot say, and the presets laid
under them."""

from __future__ import annotations

import re
import tomllib
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from importlib import resources
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.clusters import MAIN
from streamer.settings.durations import moment_of
from streamer.settings.event_fields import (
    ACTIONS,
    ELEMENT_FIELDS,
    EXPOSURES,
    FIELDS,
    LINE_TYPES,
    MOMENTS,
    TYPE_OF_KIND,
    field_names,
)
from streamer.settings.logs import kinds_of
from streamer.settings.names import nearest
from streamer.settings.paths import Lists, lists_in, path_of
from streamer.settings.registry import validate_registry
from streamer.settings.section import Section
from streamer.settings.sources import (
    COMMA,
    FieldSource,
    KindValue,
    Source,
    full_name,
    is_pattern,
    several,
)

if TYPE_CHECKING:
    from streamer.settings.model import Settings

SAME_AS = {"rudderstack": "segment"}
"""Presets that are others, under a name of their own."""
_FOLDER = resources.files("streamer.settings").joinpath("presets")
PRESETS = tuple(
    sorted([*SAME_AS, *(f.name[: -len(".toml")] for f in _FOLDER.iterdir() if f.is_file())])
)
"""A file each, and those that are others."""
_DIMENSIONS = ("variant", "surface")
"""Those that presets know."""
UNITS = ("ms", "s", "us", "ns", "iso")
LONG_UNITS = {"min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Units that are counted from a moment alone, in milliseconds."""
_FORMS = ("path", "constant", "header", "key", "timestamp", "product")
_HOW = ("unit", "format", "from", "scale", "time")
"""How a value is written."""
_DIRECTIVES = re.compile(r"(?:[^%]|%[%YymdeHIMSfpbBaAzZTDF])+")
_UNSCALED = ("position",)
_CLUSTER_NAME = re.compile(rf"[a-z0-9_-]{{1,{limits.MAX_CLUSTER_NAME_CHARS}}}")


def with_presets(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document of settings in which each source has the keys of its preset, too."""
    sources = data.get("sources")
    if not isinstance(sources, list):
        return data
    dimensions = data.get("dimensions")
    left_out = set()
    if isinstance(dimensions, list):
        names = [one.get("name") for one in dimensions if isinstance(one, dict)]
        left_out = {name for name in _DIMENSIONS if name not in names}
    made = [_with_preset(source, left_out, _reads_exposures(data)) for source in sources]
    return {**data, "sources": made}


def _reads_exposures(data: Mapping[str, Any]) -> bool:
    """Whether events of exposures have somewhere to go: rekeyed ones need a topic."""
    kafka = data.get("kafka")
    if not isinstance(kafka, dict) or not kafka.get("rekeyed"):
        return True
    topics = kafka.get("topics")
    return isinstance(topics, dict) and "exposures" in topics


def _with_preset(source: Any, left_out: Set[str], reads_exposures: bool = True) -> Any:
    """``left_out``: fields of the preset that the settings have no dimension for.
    ``reads_exposures``: whether its exposures are read, where it has events of other kinds."""
    name = source.get("preset") if isinstance(source, dict) else None
    if name not in PRESETS:
        return source  # refused with a place by the rules
    preset = {key: said for key, said in _preset(name).items() if key != "recognise"}
    if not reads_exposures:
        preset = _without_exposures(preset)
    fields = preset.get("fields", {}).items()
    preset["fields"] = {ours: said for ours, said in fields if ours not in left_out}
    made = laid_over(preset, source)
    kind, own = preset.get("kind"), source.get("kind")
    return made | {"kind": _kinds(kind, own)} if kind and isinstance(own, dict) else made


@cache
def _preset(name: str) -> Mapping[str, Any]:
    return tomllib.loads(_text(name))


def _text(name: str) -> str:
    return _FOLDER.joinpath(f"{SAME_AS.get(name, name)}.toml").read_text("utf-8")


class Recognition(Section, frozen=True):
    """[recognise] of a preset: what tells its records."""

    paths: tuple[tuple[str, ...], ...] = ()
    """Paths that are all there, of one list; the first is that of the names of events."""
    has_kinds: bool = False
    """Whether the preset knows what each record is without names of events."""
    is_whole: bool = False
    """Whether the records of a preset that has kinds hold nothing else."""
    by_names: bool = False
    """Whether the names of most events tell it."""
    values: dict[str, str] = msgspec.field(default_factory=dict)
    """Path → what nearly all of its values match, a regular expression."""
    doubt: str = ""
    """What the preset decides that another one might decide otherwise, for people."""


@cache
def recognition(preset: str) -> Recognition:
    """What tells the records of a preset; nothing of one that is another."""
    rules = {} if preset in SAME_AS else _preset(preset).get("recognise", {})
    return msgspec.convert(rules, Recognition)


def says_itself(source: Source, name: str) -> bool:
    """Whether a source says where a field stands, otherwise than its preset does."""
    preset = preset_of(source)
    of_preset = False if preset is None else preset.fields.get(name, False)
    return source.fields.get(name, False) not in (False, of_preset)


def _kinds(preset: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """[sources.kind] over that of a preset: what the preset ignores stays ignored where it is not
    counted here, and what is ignored here is not counted.

    >>> own = {"ignored": ["a", "e"], "session": ["c"]}
    >>> _kinds({"click": ["a", "b"], "ignored": ["c", "d"]}, own)
    {'click': ['b'], 'ignored': ['d', 'a', 'e'], 'session': ['c']}
    """
    ignored = own.get("ignored", [])
    listed = [one for key in LINE_TYPES for one in _listed(own.get(key))]
    counted = [_value_of(one) for one in listed if not _has_conditions(one)]
    left_out = [_value_of(one) for one in _listed(ignored)]
    below = {
        key: [one for one in said if _value_of(one) not in left_out] if key in LINE_TYPES else said
        for key, said in preset.items()
    }
    still = [one for one in preset.get("ignored", ()) if _value_of(one) not in counted]
    is_list = isinstance(ignored, list)
    return laid_over(below, own) | {"ignored": [*still, *ignored] if is_list else ignored}


def _without_exposures(preset: Mapping[str, Any]) -> dict[str, Any]:
    """A preset whose exposures are ignored, where it has events of other kinds.

    >>> _without_exposures({"kind": {"click": ["a"], "exposure": ["b"], "ignored": ["c"]}})
    {'kind': {'click': ['a'], 'ignored': ['b', 'c']}}
    >>> _without_exposures({"kind": {"exposure": ["b"]}})
    {'kind': {'exposure': ['b']}}
    """
    own, key = preset.get("kind", {}), TYPE_OF_KIND[EXPOSURES]
    exposures = own.get(key, ())
    if not any(of in own for of in LINE_TYPES if of != key):
        return dict(preset)
    kind = {of: values for of, values in own.items() if of != key}
    return {**preset, "kind": kind | {"ignored": [*exposures, *own.get("ignored", ())]}}


def _listed(values: Any) -> Sequence[Any]:
    return values if isinstance(values, list) else ()


def _has_conditions(rule: Any) -> bool:
    return isinstance(rule, dict) and not rule.keys().isdisjoint(("where", "has", "lacks"))


def _value_of(rule: Any) -> Any:
    """The value that a rule is of; a rule without one is none that another can mean."""
    return rule.get("value", rule) if isinstance(rule, dict) else rule


def preset_of(source: Source) -> Source | None:
    """The source that the preset of one is alone; None where it has none."""
    return preset_alone(source.preset) if source.preset in PRESETS else None


@cache
def preset_alone(name: str) -> Source:
    """A preset as a source, with the dimensions that it knows."""
    alone = _with_preset({"preset": name, "topics": ["x"]}, frozenset())
    return msgspec.convert(alone, Source, strict=False)


def laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two documents as one: tables key by key, all other values those of ``over``.

    >>> laid_over({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"c": 3}, "d": [2]})
    {'a': {'b': 1, 'c': 3}, 'd': [2]}
    """
    made = dict(under)
    for key, value in over.items():
        below = made.get(key)
        is_table = isinstance(value, dict) and isinstance(below, dict) and not _is_form(below)
        made[key] = laid_over(below, value) if is_table and below is not None else value
    return made


def _is_form(table: Mapping[str, Any]) -> bool:
    """Whether a table says where one field stands."""
    return table.keys() <= {*_FORMS, *_HOW}


def validate_sources(s: Settings) -> None:
    """Raise SettingsError where a source cannot be read as it says."""
    taken: dict[str, str] = {}
    for i, source in enumerate(s.sources):
        at = f"at sources[{i}]"
        if source.preset is not None and source.preset not in PRESETS:
            close = nearest(source.preset, PRESETS)
            meant = f"did you mean {close!r}?" if close else f"one of {', '.join(PRESETS)}"
            raise SettingsError(f"preset = {source.preset!r}: {meant}; {at}")
        if not source.topics:
            raise SettingsError(f"topics = []: at least one name, or a pattern like '^web-'; {at}")
        for topic in source.topics:
            _validate_topic(topic, at)
            name = full_name(topic, source.cluster)
            if name == s.kafka.topics.dead_letters:
                raise SettingsError(f"topic {topic!r} is kafka.topics.dead_letters; {at}")
            if name in taken:
                raise SettingsError(f"topic {name!r} is in {taken[name]}, too; {at}")
            taken[name] = f"sources[{i}]"
        if source.positions_from not in (0, 1):
            raise SettingsError(f"positions_from = {source.positions_from}: 0 or 1; {at}")
        validate_zone(source.zone, f"zone; {at}")
        _validate_missing(source, at)
        _validate_columns(source, at)
        validate_registry(source.format, source.schemas, at)
        _validate_kind(source, at)
        _validate_fields(s, source, at)
    if s.kafka.rekeyed:
        _validate_rekeyed(s, taken)
    elif s.sources and s.events != type(s.events)():
        raise SettingsError(
            "[events] says how the topics of [kafka.topics] look, which are not read where there "
            "are [[sources]]: move what it says into them"
        )
    if len(s.sources) > limits.MAX_SOURCES:
        raise SettingsError(f"{len(s.sources)} sources; at most {limits.MAX_SOURCES}")


def _validate_rekeyed(s: Settings, read: Mapping[str, str]) -> None:
    if not s.sources:
        raise SettingsError("kafka.rekeyed = true: there are no [[sources]] to rekey")
    if s.events.fields or s.events.positions_from != 1:
        raise SettingsError(
            "kafka.rekeyed = true: rekeyed events have our own names, and positions from 1: remove "
            "[events.fields] and events.positions_from; [[sources]] says how the sources look"
        )
    held = {kind for source in s.sources for t in source.topics for kind in kinds_of(source, t)}
    if EXPOSURES in held and s.kafka.topics.exposures is None:
        raise SettingsError(
            "kafka.rekeyed = true: a source has events of exposures, which need a topic to be "
            "written to: set kafka.topics.exposures"
        )
    for kind, topic in s.kafka.topics.named.items():
        if topic in read:
            raise SettingsError(
                f"topic {topic!r} is in {read[topic]} and kafka.topics.{kind}: with kafka.rekeyed "
                "it would be read and written; name another topic to write to"
            )


def _validate_topic(topic: str, at: str) -> None:
    if not is_pattern(topic):
        if re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) is None:
            raise SettingsError(f"{topic!r} is no name of a topic, nor a pattern (^…); {at}")
        return
    try:
        re.compile(topic)
    except re.error as error:
        raise SettingsError(f"{topic!r} is no regular expression: {error}; {at}") from None


def _validate_columns(source: Source, at: str) -> None:
    for name in source.columns:
        if source.columns.count(name) > 1:
            raise SettingsError(f"columns has {name!r} twice: each name once; {at}")


def _validate_missing(source: Source, at: str) -> None:
    for text in source.missing:
        if not 0 < len(text) <= limits.MAX_LABEL_CHARS:
            most = limits.MAX_LABEL_CHARS
            raise SettingsError(f"missing has {text[:20]!r}: texts of 1 to {most} characters; {at}")


def validate_zone(name: str, at: str) -> None:
    """Raise SettingsError where there is no such time zone."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(
            f"zone = {name!r}: no such time zone; write it like 'Europe/Berlin'; at {at}"
        ) from None


def _validate_kind(source: Source, at: str) -> None:
    kind, at = source.kind, f"{at}.kind"
    fixed = () if kind.fixed is None else several(kind.fixed)
    for one in fixed:
        if one not in LINE_TYPES:
            raise SettingsError(f"fixed = {one!r}: one of {', '.join(LINE_TYPES)}; {at}")
    where: dict[str, str | None] = {}
    for events, rule in kind.rules:
        _validate_rule(events, rule, bool(fixed), at)
        if rule.value is None or rule.conditions:
            continue
        before = where.setdefault(rule.value, events)
        if None in (before, events) and before != events:
            raise SettingsError(f"{rule.value!r} is both ignored and {before or events}; {at}")
    outer = () if source.each is None else _valid_lists(source.each, at)
    paths = (
        *several(kind.field or ()),
        *(path for _, rule in kind.rules for path, _ in rule.conditions),
    )
    for path in paths:
        lists = _valid_lists(path, at)
        if lists != outer[: len(lists)]:
            raise SettingsError(
                f"{path!r} passes through a list that `each` does not: name one element, like [0] "
                f"or [key=text], instead of []; {at}"
            )
    if kind.schema and source.format not in ("avro", "protobuf"):
        raise SettingsError(f"schema = true: of format avro or protobuf; {at}")


def _validate_rule(events: str | None, rule: KindValue, is_fixed: bool, at: str) -> None:
    shown = repr(rule.value) if rule.value is not None else "a rule"
    if rule.feedback is not None and events != "clicks":
        raise SettingsError(f"{shown}: only clicks have feedback; {at}")
    if rule.refund and events != "conversions":
        raise SettingsError(f"{shown}: refund = true: only conversions are refunds; {at}")
    if rule.action is not None and (events != "sessions" or rule.action not in ACTIONS):
        raise SettingsError(
            f"{shown}: action = {rule.action!r}: of sessions one of {', '.join(ACTIONS)}; {at}"
        )
    if rule.value is None and not rule.conditions and not (is_fixed or events is None):
        raise SettingsError(f"a rule without value, where, has and lacks is met by none; {at}")


def _valid_lists(path: str, at: str) -> Lists:
    """The lists that a path passes through; SettingsError where it is none."""
    _validate_path(path, at)
    return lists_in(path)


def _validate_fields(s: Settings, source: Source, at: str) -> None:
    own = (name for fields in s.own_fields.values() for name in fields)
    others = (*s.kept_fields, *s.policy_fields, *own)
    every = tuple(
        dict.fromkeys((*(n for k in LINE_TYPES.values() for n in field_names(k)), *others))
    )
    for key, kind in LINE_TYPES.items():
        for ours, field_source in getattr(source, key).fields.items():
            names = (*field_names(kind), *others)
            _validate_field(ours, field_source, names, f"{at}.{key}.fields")
    for ours, field_source in source.fields.items():
        _validate_field(ours, field_source, every, f"{at}.fields")
    for path, by in source.split.items():
        if "" in several(by) or not by:
            raise SettingsError(f"split: {path!r} = {by!r}: a text, or several, none empty; {at}")
    for path, digits in source.decimals.items():
        most = limits.MAX_DECIMALS
        if digits != COMMA and not (isinstance(digits, int) and 0 <= digits <= most):
            raise SettingsError(
                f'decimals: {path!r} = {digits!r}: digits from 0 to {most}, or "{COMMA}"; {at}'
            )
    for path in (*source.json, *source.split, *source.decimals):
        if _valid_lists(path, at):
            raise SettingsError(f"{path!r}: no list may be on the way; {at}")
    if source.each is not None:
        _validate_path(source.each, at)
        if not source.each.endswith("[]"):
            raise SettingsError(f"each = {source.each!r}: it ends with [], like 'batch[]'; {at}")
    kinds = dict.fromkeys(k for topic in source.topics for k in kinds_of(source, topic))
    if not kinds and not source.kind.by_topic:
        how = 'write fixed = "impression", or a field and its values, in [sources.kind]'
        raise SettingsError(f"kind: nothing says what these records are: {how}; {at}")
    for kind in kinds:
        _validate_kind_of_events(s, source, kind, at)


NEEDED = {"sessions": ("ts",), EXPOSURES: ("ts", "user_id", "experiment", "arm")}
"""Kind of events → fields that it needs, where that is not a time and an item."""


def _validate_kind_of_events(s: Settings, source: Source, kind: str, at: str) -> None:
    """What is needed is there, and what passes through a list belongs to its items."""
    key = TYPE_OF_KIND[kind]
    said = source.fields_of(kind)
    needed = NEEDED.get(kind, ("ts", "item_id"))
    for name in needed:
        is_named = name == "item_id" and said.get("impression_id", False) is not False
        if said.get(name, False) is False and not is_named:
            raise SettingsError(
                f"{name}: {kind} need it, and only fields that are named here are read: write "
                f"where it stands, like {name} = 'path.to.it', in [sources.fields] or "
                f"[sources.{key}.fields]; {at}"
            )
    events = () if source.each is None else lists_in(source.each)
    of_items = [lists for lists in lists_of(said.get("item_id", False), events) if lists]
    of_policies = s.policy_fields if kind == "impressions" else ()
    of_element = {*ELEMENT_FIELDS[kind], *of_policies, *s.own_fields[kind]}
    known = {*field_names(kind), *s.kept_fields, *of_element}
    own_fields = getattr(source, key).fields
    for name, field_source in said.items():
        if name not in known or (name == "item_id" and name not in needed):
            continue  # said of the source, for other kinds
        found = lists_of(field_source, events)
        if not all(_are_in_line(lists_in(path), events) for path in paths_of(field_source)):
            raise SettingsError(
                f"{name}: its path passes through a list beside {source.each}, which `each` names: "
                f"name one element, like [0] or [key=text], instead of []; {at}"
            )
        read = [
            not lists
            or (name in of_element and any(lists == own[: len(lists)] for own in of_items))
            for lists in found
        ]
        is_general = name not in own_fields and "item_id" in own_fields
        if all(read) or (
            name in of_element and (any(read) or is_general or _is_of_preset(source, name, kind))
        ):
            continue
        what = "no list that item_id passes through" if name in of_element else "a list"
        raise SettingsError(
            f"{name}: its path passes through {what}: name one element, like [0] or [key=text], "
            f"instead of []; {at}"
        )


def _is_of_preset(source: Source, name: str, kind: str) -> bool:
    """Whether a field is what the preset says of it, whose items may stand elsewhere here."""
    preset = preset_of(source)
    return preset is not None and source.fields_of(kind)[name] == preset.fields_of(kind).get(name)


def lists_of(said: FieldSource, events: Lists) -> list[Lists]:
    """The lists that each form of a field passes through, within those of a record's events."""
    found = []
    for form in forms_of(said):
        for lists in [lists_in(path) for path in paths_in(form)] or [()]:
            found.append(lists[len(events) :] if _are_in_line(lists, events) else lists)
    return found


def _are_in_line(lists: Lists, events: Lists) -> bool:
    """Whether a path leads to the events, or on from them."""
    both = min(len(lists), len(events))
    return lists[:both] == events[:both]


def _validate_field(ours: str, said: FieldSource, known: tuple[str, ...], at: str) -> None:
    if ours not in known or ours in ("type", "items"):
        close = nearest(ours, known)
        meant = f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"
        raise SettingsError(f"{ours}: no event field or dimension is called so: {meant}; {at}")
    if said is True:
        raise SettingsError(f"{ours} = true: a path, a table, a list of them, or false; {at}")
    for form in forms_of(said):
        _validate_form(ours, form, f"{at}.{ours}")


_GONE = {
    ("kafka", "check_crcs"): "checksums of fetched batches are always verified now",
    ("exporter", "series_warning"): "`streamer check` always warns above 50,000 series now",
}
"""Section and key of settings that nobody needed → what holds without them."""


def refuse_old_forms(data: Mapping[str, Any]) -> None:
    """Raise SettingsError where a document says what is written otherwise now."""
    for (section, key), instead in _GONE.items():
        if isinstance(table := data.get(section), dict) and key in table:
            raise SettingsError(f"{key}: {instead}; remove it; at {section}")
    limits, alerts = data.get("limits"), data.get("alerts")
    for at, table in (
        ("limits", limits),
        *((f"alerts[{i}]", a) for i, a in enumerate(alerts or ())),
    ):
        if isinstance(table, dict) and "crossings" in table:
            raise SettingsError(
                "crossings: nothing is stored for them any more; remove it, and run `streamer why "
                f"ALERT`, which reads the log again; at {at}"
            )
    sources = data.get("sources")
    for i, source in enumerate(sources if isinstance(sources, list) else ()):
        if not isinstance(source, dict):
            continue
        at = f"at sources[{i}]"
        if "roots" in source:
            raise SettingsError(
                "roots: only fields that are named are read now: write each that you need in "
                f"[sources.fields], like country = 'geo.country'; {at}"
            )
        kind = source.get("kind")
        for value in kind.get("click", ()) if isinstance(kind, dict) else ():
            if isinstance(value, dict) and "shown" in value:
                text = value.get("value")
                raise SettingsError(
                    f"shown: list {text!r} in impression, too: a record is an event of each kind "
                    f"that lists its value; {at}.kind"
                )
        general = source.get("fields")
        for key in ("", *LINE_TYPES):
            table = source.get(key) if key else source
            fields = table.get("fields") if isinstance(table, dict) else None
            if isinstance(fields, dict):
                place = f"{at}.{key}.fields" if key else f"{at}.fields"
                _refuse_old_fields(fields, general if isinstance(general, dict) else {}, place)


def _refuse_old_fields(fields: Mapping[str, Any], general: Mapping[str, Any], at: str) -> None:
    if "items" in fields:
        items, item = fields["items"], fields.get("item_id", general.get("item_id", "item_id"))
        if items is False:
            raise SettingsError(
                f"items = false: remove it, item_id alone says where it stands; {at}"
            )
        path = f"{items}[].{item}" if isinstance(item, str) else f"{items}[].item_id"
        raise SettingsError(
            f"items = {items!r}: write item_id = {path!r} (or {items}[] for a list of ids), and "
            f"the other fields of an item likewise; {at}"
        )
    for ours, said in fields.items():
        for text in said if isinstance(said, list) else (said,):
            if isinstance(text, str) and text.startswith("$."):
                raise SettingsError(f"{ours} = {text!r}: leave out `$.`; {at}")


def forms_of(said: FieldSource) -> Iterator[dict[str, Any]]:
    """Where a field stands, as tables."""
    if isinstance(said, bool):
        return
    for one in said if isinstance(said, tuple) else (said,):
        yield {"path": one} if isinstance(one, str) else one


def paths_in(form: Mapping[str, Any]) -> Sequence[str]:
    """The paths of one form of a field; none of one that stands beside the value of a record."""
    paths = (form["path"],) if "path" in form else form.get("product", ())
    return (*paths, form["time"]) if "time" in form else paths


def paths_of(said: FieldSource) -> Iterator[str]:
    """All paths of a field."""
    for form in forms_of(said):
        yield from paths_in(form)


def _validate_form(ours: str, form: dict[str, Any], at: str) -> None:
    given = [name for name in _FORMS if name in form]
    others = form.keys() - {*_FORMS, *_HOW}
    if len(given) != 1 or others:
        raise SettingsError(
            f"{form}: exactly one of {', '.join(_FORMS)}, and of {', '.join(_HOW)}; {at}"
        )
    name, value = given[0], form[given[0]]
    _validate_how(ours, form, at)
    if name == "path":
        if len({_valid_lists(path, at) for path in paths_in(form)}) > 1:
            raise SettingsError(f"{form}: both stand in one list, or in none; {at}")
    elif name == "product":
        if ours != "value" or not isinstance(value, list) or len(value) != 2:
            raise SettingsError(f"product = {value!r}: two paths, of `value` only; {at}")
        if len({_valid_lists(path, at) for path in value}) > 1:
            raise SettingsError(f"product = {value!r}: both stand in one list, or in none; {at}")
    elif name == "constant" and not (
        isinstance(value, str | int | bool) or (isinstance(value, float) and isfinite(value))
    ):
        raise SettingsError(f"constant = {value!r}: a text, a number, or true or false; {at}")
    elif name == "header" and not isinstance(value, str):
        raise SettingsError(f"header = {value!r}: the name of a Kafka header; {at}")
    elif name in ("key", "timestamp") and value is not True:
        raise SettingsError(f"{name} = {value!r}: true; {at}")


def _validate_how(ours: str, form: dict[str, Any], at: str) -> None:
    """How a value is written: times have a unit or a format, other numbers may be scaled."""
    is_moment = ours in MOMENTS
    units = (*UNITS, *LONG_UNITS) if "from" in form else UNITS
    if "unit" in form and (not is_moment or form["unit"] not in units):
        raise SettingsError(
            f"unit = {form['unit']!r}: of {', '.join(MOMENTS)} one of {', '.join(units)}; {at}"
        )
    for name in ("format", "from", "time"):
        if name in form and not is_moment:
            raise SettingsError(f"{name}: of {', '.join(MOMENTS)} only; {at}")
    if "format" in form and (form.keys() & {"unit", "from"}):
        raise SettingsError(f"{form}: a format, or a unit; {at}")
    if "time" in form and ("path" not in form or form.keys() & {"unit", "from", "scale"}):
        raise SettingsError(f"{form}: time is of the path of a date, with a format at most; {at}")
    text = form.get("format", "%Y")
    if not isinstance(text, str) or _DIRECTIVES.fullmatch(text) is None:
        raise SettingsError(
            f"format = {text!r}: like '%m/%d/%Y %I:%M:%S %p', with %Y %y %m %b %d %e %H %I %M %S "
            f"%f %p %a %z %Z %F %T %D and %%; {at}"
        )
    if "from" in form:
        moment_of(form["from"], f"from; {at}")
    scale = form.get("scale", 1)
    field = FIELDS.get(ours)
    is_scalable = field is None or (field.low is not None and ours not in _UNSCALED)
    is_number = isinstance(scale, int | float) and not isinstance(scale, bool)
    if "scale" in form and not (is_scalable and is_number and 0 < scale < float("inf")):
        raise SettingsError(
            f"scale = {scale!r}: a number above 0, of fields that are numbers; {at}"
        )


def _validate_path(path: Any, at: str) -> None:
    if not isinstance(path, str):
        raise SettingsError(f"{path!r} is no path; {at}")
    try:
        path_of(path)
    except SettingsError as error:
        raise SettingsError(f"{error}; {at}") from None


def validate_clusters(s: Settings) -> None:
    """Raise SettingsError where sources and clusters do not fit together."""
    if len(s.clusters) > limits.MAX_CLUSTERS:
        raise SettingsError(f"{len(s.clusters)} clusters; at most {limits.MAX_CLUSTERS}")
    named = {source.cluster for source in s.sources}
    for name in s.clusters:
        at = f"at clusters.{name}"
        if _CLUSTER_NAME.fullmatch(name) is None or name == MAIN:
            raise SettingsError(
                f"bad name {name!r}: 1 to {limits.MAX_CLUSTER_NAME_CHARS} of a-z, 0-9, _ and -, "
                f"and not {MAIN}; {at}"
            )
        if name not in named:
            raise SettingsError(
                f"no source reads this cluster: remove it, or set cluster = {name!r} in "
                f"[[sources]]; {at}"
            )
    for i, source in enumerate(s.sources):
        if source.cluster is not None and source.cluster not in s.clusters:
            there = ", ".join(s.clusters) or "none"
            raise SettingsError(
                f"cluster = {source.cluster!r}: there is no [clusters.{source.cluster}]; there "
                f"are: {there}; without `cluster` it is that of [kafka]; at sources[{i}]"
            )
        if source.cluster is not None and s.kafka.rekeyed:
            raise SettingsError(
                f"kafka.rekeyed = true: sources[{i}] is of cluster {source.cluster!r}, and no "
                "transaction spans clusters: mirror its topics to the cluster of [kafka], or read "
                "it without rekeying"
            )
    if s.sources and None not in named:
        raise SettingsError(
            "all sources are of other clusters: at least one must be of [kafka] (without "
            "`cluster`), as its consumer group shares the partitions out among the workers"
        )
