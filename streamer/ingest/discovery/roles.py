"""What values say a field is, whatever it is called: how often they come again, and whether those
of neighbouring records are alike."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import log10

from streamer.ingest.discovery.profile import (
    Profile,
    is_around,
    is_of_all,
    nearly_all,
    seconds_of,
    values_of,
)
from streamer.settings.paths import Path

_LEAST_SHARE = 0.5
"""Of the records, which must have a value."""
_LEAST_VALUES, _MOST_LEAST, _SHARE_OF_LEAST = 5, 12, 20
"""Of a field: more than grades, where there are many records."""
_MOST_OF_ONE = 0.5
"""Share of the records that one value of an id may have."""
_LEAST_OFTEN = 1.5
"""Records of a person or an item, in the mean."""
_FEW = 0.05
_PLACE = 0.02
"""What a field is worth less than the one before it: a person usually comes first."""
_LONGEST_SECONDS = 1800
"""Of a request, from its first record to its last."""
_MOST_APART = 0.2
"""Share of a list of items that may be shown twice in it."""


@dataclass(frozen=True)
class FieldGuess:
    """A field that may have a role by its values. ``worth``: the largest is the best."""

    path: Path
    worth: float
    distinct: int
    records: int

    @property
    def evidence(self) -> str:
        """What speaks for it, for people."""
        return f"{self.distinct:,} values in {self.records:,} records"


@dataclass(frozen=True)
class _Column:
    """The values of a field, in the order of records."""

    path: Path
    values: list[str]
    distinct: int
    runs: int

    @property
    def joins(self) -> float:
        """Share of neighbouring records that have one value."""
        return 1 - self.runs / len(self.values)

    @property
    def returns(self) -> float:
        """Share of runs whose value had one before."""
        return 1 - self.distinct / self.runs

    @property
    def often(self) -> float:
        """Records of a value, in the mean."""
        return len(self.values) / self.distinct

    def candidate(self, worth: float) -> FieldGuess:
        return FieldGuess(self.path, worth, self.distinct, len(self.values))


def _columns(profile: Profile, taken: Container[Path]) -> Iterator[_Column]:
    """Fields that may be ids, and are not otherwise used."""
    for path, seen in profile.scalars.items():
        is_free = path not in taken and is_of_all(path) and seen.unit is None and seen.is_id
        is_free = is_free and max(seen.values.values()) <= _MOST_OF_ONE * seen.count
        least = max(_LEAST_VALUES, min(_MOST_LEAST, seen.count // _SHARE_OF_LEAST))
        if not is_free or profile.share(path) < _LEAST_SHARE or seen.distinct < least:
            continue
        values = [value for value in values_of(profile, path) if value is not None]
        runs = sum(1 for _ in groupby(values))
        yield _Column(path, values, len(set(values)), max(1, runs))


def _best(found: Iterable[FieldGuess]) -> list[FieldGuess]:
    return sorted(found, key=lambda one: -one.worth)


def persons(
    profile: Profile, taken: Container[Path], request: Path | None = None
) -> list[FieldGuess]:
    """Fields whose values come again over requests, and stay the same within one: the best
    first."""
    found = []
    for place, one in enumerate(_columns(profile, taken)):
        is_request = one.path == request or (one.joins and one.returns < _FEW and one.often < 8)
        if is_request or one.often < _LEAST_OFTEN:
            continue
        within = 1.0 if request is None else _constant(profile, request, one.path)
        steady = within if request is not None else one.joins
        worth = steady + is_around(profile, one.path) - _PLACE * place
        worth -= profile.scalars[one.path].are_ranks  # positions rise within requests
        if one.joins > _FEW or within > 1 - _FEW or not profile.within:
            found.append(one.candidate(worth))
    return _best(found)


def requests(
    profile: Profile, taken: Container[Path], time: Path | None = None
) -> list[FieldGuess]:
    """Fields whose values group neighbouring records of about one time, and never come again: the
    best first."""
    return _best(
        one.candidate(one.joins + 0.1 * log10(one.distinct))
        for one in _columns(profile, taken)
        if one.joins > 0.3 and one.returns < _FEW and one.distinct > len(one.values) * _FEW
        if time is None or _share(_groups(profile, one.path, time), _is_short) > 0.5
    )


def _is_short(times: list[str]) -> bool:
    """Whether some times are of one moment."""
    seconds = [at for at in map(seconds_of, times) if at is not None]
    return bool(seconds) and max(seconds) - min(seconds) <= _LONGEST_SECONDS


def shown(
    profile: Profile, taken: Container[Path], request: Path | None = None
) -> list[FieldGuess]:
    """Fields whose values come again, and differ within a request: the best first."""
    found = []
    for one in _columns(profile, taken):
        if one.often < _LEAST_OFTEN and one.returns < _FEW:
            continue
        twice = one.joins if request is None else _twice(profile, request, one.path)
        if twice <= _MOST_APART:
            found.append(one.candidate(log10(one.distinct) - twice))
    return _best(found)


def ranks(profile: Profile, taken: Container[Path], request: Path) -> list[FieldGuess]:
    """Whole numbers that rise by one within a request, from 0 or 1 on."""
    return [
        FieldGuess(path, 1.0, seen.distinct, seen.count)
        for path, seen in profile.scalars.items()
        if path not in taken and seen.is_whole and seen.within(0, 1000) and seen.distinct > 2
        if _rises(profile, request, path)
    ]


def _groups(profile: Profile, request: Path, path: Path) -> list[list[str]]:
    """The values of a field within each request that has several."""
    pairs = zip(values_of(profile, request), values_of(profile, path), strict=True)
    known = [(of, value) for of, value in pairs if of is not None and value is not None]
    groups = [[value for _, value in some] for _, some in groupby(known, key=lambda one: one[0])]
    return [group for group in groups if len(group) > 1]


def _share(groups: list[list[str]], holds: Callable[[list[str]], bool]) -> float:
    return sum(map(holds, groups)) / len(groups) if groups else 0.0


def _constant(profile: Profile, request: Path, path: Path) -> float:
    return _share(_groups(profile, request, path), lambda group: len(set(group)) == 1)


def _twice(profile: Profile, request: Path, path: Path) -> float:
    return _share(_groups(profile, request, path), lambda group: len(set(group)) < len(group))


def _rises(profile: Profile, request: Path, path: Path) -> bool:
    groups = _groups(profile, request, path)

    def rises(group: list[str]) -> bool:
        numbers = [float(text) for text in group if text.isdigit()]
        is_begun = bool(numbers) and numbers[0] in (0, 1)
        return is_begun and all(b == a + 1 for a, b in pairwise(numbers))

    return nearly_all(sum(map(rises, groups)), len(groups)) if groups else False
