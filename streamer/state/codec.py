"""Columns ↔ bytes, versioned.

What repeats from row to row is stored once for each run, decimal numbers as integers. Then bytes
are transposed before lz4, so that the planes of slowly moving columns (times, offsets, segments)
shrink to almost nothing.

What is stored carries a checksum of what it is and where it belongs, so that neither damage nor
the bytes of another place are taken for numbers.

A frame is a mark of four bytes, the CRC-32 of the place and the body, and the body. CRC-32 finds
every flipped bit, and every burst of up to 32; of other damage it misses one in four billion. The
place of a blob is its name, which no other blob of any partition ever has: it begins with the claim
under which it was written, which is random and of one partition.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import cramjam
import msgspec
import numpy as np
import numpy.typing as npt

from streamer.encoding.arrays import F64
from streamer.errors import CodecError, DamagedError
from streamer.settings import limits

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


VERSION = 4
_DTYPE = re.compile(r"^[<|][iufb][1248]\Z")
_ROWS_A_RUN = 3
"""Runs are stored where they are so long, on average."""
_PLAIN, _RUNS, _DECIMALS = 0, 1, 2
_NARROW = {3: "|i1", 4: "<i2", 5: "<i4"}
"""Forms of 64-bit integers that fit into fewer bits: less to transpose and to decompress."""
_DECIMAL_UNITS = 1e6
_NO_NUMBER = np.iinfo(np.int32).min
Columns = Mapping[str, np.ndarray[Any, Any]]
_Array = npt.NDArray[Any]


class _Column(msgspec.Struct, array_like=True):
    """``form``: as it is, the values of runs and their lengths, millionths in 32 bits, or integers
    in fewer bits."""

    name: str
    dtype: str
    form: int
    size: int


class _Header(msgspec.Struct, array_like=True):
    version: int
    rows: int
    columns: list[_Column]


def encode(columns: Columns, name: str) -> bytes:
    """Bytes of the blob of that name: columns of equal length (numbers and booleans, one
    dimension)."""
    rows = len(next(iter(columns.values())))
    header, planes = _Header(VERSION, rows, []), []
    for title, column in columns.items():
        form, arrays = _packed(column)
        size = len(arrays[0])
        header.columns.append(_Column(title, column.dtype.str, form, size))
        planes += [
            np.ascontiguousarray(x).view(np.uint8).reshape(size, x.dtype.itemsize).T.tobytes()
            for x in arrays
        ]
    head = msgspec.msgpack.encode(header)
    body = packed(b"".join(planes))
    return framed(len(head).to_bytes(4, "little") + head + body, name)


def _packed(column: _Array) -> tuple[int, list[_Array]]:
    """The form of a column, and the arrays that stand for it."""
    rows, bits = len(column), column.view(f"u{column.dtype.itemsize}")
    starts = np.flatnonzero(bits[1:] != bits[:-1]) + 1
    if (len(starts) + 1) * _ROWS_A_RUN < rows:
        starts = np.concatenate(([0], starts))
        return _RUNS, [column[starts], np.diff(np.append(starts, rows)).astype(np.uint32)]
    if column.dtype == np.int64 and rows:
        least, most = int(column.min()), int(column.max())
        for form, dtype in _NARROW.items():
            if np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max:
                return form, [column.astype(dtype)]
    if column.dtype == np.float64:
        units = _millionths(column)
        if units is not None:
            return _DECIMALS, [units]
    return _PLAIN, [column]


def _millionths(column: F64) -> _Array | None:
    """A column in millionths; None where that is not exact to the last bit."""
    is_number = ~np.isnan(column)
    number = np.where(is_number, column, 0.0)
    if np.abs(number).max(initial=0.0) >= -_NO_NUMBER / _DECIMAL_UNITS:
        return None
    units = np.rint(number * _DECIMAL_UNITS)
    packed = np.where(is_number, units, _NO_NUMBER).astype(np.int32)
    is_same = _from_millionths(packed).view(np.uint64) == column.view(np.uint64)
    return packed if is_same.all() else None


def _from_millionths(units: _Array) -> F64:
    return np.where(units == _NO_NUMBER, np.nan, units / _DECIMAL_UNITS)


def decode(data: bytes, name: str) -> dict[str, np.ndarray[Any, Any]]:
    """The columns that ``encode`` was given; DamagedError where they changed or are another blob's,
    CodecError for anything else."""
    data = body_of(data, name)
    try:
        size = int.from_bytes(data[:4], "little")
        head = data[4 : 4 + size]
        (version, *_) = msgspec.msgpack.decode(head, type=list[Any])
        if version != VERSION:
            raise CodecError(f"blob of version {version}; this is version {VERSION}")
        header = msgspec.msgpack.decode(head, type=_Header)
        if header.rows > limits.MAX_BLOB_ROWS:
            raise CodecError(f"a stored blob says that it has {header.rows} rows")
        body = unpacked(data[4 + size :])
        return dict(_columns(header, body))
    except (msgspec.MsgspecError, cramjam.DecompressionError, ValueError) as error:
        raise CodecError(f"a stored blob of {len(data)} bytes cannot be read: {error}") from error


def packed(data: bytes) -> bytes:
    """By lz4."""
    return bytes(cramjam.lz4.compress_block(data))


def unpacked(data: bytes) -> memoryview:
    """What lz4 packed; ValueError where it says that it is larger than anything stored."""
    size = int.from_bytes(data[:4], "little")
    if size > limits.MAX_BLOB_BYTES:
        raise ValueError(f"{size} bytes unpacked are more than {limits.MAX_BLOB_BYTES}")
    return memoryview(cramjam.lz4.decompress_block(data))


def _columns(header: _Header, body: memoryview) -> Iterator[tuple[str, _Array]]:
    at = 0

    def array(dtype: str, size: int) -> _Array:
        nonlocal at
        width = np.dtype(dtype).itemsize
        planes = np.frombuffer(body, np.uint8, width * size, at).reshape(width, size)
        at += width * size
        rows = np.empty((size, width), np.uint8)  # aligned, as the core wants it
        for place, plane in enumerate(planes):  # half the time of a transposed copy
            rows[:, place] = plane
        return rows.reshape(-1).view(dtype)

    for column in header.columns:
        if not _DTYPE.match(column.dtype):
            raise CodecError(f"a stored blob has a column of type {column.dtype!r}")
        if column.form == _DECIMALS:
            values: _Array = _from_millionths(array("<i4", column.size))
        elif column.form in _NARROW:
            values = array(_NARROW[column.form], column.size).astype(column.dtype)
        else:
            values = array(column.dtype, column.size)
        if column.form == _RUNS:
            lengths = array("<u4", column.size)
            if lengths.sum(dtype=np.int64) != header.rows:
                raise CodecError(f"runs of column {column.name!r} are not {header.rows} rows")
            values = np.repeat(values, lengths)
        if len(values) != header.rows:
            raise CodecError(f"column {column.name!r} has {len(values)} rows of {header.rows}")
        yield column.name, values
    if at != len(body):
        raise CodecError(f"a stored blob has {len(body)} bytes where its header says {at}")
