"""The known name that is most like one that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LIKENESS = 0.6


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like another one; None where none is like it.

    >>> nearest("brokerz", ["group", "brokers"]), nearest("x", ["brokers"])
    ('brokers', None)
    """
    found = difflib.get_close_matches(name, list(known), 1, cutoff=_LIKENESS)
    return found[0] if found else None
