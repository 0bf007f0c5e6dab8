"""Columns ↔ bytes, versioned. Bytes of integers are transposed before lz4, so that the planes of
slowly moving columns (times, offsets, segments) shrink to almost nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import cramjam
import msgspec
import numpy as np

from streamer.errors import CodecError

VERSION = 1
_DTYPE = re.compile(r"^[<|][iufb][1248]\Z")
Columns = Mapping[str, np.ndarray[Any, Any]]


class _Header(msgspec.Struct, array_like=True):
    version: int
    rows: int
    columns: list[tuple[str, str]]


def encode(columns: Columns) -> bytes:
    """Bytes of columns of equal length (numbers and booleans, one dimension)."""
    rows = len(next(iter(columns.values())))
    header = _Header(VERSION, rows, [(name, c.dtype.str) for name, c in columns.items()])
    planes = [
        np.ascontiguousarray(c).view(np.uint8).reshape(rows, c.dtype.itemsize).T.tobytes()
        for c in columns.values()
    ]
    head = msgspec.msgpack.encode(header)
    body = bytes(cramjam.lz4.compress_block(b"".join(planes)))
    return len(head).to_bytes(4, "little") + head + body


def decode(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """The columns that ``encode`` was given; CodecError for anything else."""
    try:
        size = int.from_bytes(data[:4], "little")
        header = msgspec.msgpack.decode(data[4 : 4 + size], type=_Header)
        if header.version != VERSION:
            raise CodecError(f"blob of version {header.version}; this is version {VERSION}")
        body = bytes(cramjam.lz4.decompress_block(data[4 + size :]))
        return _split(header, body)
    except (msgspec.MsgspecError, cramjam.DecompressionError, ValueError) as error:
        raise CodecError(f"a stored blob of {len(data)} bytes cannot be read: {error}") from error


def _split(header: _Header, body: bytes) -> dict[str, np.ndarray[Any, Any]]:
    columns, at = {}, 0
    for name, dtype in header.columns:
        if not _DTYPE.match(dtype):
            raise CodecError(f"a stored blob has a column of type {dtype!r}")
        width = np.dtype(dtype).itemsize
        size = width * header.rows
        plane = np.frombuffer(body, np.uint8, size, at).reshape(width, header.rows)
        columns[name] = np.ascontiguousarray(plane.T).reshape(-1).view(dtype)
        at += size
    if at != len(body):
        raise CodecError(f"a stored blob has {len(body)} bytes where its header tells {at}")
    return columns
