"""Users' days as they are stored: for readouts of some days of an experiment."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from streamer._core import EXPERIMENT_TABLES
from streamer.encoding.limbs import Columns
from streamer.errors import CodecError
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
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

SumsByValue = dict[str, list[Columns]]
"""Value of a dimension → sums in every partition; of all users under the empty text."""


@dataclass(frozen=True)
class Days:
    """The days of an experiment that are asked for; ``by``: a dimension by whose values users are
    told apart."""

    trial: CompiledExperiment
    within: range
    by: str | None = None

    def sums_in(self, partition: Partition) -> Mapping[str, Columns]:
        """Value → sums, computed from the rows of a partition."""
        names = partition.settings.dimension_names
        by = None if self.by is None else names.index(self.by)
        days = (self.within.start, self.within.stop)
        measures, key = partition.catalogue.experiment_measures, self.trial.exposure.key
        if self.trial in measures.trials:
            at = measures.trials.index(self.trial)
            return partition.core.experiment_sums_of_days(at, days, by) or {}
        slots = {key: (slot, arms) for slot, key, arms, *_ in partition.core.found_experiments()}
        if key not in slots:
            return {}
        slot, arms = slots[key]
        found = partition.core.experiment_sums_of_days(len(measures.trials) + slot, days, by) or {}
        counted = measures.slots[slot]
        return {
            value: rebased(columns, counted, self.trial, arms) for value, columns in found.items()
        }


@dataclass(frozen=True)
class DaysBefore:
    """The days of an experiment's covariates, on which everybody counts whatever arm it was: in the
    first arm of ``CompiledExperiment.before``, from the day of a user's first impression on."""

    trial: CompiledExperiment
    by: ClassVar[None] = None

    def sums_in(self, partition: Partition) -> Mapping[str, Columns]:
        """Likewise, under an empty text."""
        at = partition.catalogue.experiment_measures.trials.index(self.trial)
        sums = partition.core.experiment_sums_before_start(at)
        return {} if sums is None else {"": sums}


def by_value(partitions: Iterable[Mapping[str, Columns]]) -> SumsByValue:
    """The sums of all partitions."""
    found = defaultdict[str, list[Columns]](list)
    for sums in partitions:
        for value, its in sums.items():
            found[value].append(its)
    return dict(found)


async def sums_of_days(
    store: Store, settings: Settings, catalogue: Catalogue, days: Days | DaysBefore
) -> SumsByValue:
    """The sums of an experiment over some of its days, or over those before.

    Reads the rows of all users, of one partition after the other, and adds them up in a thread.
    CodecError where partitions change faster than they are read.
    """
    found = []
    for number in range(await store.partitions() or 0):
        stored = await _blobs(store, settings, catalogue, days, number)
        if stored is not None:
            found.append(await asyncio.to_thread(_sums, settings, catalogue, days, *stored))
    return by_value(found)


async def _blobs(
    store: Store, settings: Settings, catalogue: Catalogue, days: Days | DaysBefore, number: int
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
        if not _is_held(manifest, catalogue, days):
            return None
        tables = [manifest.tables.get(table, []) for table in EXPERIMENT_TABLES]
        names = [manifest.texts, *(ref.name for refs in tables for ref in refs)]
        found = zip(names, await store.blobs(number, names), strict=True)
        blobs = {name: data for name, data in found if data is not None}
        if len(blobs) == len(names):
            return manifest, blobs
    raise CodecError(f"partition {number} changed {limits.READ_ATTEMPTS} times while it was read")


def _is_held(manifest: Manifest, catalogue: Catalogue, days: Days | DaysBefore) -> bool:
    """Not where nobody was in the experiment, or the workers do not have these settings."""
    if isinstance(days, Days):
        return days.trial.shape in manifest.experiments or days.trial.exposure.key in {
            found.key for found in manifest.found_experiments
        }
    needs = catalogue.experiment_measures.needs(days.trial)  # there are rows before there are sums
    return set(needs) <= all_since(manifest.counted_since_ms, manifest.scopes).keys()


def _sums(
    settings: Settings,
    catalogue: Catalogue,
    days: Days | DaysBefore,
    manifest: Manifest,
    blobs: dict[str, bytes],
) -> Mapping[str, Columns]:
    return days.sums_in(_restored(settings, catalogue, manifest, blobs))


def _restored(
    settings: Settings,
    catalogue: Catalogue,
    manifest: Manifest,
    blobs: dict[str, bytes],
) -> Partition:
    """A partition with nothing but what experiments keep of users."""
    partition = Partition(settings, catalogue, manifest.hash_key)
    partition.continue_counting(manifest.counted_since_ms, manifest.scopes, manifest.stream_ms)
    texts = Texts.decode(blobs[manifest.texts], manifest.texts)
    restore_segments(partition, texts.with_events(manifest.events))
    restore_labels(partition, manifest, texts)
    for table in EXPERIMENT_TABLES:
        names = [ref.name for ref in manifest.tables.get(table, [])]
        partition.core.load(table, [codec.decode(blobs[name], name) for name in names])
    return partition
