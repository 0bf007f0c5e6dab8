"""Files of series of samples: OpenMetrics and Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import IO, Any, NamedTuple

import numpy as np
from prometheus_client.utils import floatToGoString

from streamer.encoding.arrays import F64, I64
from streamer.query.readings import SeriesBlock
from streamer.server.prometheus_text import escaped, labels_text

_AT_ONCE = 64
"""Series that are read from the disk together."""
_GROUP_ROWS = 1 << 17
"""Rows of a row group of Parquet, about."""


class SampledSeries(NamedTuple):
    """One series: ``labels`` by name, in order; a value for each time (ms)."""

    name: str
    doc: str
    labels: tuple[tuple[str, str], ...]
    times_ms: I64
    values: F64


class SeriesSpool:
    """Samples on disk: they come by time, and leave by series."""

    def __init__(self, file: IO[bytes], labels: Iterable[tuple[str, str]]) -> None:
        """``labels``: what all series have besides."""
        self._file, self._labels, self.times_ms = file, dict(labels), list[int]()
        self._columns: dict[tuple[str, str, tuple[tuple[str, str], ...]], int] = {}
        self._widths: list[int] = []

    def add(self, time_ms: int, blocks: Iterable[SeriesBlock]) -> None:
        """Take in the samples of one time, which is later than those before; nothing where there
        are none."""
        columns, values = list[int](), list[float]()
        for block in blocks:
            for i in block.present:
                labels = tuple(sorted({**block.labels[i], **block.extra, **self._labels}.items()))
                series = block.name, block.doc, labels
                columns.append(self._columns.setdefault(series, len(self._columns)))
                values.append(block.values[i])
        if columns:
            row = np.full(len(self._columns), np.nan)
            row[columns] = values
            self._file.write(row.tobytes())
            self.times_ms.append(time_ms)
            self._widths.append(len(row))

    @property
    def label_names(self) -> list[str]:
        """Those that any series has."""
        return sorted({name for _, _, labels in self._columns for name, _ in labels})

    def series(self) -> Iterator[SampledSeries]:
        """All of them, by name and labels."""
        if not self.times_ms:
            return
        self._file.flush()
        cells = np.memmap(self._file, np.float64, "r")
        widths, times = np.array(self._widths), np.array(self.times_ms)
        starts, every = np.cumsum(widths) - widths, sorted(self._columns.items())
        for at in range(0, len(every), _AT_ONCE):
            some = every[at : at + _AT_ONCE]
            column = np.array([column for _, column in some])
            is_there = column < widths[:, None]
            samples = cells[np.where(is_there, starts[:, None] + column, 0)]
            samples[~is_there] = np.nan
            for (series, _), values in zip(some, samples.T, strict=True):
                known = ~np.isnan(values)
                yield SampledSeries(*series, times[known], values[known])


def write_openmetrics(path: str, spool: SeriesSpool) -> None:
    """Write all as ``promtool tsdb create-blocks-from openmetrics`` reads it."""
    with open(path, "w", encoding="utf-8") as file:
        for name, of_name in groupby(spool.series(), lambda each: each.name):
            for number, each in enumerate(of_name):
                if not number:
                    file.write(f"# HELP {name} {escaped(each.doc)}\n# TYPE {name} gauge\n")
                head = f"{name}{labels_text(dict(each.labels))}"
                samples = zip(each.values.tolist(), each.times_ms.tolist(), strict=True)
                file.writelines(
                    f"{head} {floatToGoString(value)} {ms // 1000}\n"  # type: ignore[no-untyped-call]
                    for value, ms in samples
                )
        file.write("# EOF\n")


def write_parquet(path: str, spool: SeriesSpool) -> None:
    """Write a row for each sample: its time, the metric, a column for each label, the value."""
    import pyarrow
    from pyarrow import parquet

    text, names = pyarrow.string(), spool.label_names
    times = pyarrow.timestamp("ms", "UTC")
    fields = [("time", times), ("metric", text), *((name, text) for name in names)]
    schema = pyarrow.schema([*fields, ("value", pyarrow.float64())])

    def table_of(each: SampledSeries) -> Any:
        labels, rows = dict(each.labels), len(each.values)
        texts = [each.name, *(labels.get(name) for name in names)]
        columns = [pyarrow.repeat(pyarrow.scalar(value, text), rows) for value in texts]
        columns = [pyarrow.array(each.times_ms, times), *columns, pyarrow.array(each.values)]
        return pyarrow.table(columns, schema=schema)

    with parquet.ParquetWriter(path, schema) as file:
        waiting, rows = [schema.empty_table()], 0
        for each in spool.series():
            waiting.append(table_of(each))
            rows += len(each.values)
            if rows >= _GROUP_ROWS:
                file.write_table(pyarrow.concat_tables(waiting))
                waiting, rows = [schema.empty_table()], 0
        file.write_table(pyarrow.concat_tables(waiting))
