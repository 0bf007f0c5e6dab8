"""Lists that were shown in whose records stands what was clicked or bought: a flag of each item, or
a list of ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from streamer.ingest.discovery.kinds import YES, Kinds, Value, are_flags, classified, with_article
from streamer.ingest.discovery.names import CLICK_COLUMNS, OTHER_NAMES, rank
from streamer.ingest.discovery.profile import Profile, Seen, joined, names_of, nearly_all
from streamer.settings.event_fields import ELEMENT_FIELDS
from streamer.settings.paths import Each, Path, Where, path_of, text_of, through_lists
from streamer.settings.sources import FieldSource

Fields = dict[str, FieldSource]


def with_marked(kinds: Kinds, profiles: Mapping[str, Profile], fields: dict[str, Fields]) -> Kinds:
    """The kinds of records that hold lists, with those of what is marked in them; fields of such
    kinds are added."""
    if "impression" not in fields and (found := _shown_beside(profiles, fields)):
        fields["impression"] = found
        clicks = [v for v in kinds.values if v.kind == "click"]
        shown_too = [replace(v, kind="impression", is_sure=False) for v in clicks]
        return replace(kinds, values=(*shown_too, *kinds.values))
    shown, profile = fields.get("impression"), profiles.get("impression")
    item = None if shown is None else shown.get("item_id")
    if shown is None or profile is None or not isinstance(item, str) or "[]" not in item:
        return kinds
    for kind in ("click", "conversion"):
        marked = None if kind in profiles else _marked(profile, item, kind)
        if marked is None:
            continue
        of_items = {*ELEMENT_FIELDS["impressions"], "position"}
        own: Fields = {name: said for name, said in shown.items() if name not in of_items}
        if kind == "click" and "position" in shown:
            own["position"] = _of_marked(shown["position"], item, marked)
        fields[kind] = {**own, "item_id": marked}
        kinds = _with(kinds, kind)
    return kinds


def _shown_beside(profiles: Mapping[str, Profile], fields: Mapping[str, Fields]) -> Fields | None:
    """The fields of impressions, where clicks hold the list of which an item was clicked."""
    own, clicks = fields.get("click", {}), profiles.get("click", Profile())
    item = own.get("item_id")
    seen = clicks.scalars.get(path_of(item)) if isinstance(item, str) else None
    for path, listed in clicks.id_lists.items() if seen is not None else ():
        assert seen is not None
        place = rank(names_of(path), ("impressions", "impression", *OTHER_NAMES["items"]))
        common = sum(n for text, n in seen.values.items() if text in listed.values)
        if place is not None and nearly_all(common, sum(seen.values.values())):
            of_click = {*ELEMENT_FIELDS["impressions"], "position", "event_id", "value"}
            rest = {name: said for name, said in own.items() if name not in of_click}
            return {**rest, "item_id": f"{text_of(path)}[]"}
    return None


def _of_marked(said: FieldSource, item: str, marked: str) -> FieldSource:
    """Where another field of marked items stands; false where they are ids alone."""
    every, own = (text.rpartition("[]")[0] for text in (item, marked))
    if not isinstance(said, str) or not said.startswith(f"{every}[]"):
        return said
    return own + said.removeprefix(every) if own.startswith(every) else False


def _with(kinds: Kinds, kind: str) -> Kinds:
    """Records of impressions are of another kind, too."""
    if kinds.fixed is not None:
        return replace(kinds, fixed=(*kinds.fixed, kind))
    shown = [value for value in kinds.values if value.kind == "impression"]
    more = [Value(value.text, kind, value.records, there=value.there) for value in shown]
    return replace(kinds, values=(*kinds.values, *more))


def _marked(profile: Profile, item: str, kind: str) -> str | None:
    """The path of the items of a list that are marked so."""
    lists, rest = through_lists(path_of(item))
    steps: list[Path] = [(*at, Each()) for at, _ in lists]
    elements = profile.lists.get(sum(steps, ())[:-1])
    for path, seen in elements.scalars.items() if elements is not None else ():
        if len(path) == 1 and isinstance(path[0], str) and _is_flag(path, seen, kind):
            yes = next((text for text in seen.values if text in YES), "true")
            *outer, (*last, _) = steps
            of_those = (*sum(outer, ()), *last, Each(Where(path[0], yes)))
            return joined(text_of(of_those), text_of(rest))
    for path, seen in profile.id_lists.items():
        said = classified(names_of(path)[-1])[0] if names_of(path) else ""
        if said == kind and seen.is_id and text_of(path) + "[]" != item:
            return f"{text_of(path)}[]"
    return None


def not_marked(profiles: Mapping[str, Profile], fields: Mapping[str, Fields]) -> Iterator[str]:
    """What is not sure of shown items that hold an object of a kind of which there is no event."""
    item = fields.get("impression", {}).get("item_id")
    if not isinstance(item, str) or "[]" not in item:
        return
    if "impression" not in profiles:
        yield f"kind: {item} of clicks is taken for what was shown"
    within, _, _ = item.rpartition("[]")
    shown = profiles.get("impression", Profile())
    elements = shown.lists.get(path_of(within), Profile())
    objects = {str(path[0]) for path in elements.scalars if len(path) > 1}
    for name in sorted(objects):
        kind, _ = classified(name)
        if kind in ("click", "conversion") and kind not in fields:
            yield f"kind: {within}[].{name} is not read: may it be {with_article(kind)}?"


def _is_flag(path: Path, seen: Seen, kind: str) -> bool:
    """Whether a field of an item says that it was clicked, or bought."""
    if not are_flags(seen):
        return False
    is_click = rank(names_of(path), CLICK_COLUMNS) is not None
    return classified(names_of(path)[-1])[0] == kind or (kind == "click" and is_click)
