"""What is said in words of a partition: values of dimensions, their combinations, and labels.

They are a blob of their own beside the manifest: they may be megabytes, and change seldom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cramjam
import msgspec

from streamer.errors import CodecError
from streamer.state import codec
from streamer.state.frame import body_of, framed


class Values(msgspec.Struct, array_like=True):
    """Of a dimension: the text of each code, the values that are kept, and those of them that the
    settings do not name, with their hashes."""

    texts: list[str]
    kept: list[str]
    unnamed: list[tuple[str, int]]


class Texts(msgspec.Struct, array_like=True):
    """``segments``: the code of each dimension, by number of a segment; ``labels``: of experiments,
    by number; ``series``: shape of a series → its labels, by number."""

    values: list[Values]
    segments: list[list[int]]
    labels: list[dict[str, str]]
    series: dict[str, list[dict[str, str]]]

    def encode(self, name: str) -> bytes:
        """The bytes of the blob of that name: msgpack, lz4, with a checksum."""
        return framed(bytes(cramjam.lz4.compress_block(msgspec.msgpack.encode(self))), name)

    def dimensions(self, events: Sequence[Sequence[int]]) -> dict[str, Any]:
        """As the core has them (``Core.dimensions``); ``events``: those that carried each value."""
        return {
            "values": [
                {"texts": values.texts, "events": list(counts), "kept": values.kept}
                for values, counts in zip(self.values, events, strict=True)
            ],
            "tuples": self.segments,
        }


def decode(data: bytes, name: str) -> Texts:
    """What ``encode`` was called on; DamagedError where it changed, CodecError for other bytes."""
    try:
        return msgspec.msgpack.decode(codec.unpacked(body_of(data, name)), type=Texts)
    except (msgspec.MsgspecError, cramjam.DecompressionError, ValueError) as error:
        raise CodecError(f"texts of {len(data)} bytes cannot be read: {error}") from error
