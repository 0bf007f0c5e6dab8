"""The key under which ids are hashed: a secret of each Redis prefix.

Whoever knows it can choose ids that share a place in a table, or a hash. So it is random, and made
once for all partitions of a prefix: they have to keep the same values of a dimension.
"""

from __future__ import annotations

import re
import secrets

HashKey = tuple[int, int]
"""Two integers of 64 bits."""
FIXED_KEY: HashKey = (0x5EED_0F_57EA_4E12, 0x0C0F_FEE0_C0FF_EE00)
"""Where nothing is stored (files, tests), so that the same file always gives the same state."""
_DIGITS = re.compile(r"[0-9a-fA-F]{32}\Z")


def random_key() -> HashKey:
    """A key that nobody can guess."""
    return secrets.randbits(64), secrets.randbits(64)


def key_text(key: HashKey) -> str:
    """A key as 32 hexadecimal digits.

    >>> key_text((1, 0xABC))
    '00000000000000010000000000000abc'
    """
    first, second = key
    return f"{first:016x}{second:016x}"


def parse_key(text: str) -> HashKey:
    """The key of 32 hexadecimal digits; ValueError, which does not repeat them, for other text.

    >>> parse_key("00000000000000010000000000000abc") == (1, 0xABC)
    True
    """
    if not _DIGITS.match(text):
        raise ValueError("a hash key has 32 hexadecimal digits")
    return int(text[:16], 16), int(text[16:], 16)
