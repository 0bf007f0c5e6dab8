"""Counts, and numbers of partitions, in one line of text."""

from __future__ import annotations

from collections.abc import Collection

_SHOWN = 8


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "user"), counted(1200, "user")
    ('1 user', '1,200 users')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def partitions_in_words(numbers: Collection[int]) -> str:
    """
    >>> partitions_in_words({3}), partitions_in_words(range(10))
    ('partition 3', 'partitions 0, 1, 2, 3, 4, 5, 6, 7 …')
    """
    shown = ", ".join(map(str, sorted(numbers)[:_SHOWN]))
    more = " …" if len(numbers) > _SHOWN else ""
    return f"partition{'s' if len(numbers) > 1 else ''} {shown}{more}"
