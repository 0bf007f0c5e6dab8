"""Rows of a Parquet file as lines of NDJSON, a batch at a time. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamer.errors import SourceError
from streamer.formatting import counted
from streamer.settings import limits
from streamer.sources.lines import LineFile
from streamer.sources.tables import lines_of_table

_ROWS, _DECODED_ROWS = 1000, 200
"""Rows in a list of lines, and those that are decoded at once: a dictionary may hold one long text
for all of them."""
_DECODED_BYTES, _BOMB_RATIO, _BOMB_BYTES = 32 << 20, 100, 256 << 20
"""What decoded rows may take; how much smaller than its values a column is in which any of them
may be as long as all together; and the values of such a column of a row group."""
_TEXTS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""Physical types of columns that may have long values."""
_READ_BYTES = 1 << 20
"""Bytes of a column read at once, instead of all that a row group holds."""
_INSTALL = "pip install pyarrow"


class ParquetFile(LineFile):
    """One Parquet file.

    Iterating gives lists of lines: of each row a JSON object of its columns that have a value.
    Structs and maps are objects, times texts of RFC 3339 in UTC (without an offset where the column
    has no time zone), decimals numbers, bytes texts where they are UTF-8 and base64 else; a whole
    float is an integer, a number that is not finite null.
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
        rows, lines, size = 0, list[bytes](), 0
        for batch in file.iter_batches(self._rows_at_once(file.metadata)):
            rows += batch.num_rows
            self.read_bytes = (self.total_bytes or 0) * rows // max(1, file.metadata.num_rows)
            for some in lines_of_table(batch, self.path):
                lines += some
                size += sum(map(len, some))
                if len(lines) > _ROWS - _DECODED_ROWS or size > limits.MAX_LINE_BYTES:
                    yield lines
                    lines, size = [], 0
        yield lines

    def _rows_at_once(self, metadata: Any) -> int:
        """How many rows are decoded together; SourceError where a cell is longer than a record may
        be, or a small column becomes a large one: nothing is decoded then."""
        rows = _DECODED_ROWS
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        for group in (group for group in groups if group.num_rows):
            rows = min(rows, _DECODED_BYTES * group.num_rows // max(1, group.total_byte_size))
            for column in map(group.column, range(group.num_columns)):
                size, values = column.total_uncompressed_size, max(1, column.num_values)
                is_text = column.physical_type in _TEXTS
                is_bomb = is_text and size > _BOMB_RATIO * max(1, column.total_compressed_size)
                # Its pages may be as long as all of it, and a page is inflated whole.
                most = limits.MAX_RECORD_BYTES * values
                most = min(most, _BOMB_BYTES) if is_bomb else most
                if size > most:
                    raise SourceError(
                        f"column {column.path_in_schema!r} has {size:,} bytes in "
                        f"{counted(group.num_rows, 'row')}, of which the file has "
                        f"{column.total_compressed_size:,}: at most {most:,} are read; leave the "
                        f"column out; at {self.path}"
                    )
                if is_bomb:
                    rows = min(rows, _DECODED_BYTES // size)
        return max(1, rows)
