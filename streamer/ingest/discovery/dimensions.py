"""By which fields numbers may be split: the experiment's first."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from streamer.ingest.discovery.names import EXPERIMENTS, OTHER_NAMES, VARIANT, rank, words
from streamer.ingest.discovery.profile import Profile, Seen, names_of
from streamer.settings.event_fields import KINDS, field_names
from streamer.settings.labels import RESERVED
from streamer.settings.paths import Path, Where, text_of

_SURFACES = (
    *("surface", "placement", "page_type", "platform", "device", "device_type", "campaign"),
    *("channel", "country", "app"),
)
"""Names of dimensions that are worth a split, the best first."""
_SHOWN, _MOST_OTHERS, _VALUE_CHARS = 4, 4, 20
"""Values and arms that are shown, and their characters."""
_CHOSEN = 2
"""Beside the experiment's."""
_MOST_VALUES, _MOST_ARMS = 50, 10
_LEAST_SHARE, _LEAST_EXPERIMENT = 0.3, 0.05
"""Of the records; of one of several experiments in a list."""
_NEAR, _BY_VALUES = 100, 200
"""How likely, after likely names: what stands near an experiment, and what has values of arms."""
_FLAG = "$feature/"
"""What PostHog writes before the names of flags."""
_ARMS = frozenset(
    {"a", "b", "c", "d", "control", "treatment", "baseline", "challenger", "variant", "holdout"}
)
"""What arms are often called."""
_NUMBERS = ("two", "three", "four", "five")
_OURS = frozenset(name for kind in KINDS for name in field_names(kind))


def cut(text: str) -> str:
    """The end of a value: long ones often begin alike.

    >>> cut("https://shop.example/women/shoes")
    '…example/women/shoes'
    """
    return text if len(text) <= _VALUE_CHARS else "…" + text[1 - _VALUE_CHARS :]


@dataclass(frozen=True, slots=True)
class ProposedDimension:
    """A field with few values."""

    name: str
    path: Path
    """() where the preset says where it stands."""
    seen: Seen

    @property
    def values(self) -> str:
        """How often its most frequent values come, for people."""
        shown = [f"{cut(text)!r} {n:,}" for text, n in self.seen.values.most_common(_SHOWN)]
        return ", ".join(shown) + (", …" if self.seen.distinct > len(shown) else "")


@dataclass(frozen=True)
class Dimensions:
    """Those to split by, and others that one might."""

    chosen: tuple[ProposedDimension, ...]
    others: tuple[ProposedDimension, ...]
    arms: tuple[ProposedDimension, ...] = ()
    """Others that may say the arm of an experiment."""
    unkeyed: tuple[str, ...] = ()
    """Lists whose elements say arms, and nothing says of which experiment."""
    is_asked: bool = False
    """Whether somebody said which is the arm."""

    @property
    def variant_doubts(self) -> tuple[str, ...]:
        """What is not sure about the experiment that was taken, or why none was."""
        if self.is_asked:
            return ()
        taken = next((one for one in self.chosen if one.name == VARIANT), None)
        if taken is None:
            lists = ", ".join(self.unkeyed)
            why = f"elements of {lists} say arms, but no field of theirs names the experiment"
            return (why if lists else "no field looks like the arm of an experiment",)
        doubts = []
        index = next((step for step in taken.path if isinstance(step, int)), None)
        if index is not None:
            doubts.append(f"element [{index}] of a list: another order gives another experiment")
        if _is_by_values(taken):
            doubts.append(f"no name of {text_of(taken.path)} says so, but its values")
        if self.arms:
            all_keyed = all(_experiment(one.path) for one in (taken, *self.arms))
            what = "experiments" if all_keyed else "fields may be it"
            count = dict(enumerate(_NUMBERS, 2)).get(1 + len(self.arms), str(1 + len(self.arms)))
            others = [f"{_called(one)} is {text_of(one.path)}" for one in self.arms[:_MOST_OTHERS]]
            more = len(self.arms) - len(others)
            listed = "; ".join([*others, *([f"and {more} more"] if more else [])])
            doubts.append(f"{count} {what}: {_called(taken)} was taken; {listed}")
        return tuple(doubts)


def find_dimensions(profile: Profile, taken: Container[Path]) -> Dimensions:
    """Fields of shown records that have few values and no other meaning."""
    often = [
        (path, seen)
        for path, seen in profile.scalars.items()
        if path not in taken and _is_label(seen) and profile.share(path) >= _least(path)
    ]
    often = [(path, seen) for path, seen in often if not _is_of_item(profile, path)]
    few = [
        (path, seen)
        for path, seen in often
        if _is_dimension(seen) and profile.share(path) >= _LEAST_SHARE
    ]
    names: set[str] = set()
    chosen: list[ProposedDimension] = []
    arms = _arms(often)
    if arms:
        path, seen = arms[0]
        chosen.append(ProposedDimension(VARIANT, path, seen))
        names.add(VARIANT)
    ranked = [
        (rank_of_name, len(p), p, s) for p, s in few if (rank_of_name := _surface(p)) is not None
    ]
    for _, _, path, seen in sorted(ranked, key=lambda one: one[:2])[:_CHOSEN]:
        if all(one.path != path for one in chosen):
            chosen.append(ProposedDimension(_name(path, names), path, seen))
    used = {one.path for one in chosen}
    many = [
        (path, seen)
        for path, seen in often
        if _has_many_values(seen) and profile.share(path) >= _LEAST_SHARE
        if _surface(path) is not None
    ]
    others = [ProposedDimension(_name(p, names), p, s) for p, s in (*few, *many) if p not in used]
    others.sort(key=lambda one: one.seen.distinct)
    left = tuple(ProposedDimension(VARIANT, path, seen) for path, seen in arms[1:])
    unkeyed = [
        text_of(path)
        for path, elements in profile.lists.items()
        if not _are_items(elements) and _arms(elements.scalars.items())
    ]
    return Dimensions(tuple(chosen), tuple(others), left, tuple(unkeyed))


def with_preset(own: Dimensions, read: Mapping[str, Seen]) -> Dimensions:
    """Dimensions with those that a preset reads and that were not found elsewhere; an arm that is
    one by its values alone gives way. ``read``: dimension → its values in shown records."""
    if VARIANT in read and any(map(_is_by_values, own.chosen)):
        kept = tuple(one for one in own.chosen if not _is_by_values(one))
        own = replace(own, chosen=kept, arms=())
    names = {one.name for one in own.chosen}
    added = [
        ProposedDimension(name, (), seen)
        for name, seen in read.items()
        if name not in names and seen.distinct <= (_MOST_ARMS if name == VARIANT else _MOST_VALUES)
    ]
    chosen = sorted([*added, *own.chosen], key=lambda one: one.name != VARIANT)
    said = [one.seen.values for one in added]
    others = tuple(one for one in own.others if one.seen.values not in said)
    return replace(own, chosen=tuple(chosen), others=others)


def _is_of_item(profile: Profile, path: Path) -> bool:
    """Whether a field is one of an element of a list of items, like the colour of a product."""
    lists = [path[:at] for at, step in enumerate(path) if isinstance(step, Where | int)]
    return any(one in profile.lists and _are_items(profile.lists[one]) for one in lists)


def _are_items(elements: Profile) -> bool:
    wanted = ("item_id", *OTHER_NAMES["item_id"])
    return any(rank(names_of(path), wanted) is not None for path in elements.scalars)


def _least(path: Path) -> float:
    """In which share of the records a field must be."""
    return _LEAST_EXPERIMENT if _experiment(path) else _LEAST_SHARE


def _experiment(path: Path) -> str | None:
    """The text by which an element of a list is found, where it is one."""
    return next((step.equals for step in path if isinstance(step, Where)), None)


def _called(arm: ProposedDimension) -> str:
    """The experiment of an arm, with its most frequent arms, for people."""
    some = [cut(text) for text, _ in arm.seen.values.most_common(_SHOWN)]
    more = ", …" if arm.seen.distinct > len(some) else ""
    return f"{_experiment(arm.path) or text_of(arm.path)} ({', '.join(some)}{more})"


def _arms(candidates: Iterable[tuple[Path, Seen]]) -> list[tuple[Path, Seen]]:
    """Those that may say the arm of an experiment, the most likely first; without elements by
    number of lists whose elements are told apart by a key."""
    ranked = [
        (rank_of_name, len(p), -s.count, p, s)
        for p, s in candidates
        if (rank_of_name := _arm(p, s)) is not None
    ]
    if any(one[0] < _BY_VALUES for one in ranked):
        ranked = [one for one in ranked if one[0] < _BY_VALUES]
    keyed = {
        path[: path.index(step)]
        for *_, path, _ in ranked
        for step in path
        if isinstance(step, Where)
    }
    numbered = {
        path
        for *_, path, _ in ranked
        for at, step in enumerate(path)
        if isinstance(step, int) and path[:at] in keyed
    }
    ranked.sort(key=lambda one: one[:3])
    return [(path, seen) for *_, path, seen in ranked if path not in numbered]


def _is_label(seen: Seen) -> bool:
    return seen.unit is None and (not seen.is_numeric or seen.whole == seen.count)


def _is_dimension(seen: Seen) -> bool:
    return 2 <= seen.distinct <= _MOST_VALUES and seen.count >= 3 * seen.distinct


def _has_many_values(seen: Seen) -> bool:
    """Whether a field has too many values to be proposed, and each of them often enough."""
    return seen.distinct > _MOST_VALUES and seen.count >= 3 * seen.distinct


def _arm(path: Path, seen: Seen) -> int | None:
    """How likely it says the arm of an experiment."""
    if seen.distinct > _MOST_ARMS:
        return None
    place = rank(names_of(path), (VARIANT, *OTHER_NAMES[VARIANT]))
    if place is not None:
        return place
    if seen.is_numeric or not _is_dimension(seen):
        return None
    has_arms = _ARMS.issuperset(text.lower() for text in seen.values)
    if _is_near_experiment(path):
        return _NEAR if has_arms else _NEAR + 1
    return _BY_VALUES if has_arms else None


def _is_by_values(one: ProposedDimension) -> bool:
    """Whether only its values say that a field is the arm."""
    is_arm = one.name == VARIANT and bool(one.path)
    is_named = rank(names_of(one.path), (VARIANT, *OTHER_NAMES[VARIANT])) is not None
    return is_arm and not is_named and not _is_near_experiment(one.path)


def _is_near_experiment(path: Path) -> bool:
    """Whether a name of a path is one of experiments or flags."""
    names = names_of(path)
    is_flag = any(name.startswith(_FLAG) for name in names)
    return is_flag or any(EXPERIMENTS & set(words(name)) for name in names)


def _surface(path: Path) -> int | None:
    return rank(names_of(path), _SURFACES)


def _name(path: Path, taken: set[str]) -> str:
    """A name for a dimension, of the last names of its path; it is taken then."""
    names = [re.sub(r"[^a-z0-9]+", "_", "_".join(words(name))) for name in names_of(path)]
    for n in range(1, len(names) + 1):
        name = "_".join(names[-n:]).strip("_")
        is_free = name not in taken | RESERVED | _OURS
        if name and not name[0].isdigit() and is_free:
            break
    else:
        name = f"dimension_{len(taken) + 1}"
    taken.add(name)
    return name
