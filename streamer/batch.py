"""Columns: what the engine is fed.

A ``Columns`` is the decoded part of one chunk of one (topic, partition), texts as 64-bit hashes.
``assemble`` puts those of several chunks together, which gives one ``Batch`` a topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
import polars_hash as plh

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Rejects:
    """Records that are no events: index in the chunk, reason."""

    index: list[int] = field(default_factory=list)
    reason: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Columns:
    """Decoded events of one chunk; one entry an event, or one an item for the ``item…`` fields.

    ``offset`` and ``record_ms`` cover all records of the chunk, broken ones too; ``row`` maps
    events to them. ``owner`` maps shown items to events (impressions only; else None).
    """

    kind: str
    offset: I64
    record_ms: I64
    row: I64
    event_ms: I64
    user: U64
    event_id: U64
    request: U64
    segment: I32
    item: U64
    position: I64
    score: F64
    probe: I64
    owner: I64 | None
    is_list: Bools
    feedback: I64
    dwell_ms: I64
    value_micros: I64
    session: U64
    action: I64
    rejects: Rejects


@dataclass(slots=True)
class Batch:
    """Events of one topic-partition in offset order, texts as 64-bit hashes (0: missing).

    Units are in the names; ``segment`` indexes the interner's tuples; ``feedback`` is the index of
    the configured kind, or -1; ``is_list``: whether an impression has ``items``; ``dwell_ms`` is -1
    and ``score`` NaN where there is none; ``probe``: see ``probes``; ``action`` indexes
    ``events.ACTIONS``. Columns that the topic does not have are empty.
    """

    kind: str
    offset: I64
    record_ms: I64
    row: I64
    event_ms: I64
    segment: I32
    owner: I64 | None
    is_list: Bools
    position: I64
    score: F64
    probe: I64
    feedback: I64
    dwell_ms: I64
    value_micros: I64
    reject_row: I64
    reject_reason: list[str]
    user: U64
    event_id: U64
    request: U64
    item: U64
    session: U64
    action: I64


def hash_texts(columns: Sequence[Sequence[str]]) -> list[U64]:
    """64-bit xxh3 of every text, 0 for ``""``; one call whatever the number of columns."""
    flat: list[str] = []
    ends = []
    for column in columns:
        flat += column
        ends.append(len(flat))
    series = pl.Series("text", flat, pl.String)
    hashed = series.to_frame().select(plh.col("text").nchash.xxh3_64()).to_series().to_numpy()
    hashes = hashed.astype(np.uint64, copy=True)
    hashes[hashes == _HASH_OF_EMPTY] = 0
    return np.split(hashes, ends[:-1])


def _hash_of_empty() -> np.uint64:
    frame = pl.DataFrame({"text": [""]}).select(plh.col("text").nchash.xxh3_64())
    return np.uint64(frame.item())


_HASH_OF_EMPTY = _hash_of_empty()


def assemble(chunks: Sequence[Columns]) -> dict[str, Batch]:
    """One batch a topic of all the given chunks, which stand in offset order for each topic."""
    by_kind: dict[str, list[Columns]] = {}
    for chunk in chunks:
        by_kind.setdefault(chunk.kind, []).append(chunk)
    return {kind: _join(kind, group) for kind, group in by_kind.items()}


def _join(kind: str, group: list[Columns]) -> Batch:
    records = np.cumsum([0] + [len(c.offset) for c in group])
    events = np.cumsum([0] + [len(c.event_ms) for c in group])
    owners = [c.owner + at for c, at in zip(group, events, strict=False) if c.owner is not None]
    return Batch(
        kind=kind,
        offset=np.concatenate([c.offset for c in group]),
        record_ms=np.concatenate([c.record_ms for c in group]),
        row=np.concatenate([c.row + at for c, at in zip(group, records, strict=False)]),
        event_ms=np.concatenate([c.event_ms for c in group]),
        segment=np.concatenate([c.segment for c in group]),
        owner=np.concatenate(owners) if owners else None,
        is_list=np.concatenate([c.is_list for c in group]),
        position=np.concatenate([c.position for c in group]),
        score=np.concatenate([c.score for c in group]),
        probe=np.concatenate([c.probe for c in group]),
        feedback=np.concatenate([c.feedback for c in group]),
        dwell_ms=np.concatenate([c.dwell_ms for c in group]),
        value_micros=np.concatenate([c.value_micros for c in group]),
        reject_row=np.concatenate(
            [
                np.asarray(c.rejects.index, np.int64) + at
                for c, at in zip(group, records, strict=False)
            ]
        ).astype(np.int64),
        reject_reason=[reason for c in group for reason in c.rejects.reason],
        user=np.concatenate([c.user for c in group]),
        event_id=np.concatenate([c.event_id for c in group]),
        request=np.concatenate([c.request for c in group]),
        item=np.concatenate([c.item for c in group]),
        session=np.concatenate([c.session for c in group]),
        action=np.concatenate([c.action for c in group]),
    )
