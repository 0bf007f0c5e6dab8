"""The ids of schemas, with which values begin: numbers of Confluent's registry, UUIDs of AWS
Glue's."""

from __future__ import annotations

from uuid import UUID

CONFLUENT_BITS = 32
"""Ids of Confluent's registry have no more; no UUID has so few."""


def schema_head(value: bytes) -> tuple[int, int] | None:
    """The id in the head of a value, and how many bytes that has; None where it has none.

    >>> schema_head(b"\\0\\0\\0\\0\\x07abc"), schema_head(b"\\3\\0" + bytes([1] * 17))[1]
    ((7, 5), 18)
    """
    for magic, first, stop in ((0, 1, 5), (3, 2, 18)):
        if value[:1] == bytes([magic]) and len(value) >= stop:
            return int.from_bytes(value[first:stop]), stop
    return None


def id_text(number: int) -> str:
    """An id as people know it.

    >>> id_text(7), id_text(1 << 127)
    ('7', '80000000-0000-0000-0000-000000000000')
    """
    return str(UUID(int=number)) if number >> CONFLUENT_BITS else str(number)
