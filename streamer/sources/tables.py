"""Tables and rows in memory as lines of NDJSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np

from streamer._core import TableRows
from streamer.errors import SourceError
from streamer.settings import limits

_ROWS = 1000
"""Mappings encoded at once."""
_MISSING = ("NAType", "NaTType")
"""Types of pandas' values for what is missing."""
_EncodingErrors = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


@runtime_checkable
class ArrowTable(Protocol):
    """A table of pandas, Polars, pyarrow, DuckDB: what has Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule with an Arrow stream."""


class MemoryTable:
    """A table in memory, or an iterable of mappings, read as a file is.

    Iterating gives lists of lines: of each row a JSON object. Of a table it has the columns with a
    value, as of a Parquet file; of a mapping all that is in it, as msgspec writes it. A row that is
    no mapping, or cannot be written, is a line that is no event.
    """

    total_bytes: int | None = None
    read_bytes = 0
    is_live = False
    """Lines of a table were there before it is read, as those of a file."""

    def __init__(self, table: ArrowTable | Iterable[Mapping[str, Any]], name: str) -> None:
        self.path = name
        self._table = table

    def __iter__(self) -> Iterator[list[bytes]]:
        if isinstance(self._table, ArrowTable):
            return lines_of_table(self._table, self.path)
        return self._lines_of_rows(self._table)

    def _lines_of_rows(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[list[bytes]]:
        for some in _chunks(rows):
            try:
                lines = _encoder.encode_lines([_whole(row) for row in some]).split(b"\n")[:-1]
            except _EncodingErrors:
                lines = [_line(row) for row in some]
            yield [line[: limits.MAX_LINE_BYTES] for line in lines]


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Rows in lists; those before an error come before it."""
    rest, some = iter(rows), list[Any]()
    try:
        while True:
            some.extend(islice(rest, _ROWS))  # keeps those that came before an error
            if not some:
                return
            yield some
            some = []
    except Exception:
        yield some
        raise


def _whole(row: Any) -> Any:
    """A row whose whole floats are integers, as those of a table are: pandas makes floats of a
    column of integers where a value is missing.

    >>> _whole({"position": 3.0, "score": 0.5})
    {'position': 3, 'score': 0.5}
    """
    if not isinstance(row, Mapping):
        return row
    return {k: int(v) if type(v) is float and v.is_integer() else v for k, v in row.items()}


def _line(row: object) -> bytes:
    """A row as JSON; of one that has none a text, which is no event."""
    try:
        return _encoder.encode(_whole(row))
    except _EncodingErrors:
        return msgspec.json.encode(repr(row))


def _plain(value: Any) -> Any:
    """A value that msgspec does not know: scalars and arrays of numpy, times of pandas,
    other mappings."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else f"{value.astype('datetime64[us]')}"
    if type(value).__name__ in _MISSING:
        return None
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"values of type {type(value).__name__} are not written")


_encoder = msgspec.json.Encoder(enc_hook=_plain, decimal_format="number")


def lines_of_table(table: ArrowTable, name: str) -> Iterator[list[bytes]]:
    """Lists of lines, of each row one; SourceError where a table cannot be read."""
    rows, lines = None, list[bytes]()
    while True:
        try:
            rows = TableRows(table, limits.MAX_LINE_BYTES) if rows is None else rows
            lines = next(rows)
        except StopIteration:
            return
        except Exception as error:  # whatever the table's own library raises
            raise SourceError(f"{error}; at {name}") from error
        yield lines
