"""The hash by which texts are known: which values are kept and groups of users depend on it."""

from __future__ import annotations

from functools import lru_cache

from streamer.ingest.hash_key import HashKey

from .siphash import siphash13

NOBODY = 0xE7037ED1A0B428DB
JOIN = 0xD6E8FEB86659FD93
_MIX, _MASK = 0x9E3779B97F4A7C15, 2**64 - 1


@lru_cache(maxsize=1 << 16)
def digest(text: str, key: HashKey) -> int:
    """The 64-bit hash of a text."""
    return siphash13(key, text.encode())


def mix(a: int, b: int) -> int:
    """One hash of two."""
    h = (a ^ b * _MIX & _MASK) * _MIX & _MASK
    h ^= h >> 32
    return max(1, h * _MIX & _MASK)
