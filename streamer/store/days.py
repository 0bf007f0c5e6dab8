"""Users' days as they are stored: for readouts of some days of an experiment."""

from __future__ import annotations

from streamer import limits
from streamer.config import Settings
from streamer.engine.experiments import Experiments
from streamer.engine.integers import Columns, columns
from streamer.engine.segments import Segments
from streamer.engine.trial_sums import Trial
from streamer.errors import CodecError
from streamer.metrics.per_user import ExperimentFacts
from streamer.store import codec
from streamer.store.base import Store
from streamer.store.manifest import Manifest, decode
from streamer.store.tables import EXPERIMENT_TABLES


async def sums_of_days(
    store: Store, settings: Settings, facts: ExperimentFacts, trial: Trial, within: range
) -> list[Columns]:
    """The sums of an experiment over some of its days, in every partition.

    Reads the rows of all users. CodecError where partitions change faster than they are read.
    """
    count = await store.partitions() or 0
    found = [await _partition(store, settings, facts, trial, number) for number in range(count)]
    return [columns(e.of_range(trial, within)) for e in found if e is not None]


async def _partition(
    store: Store, settings: Settings, facts: ExperimentFacts, trial: Trial, number: int
) -> Experiments | None:
    for _ in range(limits.READ_ATTEMPTS):
        stored = await store.read(number)
        if not stored.manifest:
            return None
        manifest = decode(stored.manifest)
        if trial.shape not in manifest.experiments:
            return None  # nobody was in it, or the workers do not have these settings
        refs = [
            (table, ref.name)
            for name, table in EXPERIMENT_TABLES.items()
            for ref in manifest.tables.get(name, [])
        ]
        blobs = await store.blobs(number, [name for _, name in refs])
        if None not in blobs:
            experiments = _restored(settings, facts, manifest)
            for (table, _), data in zip(refs, blobs, strict=True):
                table.take(experiments, codec.decode(data or b""))
            return experiments
    raise CodecError(f"partition {number} changed {limits.READ_ATTEMPTS} times while it was read")


def _restored(settings: Settings, facts: ExperimentFacts, manifest: Manifest) -> Experiments:
    """Without rows."""
    segments = Segments(settings.kept_dimensions, settings.limits.segments)
    segments.load(manifest.segments)
    experiments = Experiments(facts, settings.limits.user_days, segments)
    experiments.sample_bits = manifest.day_sample_bits
    experiments.restore(
        manifest.labels,
        manifest.counted_since_ms,
        manifest.scopes,
        manifest.stream_ms,
        manifest.exposures_final_ms,
    )
    return experiments
