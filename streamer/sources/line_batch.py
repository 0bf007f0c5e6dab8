"""Lines in log order, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamer.encoding.arrays import I16, I64

NO_TOPIC = ""
"""Log of a line that belongs to no topic: it cannot be read, or has no known ``type``."""
NO_LOG = -1
"""Its number."""

Line = tuple[str, int, bytes]
"""(log, record_ms, the line as it stands in the file, without its newline)."""


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Some lines. Iterating gives them one by one; ``names``: of the logs, by their numbers."""

    names: Sequence[str]
    logs: I16
    """The number of each line's log."""
    record_ms: I64
    raws: list[bytes]
    """The lines as they stand in the file, without their newlines."""

    @classmethod
    def of(cls, lines: Iterable[Line], names: Sequence[str]) -> LineBatch:
        """Lines as columns."""
        numbers = {name: number for number, name in enumerate(names)} | {NO_TOPIC: NO_LOG}
        rows = list(lines)
        return cls(
            names,
            np.array([numbers[log] for log, _, _ in rows], np.int16),
            np.array([record_ms for _, record_ms, _ in rows], np.int64),
            [raw for _, _, raw in rows],
        )

    def __len__(self) -> int:
        return len(self.raws)

    def __iter__(self) -> Iterator[Line]:
        names = [*self.names, NO_TOPIC]  # the last is that of NO_LOG
        logs, record_ms = self.logs.tolist(), self.record_ms.tolist()
        for log, ms, raw in zip(logs, record_ms, self.raws, strict=True):
            yield names[log], ms, raw

    def __getitem__(self, part: slice) -> LineBatch:
        return LineBatch(self.names, self.logs[part], self.record_ms[part], self.raws[part])

    def at(self, places: I64) -> tuple[I64, list[bytes]]:
        """Record timestamps and lines at some places."""
        raws = self.raws
        return self.record_ms[places], [raws[place] for place in places.tolist()]


def merged(sources: Sequence[Iterable[LineBatch]]) -> Iterator[LineBatch]:
    """The lines of several sources by record timestamp, those of the first-named first."""
    waiting = [(batch for batch in source if len(batch)) for source in sources]
    heads: list[LineBatch | None] = [None] * len(waiting)
    while True:
        heads = [head or next(more, None) for head, more in zip(heads, waiting, strict=True)]
        live = {i: head for i, head in enumerate(heads) if head is not None}
        if not live:
            return
        # The first source to end its batch may go on with the same time: later ones wait with it.
        ends_ms, first = min((head.record_ms[-1], i) for i, head in live.items())
        parts = []
        for i, head in live.items():
            is_due = head.record_ms <= ends_ms if i <= first else head.record_ms < ends_ms
            end = int(np.count_nonzero(is_due))
            parts.append(head[:end])
            heads[i] = head[end:]
        yield _in_order(parts)


def _in_order(parts: Sequence[LineBatch]) -> LineBatch:
    if len(parts) == 1:
        return parts[0]
    whole = LineBatch(
        parts[0].names,
        np.concatenate([part.logs for part in parts]),
        np.concatenate([part.record_ms for part in parts]),
        [raw for part in parts for raw in part.raws],
    )
    order = np.argsort(whole.record_ms, kind="stable")
    return LineBatch(whole.names, whole.logs[order], *whole.at(order))


def by_part(
    batches: Iterable[LineBatch], part_ms: int, before: Callable[[int], None]
) -> Iterator[LineBatch]:
    """Lines as they are; ``before`` each part of the log that is so long, a function is called with
    the first time in it."""
    part = -1
    for lines in batches:
        parts = lines.record_ms // part_ms
        cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(lines)]
        for first, stop in pairwise(cuts):
            if first < stop and parts[first] > part:
                part = int(parts[first])
                before(int(lines.record_ms[first:stop].min()))
            yield lines[first:stop]
