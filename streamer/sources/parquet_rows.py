"""Rows of a Parquet file as lines of NDJSON, a batch at a time. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamer.errors import SourceError
from streamer.sources.lines import LineFile
from streamer.sources.tables import lines_of_table

_ROWS = 1000
"""Rows decoded at once."""
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
        rows = 0
        for batch in file.iter_batches(_ROWS):
            rows += batch.num_rows
            self.read_bytes = (self.total_bytes or 0) * rows // max(1, file.metadata.num_rows)
            yield from lines_of_table(batch, self.path)
