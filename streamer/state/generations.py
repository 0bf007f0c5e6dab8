"""Settings have generations: workers with older ones leave alone what newer ones have counted."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from streamer.errors import SettingsError
from streamer.metrics.catalogue import Catalogue
from streamer.settings.model import Settings
from streamer.state.contents import beside_of, contents_of
from streamer.stats.experiments.trials import all_wanted

_WAYS = "start it with the newer file, or make these settings the newest: streamer apply FILE"


def fingerprint_of(settings: Settings) -> str:
    """What is counted under these settings, with patterns of topics as they are in the file: 32
    hexadecimal digits, the same for files that count the same."""
    catalogue = Catalogue(settings)
    measures = catalogue.experiment_measures
    counted = (
        contents_of(settings, catalogue),
        beside_of(settings, catalogue),
        [what.name for what, _ in all_wanted(measures.trials)],
        [trial.shape for trial in measures.counted],
        [series.shape for series in catalogue.alert_measures.series],
        settings.time,
    )
    return blake2b(msgspec.msgpack.encode(counted), digest_size=16).hexdigest()


def require_newest(newest: int, ours: int) -> None:
    """SettingsError where newer settings than these wrote the state; ``ours``: 0 asks nothing."""
    if 0 < ours < newest:
        raise SettingsError(
            f"newer settings count here (generation {newest}; those of this worker are generation "
            f"{ours}): {_WAYS}"
        )


def require_declared(ours: int) -> None:
    """SettingsError where settings were never declared under the prefix: nobody was told what
    becomes of what is stored."""
    if not ours:
        raise SettingsError(
            "the settings are not those that count here, and nobody has said that they shall: "
            "streamer apply FILE says what they change, and makes them the newest"
        )
