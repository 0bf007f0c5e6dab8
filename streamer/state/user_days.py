"""Users' days as they are stored: for readouts of some days of an experiment."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from streamer._core import EXPERIMENT_TABLES
from streamer.encoding.limbs import Columns
from streamer.errors import CodecError
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.durations import date_of
from streamer.settings.model import Settings
from streamer.state import codec
from streamer.state.contents import contents_of, reads_as
from streamer.state.experiment_sums import rebased
from streamer.state.manifest import Manifest, Texts, decode
from streamer.state.partition import Partition
from streamer.state.reader import other_settings
from streamer.state.restore import restore_labels, restore_segments
from streamer.state.store import Store
from streamer.stats.experiments.trials import CompiledExperiment, all_since

T = TypeVar("T")
SumsByValue = dict[str, list[Columns]]
"""Value of a dimension → sums in every partition; of all users under the empty text."""


DAY = "day"
"""Stands for a dimension of calendar days, where there is no other one of this name."""


@dataclass(frozen=True)
class Days:
    """The days of an experiment that are asked for; ``by``: a dimension by whose values users are
    told apart, or ``DAY``: each day for itself."""

    trial: CompiledExperiment
    within: range
    by: str | None = None

    def sums_in(self, partition: Partition) -> Mapping[str, Columns]:
        """Value → sums, computed from the rows of a partition."""
        names, core = partition.settings.dimension_names, partition.core
        if (place := place_in(partition, self.trial)) is None:
            return {}
        if self.by == DAY and DAY not in names:
            found: dict[str, Columns] = {}
            for day in self.within:
                its = core.experiment_sums_of_days(place.number, (day, day + 1), None) or {}
                found |= {date_of(day).isoformat(): columns for columns in its.values()}
        else:
            by = None if self.by is None else names.index(self.by)
            days = (self.within.start, self.within.stop)
            found = dict(core.experiment_sums_of_days(place.number, days, by) or {})
        return {value: place.rebased(columns, self.trial) for value, columns in found.items()}

    def is_held(self, manifest: Manifest, _: Catalogue) -> bool:
        """Whether a partition counts the experiment."""
        return is_counted(manifest, self.trial)


@dataclass(frozen=True)
class Across:
    """The days of an experiment, apart for each arm of another one, of users who are in both."""

    trial: CompiledExperiment
    other: CompiledExperiment
    within: range
    by: ClassVar[None] = None

    def sums_in(self, partition: Partition) -> Mapping[str, Columns]:
        """Arm of the other experiment → sums, computed from the rows of a partition."""
        places = [place_in(partition, each) for each in (self.trial, self.other)]
        if places[0] is None or places[1] is None:
            return {}
        own, other = places[0], places[1]
        days = (self.within.start, self.within.stop)
        found = partition.core.experiment_sums_across(own.number, other.number, days)
        return {
            other.arms[arm - 1]: own.rebased(columns, self.trial) for arm, columns in found.items()
        }

    def is_held(self, manifest: Manifest, _: Catalogue) -> bool:
        """Whether a partition counts both experiments."""
        return is_counted(manifest, self.trial) and is_counted(manifest, self.other)


@dataclass(frozen=True)
class DaysBefore:
    """The days of an experiment's covariates, on which everybody counts whatever arm it was: in the
    first arm of ``CompiledExperiment.before``, from the day of a user's first impression on."""

    trial: CompiledExperiment
    by: ClassVar[None] = None

    def sums_in(self, partition: Partition) -> Mapping[str, Columns]:
        """The sums, under an empty text."""
        at = partition.catalogue.experiment_measures.of_users.index(self.trial)
        sums = partition.core.experiment_sums_before_start(at)
        return {} if sums is None else {"": sums}

    def is_held(self, manifest: Manifest, catalogue: Catalogue) -> bool:
        """Whether the workers have these settings: there are rows before there are sums."""
        needs = catalogue.experiment_measures.needs(self.trial)
        return set(needs) <= all_since(manifest.counted_since_ms, manifest.scopes).keys()


RowsOfUsers = Days | Across | DaysBefore
"""What is computed from the rows of all users."""
Arm = tuple[str, str]
"""What events call an experiment, and one of its arms."""


@dataclass(frozen=True)
class Place:
    """Where a partition counts an experiment. ``arms``: by number, from 1; ``counted``: as it is
    counted."""

    number: int
    counted: CompiledExperiment
    arms: Sequence[str]

    def rebased(self, columns: Columns, trial: CompiledExperiment) -> Columns:
        """Columns with the keys of the experiment."""
        if self.counted is trial:
            return columns
        return rebased(columns, self.counted, trial, self.arms)


def place_in(partition: Partition, trial: CompiledExperiment) -> Place | None:
    """Where a partition counts an experiment: of the settings, or one that was found."""
    measures = partition.catalogue.experiment_measures
    if trial in measures.of_users:
        return Place(measures.of_users.index(trial), trial, trial.arms)
    for slot, (key, *arms), *_ in partition.core.found_experiments():
        if key == trial.exposure.key:
            return Place(len(measures.of_users) + slot, measures.slots[slot], arms)
    return None


def is_counted(manifest: Manifest, trial: CompiledExperiment) -> bool:
    """Whether a partition counts an experiment."""
    found = {found.key for found in manifest.found_experiments}
    return trial.shape in manifest.experiments or trial.exposure.key in found


def pairs_in(partition: Partition) -> Counter[tuple[Arm, Arm]]:
    """Users who are in two experiments, by their arms; of the settings, or found."""
    measures = partition.catalogue.experiment_measures
    arms = {
        i: (trial.name, trial.arms)
        for i, trial in enumerate(measures.of_users)
        if trial in measures.trials
    }
    for slot, (key, *names), *_ in partition.core.found_experiments():
        arms[len(measures.of_users) + slot] = (key, tuple(names))
    counts: Counter[tuple[Arm, Arm]] = Counter()
    for first, a, second, b, users in partition.core.experiment_pairs():
        if first not in arms or second not in arms:
            continue  # a period of an experiment
        one = arms[first][0], arms[first][1][a - 1]
        two = arms[second][0], arms[second][1][b - 1]
        counts[min(one, two), max(one, two)] += users
    return counts


def by_value(partitions: Iterable[Mapping[str, Columns]]) -> SumsByValue:
    """The sums of all partitions."""
    found = defaultdict[str, list[Columns]](list)
    for sums in partitions:
        for value, its in sums.items():
            found[value].append(its)
    return dict(found)


async def sums_of_days(
    store: Store, settings: Settings, catalogue: Catalogue, rows: RowsOfUsers
) -> SumsByValue:
    """The sums of an experiment over some of its days, or over those before.

    Reads the rows of all users, of one partition after the other, and adds them up in a thread.
    CodecError where partitions change faster than they are read.
    """
    return by_value(await _each(store, settings, catalogue, rows.is_held, rows.sums_in))


async def all_pairs(
    store: Store, settings: Settings, catalogue: Catalogue
) -> Counter[tuple[Arm, Arm]]:
    """Users who are in two experiments, by their arms, over all partitions; likewise."""
    found = await _each(store, settings, catalogue, lambda *_: True, pairs_in)
    return sum(found, Counter[tuple[Arm, Arm]]())


async def _each(
    store: Store,
    settings: Settings,
    catalogue: Catalogue,
    is_held: Callable[[Manifest, Catalogue], bool],
    read: Callable[[Partition], T],
) -> list[T]:
    """What is read of the rows of each partition that holds any."""
    found = []
    for number in range(await store.partitions() or 0):
        stored = await _blobs(store, settings, catalogue, is_held, number)
        if stored is not None:
            manifest, blobs = stored

            def restored(manifest: Manifest = manifest, blobs: dict[str, bytes] = blobs) -> T:
                return read(_restored(settings, catalogue, manifest, blobs))

            found.append(await asyncio.to_thread(restored))
    return found


async def _blobs(
    store: Store,
    settings: Settings,
    catalogue: Catalogue,
    is_held: Callable[[Manifest, Catalogue], bool],
    number: int,
) -> tuple[Manifest, dict[str, bytes]] | None:
    """The manifest of a partition, and by name the blobs of what experiments keep of users."""
    for _ in range(limits.READ_ATTEMPTS):
        stored = await store.read(number)
        if not stored.manifest:
            return None
        manifest = decode(stored.manifest)
        ours = contents_of(settings, catalogue)
        if not reads_as(manifest.contents, ours):
            raise CodecError(f"partition {number}: {other_settings(manifest, ours)}")
        if not is_held(manifest, catalogue):
            return None
        tables = [manifest.tables.get(table, []) for table in EXPERIMENT_TABLES]
        names = [manifest.texts, *(ref.name for refs in tables for ref in refs)]
        found = zip(names, await store.blobs(number, names), strict=True)
        blobs = {name: data for name, data in found if data is not None}
        if len(blobs) == len(names):
            return manifest, blobs
    raise CodecError(f"partition {number} changed {limits.READ_ATTEMPTS} times while it was read")


def _restored(
    settings: Settings,
    catalogue: Catalogue,
    manifest: Manifest,
    blobs: dict[str, bytes],
) -> Partition:
    """A partition with nothing but what experiments keep of users."""
    partition = Partition(settings, catalogue, manifest.hash_key)
    since_ms, scopes, stream_ms = manifest.counted_since_ms, manifest.scopes, manifest.stream_ms
    partition.continue_counting(since_ms, scopes, stream_ms, found=manifest.found_experiments)
    texts = Texts.decode(blobs[manifest.texts], manifest.texts)
    restore_segments(partition, texts.with_events(manifest.events))
    restore_labels(partition, manifest, texts)
    for table in EXPERIMENT_TABLES:
        names = [ref.name for ref in manifest.tables.get(table, [])]
        partition.core.load(table, [codec.decode(blobs[name], name) for name in names])
    return partition
