"""Record batches that are filled by hand: cheaper than sending one record after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]
"""(timestamp in epoch milliseconds, key, value, headers)."""


def filled_batches(producer: Any, rows: Iterable[Row]) -> Iterator[tuple[Any, int]]:
    """Batches for ``producer.send_batch`` that hold the rows in order, and how many each holds.

    A row that is larger than a batch has one of its own.
    """
    batch, held = producer.create_batch(), 0
    for ms, key, value, headers in rows:
        if batch.append(timestamp=ms, key=key, value=value, headers=headers) is None:
            yield batch, held
            batch, held = producer.create_batch(), 0
            batch.append(timestamp=ms, key=key, value=value, headers=headers)
        held += 1
    if held:
        batch.close()
        yield batch, held
