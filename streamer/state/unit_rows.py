"""The rows of units that are not users, as partitions store them: of stores, or slots of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamer.encoding.limbs import Columns
from streamer.ingest.hash_key import HashKey
from streamer.stats.experiments.trials import Scope


@dataclass(frozen=True)
class UnitRows:
    """Those of one partition. ``tables``: name → blobs, the oldest first; ``bits``: ``Unit.name`` →
    how many bits are 0 of the hashes of its values, and of its rows; ``since_ms``: component → the
    stream time from which on it is counted; ``scopes``: likewise of exposures and units."""

    tables: Mapping[str, Sequence[Columns]]
    bits: Mapping[str, tuple[int, int]]
    key: HashKey
    since_ms: Mapping[str, int]
    scopes: Mapping[str, Scope]
