"""The hash by which texts are known: which values are kept and groups of users depend on it."""

from __future__ import annotations

from functools import lru_cache

from streamer.ingest.hash_key import HashKey

from .siphash import siphash13


@lru_cache(maxsize=1 << 16)
def digest(text: str, key: HashKey) -> int:
    """The 64-bit hash of a text."""
    return siphash13(key, text.encode())
