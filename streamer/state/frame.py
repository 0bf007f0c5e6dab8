"""What is stored carries a checksum of what it is and where it belongs, so that neither damage nor
the bytes of another place are taken for numbers.

A frame is a mark of four bytes, the CRC-32 of the place and the body, and the body. CRC-32 finds
every flipped bit, and every burst of up to 32; of other damage it misses one in four billion. The
place of a blob is its name, which no other blob of any partition ever has: it begins with the claim
under which it was written, which is random and of one partition.
"""

from __future__ import annotations

import zlib

from streamer.errors import DamagedError

_MARK = b"smc2"
_HEAD = len(_MARK) + 4


def framed(body: bytes, place: str) -> bytes:
    """The body with the checksum of it at that place."""
    return _MARK + _checksum(body, place) + body


def body_of(data: bytes, place: str) -> bytes:
    """The body that was framed; DamagedError where it changed, or was framed for another place.

    >>> body_of(framed(b"numbers", "a"), "a")
    b'numbers'
    """
    if len(data) < _HEAD or data[: len(_MARK)] != _MARK:
        raise DamagedError(f"{place}: {len(data)} bytes are not in the format of this version")
    if _checksum(data[_HEAD:], place) != data[len(_MARK) : _HEAD]:
        raise DamagedError(
            f"{place}: {len(data)} bytes are damaged, or of another place: their checksum does not "
            "fit"
        )
    return data[_HEAD:]


def _checksum(body: bytes, place: str) -> bytes:
    return zlib.crc32(body, zlib.crc32(place.encode())).to_bytes(4, "little")
