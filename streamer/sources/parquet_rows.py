"""Rows of a Parquet file as lines of NDJSON, a batch at a time. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from streamer.errors import SourceError
from streamer.settings import limits
from streamer.sources.lines import LineFile

_ROWS = 1000
"""Rows decoded at once."""
_READ_BYTES = 1 << 20
"""Bytes of a column read at once, instead of all that a row group holds."""
_INSTALL = "pip install 'streamer-metrics[parquet]'"

_Read = Callable[[Any], Any]


class ParquetFile(LineFile):
    """One Parquet file.

    Iterating gives lists of lines: of each row a JSON object of its columns that have a value.
    Structs and maps are objects, times texts of RFC 3339 (without an offset where the column has no
    time zone), decimals numbers, bytes texts where they are UTF-8 and base64 else; a number that is
    not finite is null.
    """

    def __iter__(self) -> Iterator[list[bytes]]:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise SourceError(
                f"Parquet files need pyarrow: {_INSTALL}, or convert it to .csv or NDJSON; "
                f"at {self.path}"
            ) from error
        try:
            with pyarrow.parquet.ParquetFile(
                self.path, buffer_size=_READ_BYTES, pre_buffer=False
            ) as file:
                yield from self._batches(file)
        except (pyarrow.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise SourceError(f"broken Parquet file: {reason}; at {self.path}") from error
        self.read_bytes = self.total_bytes or 0

    def _batches(self, file: Any) -> Iterator[list[bytes]]:
        names = file.schema_arrow.names
        if again := next((name for name in names if names.count(name) > 1), None):
            raise SourceError(f"two columns are called {again!r}: rename one; at {self.path}")
        encode = msgspec.json.Encoder(decimal_format="number").encode
        rows = 0
        for batch in file.iter_batches(_ROWS):
            columns = [_values(column) for column in batch.columns]
            rows += batch.num_rows
            self.read_bytes = (self.total_bytes or 0) * rows // max(1, file.metadata.num_rows)
            rows_of_batch = zip(*columns, strict=True)
            lines = (
                encode({n: v for n, v in zip(names, row, strict=True) if v is not None})
                for row in rows_of_batch
            )
            yield [line[: limits.MAX_LINE_BYTES] for line in lines]


def _values(column: Any) -> list[Any]:
    """The values of a column as JSON can write them."""
    read = _reader(column.type)
    plain = _in_microseconds(column.type)
    if plain != column.type:
        column = column.cast(plain, safe=False)
    values = column.to_pylist()
    return values if read is None else [read(value) for value in values]


def _reader(kind: Any) -> _Read | None:
    """What makes values of a type of Arrow such as JSON can write; None where they are."""
    from pyarrow import types

    if types.is_map(kind):
        key, value = (_reader(t) or _same for t in (kind.key_type, kind.item_type))
        return _if_any(lambda pairs: {str(key(k)): value(v) for k, v in pairs})
    if types.is_struct(kind):
        readers = {field.name: _reader(field.type) or _same for field in kind}
        return _if_any(lambda row: {name: read(row[name]) for name, read in readers.items()})
    if hasattr(kind, "value_type") and not types.is_dictionary(kind):
        of_element = _reader(kind.value_type) or _same
        return _if_any(lambda values: [of_element(value) for value in values])
    if types.is_dictionary(kind):
        return _reader(kind.value_type)
    if hasattr(types, "is_binary_view") and types.is_binary_view(kind):
        return _text
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _text
    return _if_any(float) if types.is_float16(kind) else None


def _same(value: Any) -> Any:
    return value


def _if_any(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


def _text(value: bytes | None) -> str | bytes | None:
    try:
        return value if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _in_microseconds(kind: Any) -> Any:
    """A type whose times Python can hold."""
    import pyarrow

    types = pyarrow.types
    if types.is_timestamp(kind) and kind.unit == "ns":
        return pyarrow.timestamp("us", kind.tz)
    if types.is_duration(kind) and kind.unit == "ns":
        return pyarrow.duration("us")
    if types.is_time64(kind) and kind.unit == "ns":
        return pyarrow.time64("us")
    if types.is_struct(kind):
        return pyarrow.struct([f.with_type(_in_microseconds(f.type)) for f in kind])
    if types.is_map(kind):
        return pyarrow.map_(_in_microseconds(kind.key_type), _in_microseconds(kind.item_type))
    if types.is_large_list(kind):
        return pyarrow.large_list(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    if types.is_list(kind):
        return pyarrow.list_(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    return kind
