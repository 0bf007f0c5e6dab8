"""What is stored carries a checksum, so that damage is not taken for numbers.

A frame is a mark of four bytes, the CRC-32 of the body, and the body. CRC-32 finds every flipped
bit, and every burst of up to 32; of other damage it misses one in four billion.
"""

from __future__ import annotations

import zlib

from streamer.errors import DamagedError

_MARK = b"smc1"
_HEAD = len(_MARK) + 4


def framed(body: bytes) -> bytes:
    """The body with its checksum."""
    return _MARK + zlib.crc32(body).to_bytes(4, "little") + body


def body_of(data: bytes, what: str) -> bytes:
    """The body that was framed; DamagedError, which calls it ``what``, where it changed.

    >>> body_of(framed(b"numbers"), "a blob")
    b'numbers'
    """
    if len(data) < _HEAD or data[: len(_MARK)] != _MARK:
        raise DamagedError(f"{what} of {len(data)} bytes is not in the format of this version")
    if zlib.crc32(data[_HEAD:]) != int.from_bytes(data[len(_MARK) : _HEAD], "little"):
        raise DamagedError(f"{what} of {len(data)} bytes is damaged: its checksum does not fit")
    return data[_HEAD:]
