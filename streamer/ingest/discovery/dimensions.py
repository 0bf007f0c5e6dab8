"""By which fields numbers may be split: the experiment's first."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

from streamer.ingest.discovery.names import OTHER_NAMES, rank, words
from streamer.ingest.discovery.profile import Profile, Seen, names_of, text_of
from streamer.settings.event_fields import KINDS, field_names
from streamer.settings.labels import RESERVED
from streamer.settings.paths import Path

VARIANT = "variant"
_SURFACES = (
    *("surface", "placement", "page_type", "platform", "device", "device_type", "campaign"),
    *("channel", "country", "app"),
)
"""Names of dimensions that are worth a split, the best first."""
_CHOSEN = 2
"""Beside the experiment's."""
_MOST_VALUES, _MOST_ARMS = 50, 10
_LEAST_SHARE = 0.3
_EXPERIMENTS = frozenset(words("experiment experiments exp ab abtest abtests test tests"))
_OURS = frozenset(name for kind in KINDS for name in field_names(kind))


@dataclass(frozen=True, slots=True)
class Dimension:
    """A field with few values."""

    name: str
    path: Path
    seen: Seen

    @property
    def values(self) -> str:
        """How often its most frequent values come, for people."""
        shown = [f"{text[:20]!r} {n:,}" for text, n in self.seen.values.most_common(4)]
        return ", ".join(shown) + (", …" if self.seen.distinct > len(shown) else "")


@dataclass(frozen=True)
class Dimensions:
    """Those to split by, and others that one might."""

    chosen: tuple[Dimension, ...]
    others: tuple[Dimension, ...]
    arms: tuple[str, ...] = ()
    """Paths of others that may say the arm of an experiment."""


def find_dimensions(profile: Profile, taken: Container[Path]) -> Dimensions:
    """Fields of shown records that have few values and no other meaning."""
    often = [
        (path, seen)
        for path, seen in profile.scalars.items()
        if path not in taken and _is_label(seen) and profile.share(path) >= _LEAST_SHARE
    ]
    few = [(path, seen) for path, seen in often if _is_dimension(seen)]
    names: set[str] = set()
    chosen: list[Dimension] = []
    arms = [(place, len(p), p, s) for p, s in often if (place := _arm(p, s)) is not None]
    if arms:
        arms.sort(key=lambda one: one[:2])
        _, _, path, seen = arms[0]
        chosen.append(Dimension(VARIANT, path, seen))
        names.add(VARIANT)
    ranked = [(place, len(p), p, s) for p, s in few if (place := _surface(p)) is not None]
    for _, _, path, seen in sorted(ranked, key=lambda one: one[:2])[:_CHOSEN]:
        if all(one.path != path for one in chosen):
            chosen.append(Dimension(_name(path, names), path, seen))
    used = {one.path for one in chosen}
    others = [Dimension(_name(p, names), p, s) for p, s in few if p not in used]
    others.sort(key=lambda one: one.seen.distinct)
    left = [text_of(path) for _, _, path, _ in arms[1:]]
    return Dimensions(tuple(chosen), tuple(others), tuple(left))


def _is_label(seen: Seen) -> bool:
    return seen.unit is None and (not seen.is_numeric or seen.whole == seen.count)


def _is_dimension(seen: Seen) -> bool:
    return 2 <= seen.distinct <= _MOST_VALUES and seen.count >= 3 * seen.distinct


def _arm(path: Path, seen: Seen) -> int | None:
    """How likely it says the arm of an experiment."""
    if seen.distinct > _MOST_ARMS:
        return None
    place = rank(names_of(path), (VARIANT, *OTHER_NAMES[VARIANT]))
    if place is not None:
        return place
    is_near = any(_EXPERIMENTS & set(words(name)) for name in names_of(path))
    return 100 if is_near and not seen.is_numeric and _is_dimension(seen) else None


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
