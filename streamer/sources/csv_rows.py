"""Rows of a CSV file as lines of NDJSON, in bounded memory."""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from streamer.errors import SourceError
from streamer.ingest.discovery.names import OTHER_NAMES, plain
from streamer.settings import limits
from streamer.settings.event_fields import ALL_KINDS, NUMBERS
from streamer.settings.model import Settings
from streamer.settings.paths import path_of
from streamer.settings.source_rules import paths_of
from streamer.sources.lines import BLOCK_BYTES, LineFile, split_lines
from streamer.sources.log_lines import shape_of

_BOM = b"\xef\xbb\xbf"
_SEPARATORS = (",", "\t", ";", "|", "::")
_UNIT = "\x1f"
"""What stands for a separator of two characters: readers know those of one."""
_NULL = r"\N"
"""What MySQL and Hive write where there is nothing."""
_TYPED = re.compile(r"(.+):(?:token|float|token_seq|float_seq)")
"""A column of RecBole, with its type."""
_QUOTED = re.compile(rb'"[^"]*"')

_LOOKED_AT = 200
"""Rows that say whether a file holds a table."""

csv.field_size_limit(limits.MAX_LINE_BYTES)  # 128 KB otherwise; rows have a bound of their own
_is_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII).fullmatch
"""Whether a text is a number as JSON writes it: ``007`` and ``+1`` are none."""
_is_whole = re.compile(r"-?(?:0|[1-9][0-9]*)\.0+", re.ASCII).fullmatch


_has_comma = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+),[0-9]+", re.ASCII).fullmatch
"""Whether a text is a number with a decimal comma: 12,50 and 1.547,69."""
_is_datum = re.compile(
    r"[+-]?[0-9]+(?:[.,][0-9]*)?(?:[eE][+-]?[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]+/[0-9]+/.*",
    re.ASCII,
).fullmatch
"""Whether a cell is a number or a time, which is no name of a column."""


_USUAL = {plain(name) for of in OTHER_NAMES.items() for name in (of[0], *of[1])}


class CsvFile(LineFile):
    """One input with a header row, or rows of ``columns``. Cells stand between commas, semicolons,
    bars, tabs or ``::``: what the name of the file says, where it stands in the header, else what
    stands there most often; with ``columns`` what makes as many cells of the first row.

    Iterating gives lists of lines: of each row a JSON object of its columns, of which those in
    ``numeric`` are numbers where they look so, and all others texts. Cells that are empty or
    ``\\N``, and columns without a name, are left out. A row that is none of the header's columns
    is a JSON list of its cells, one that cannot be read the text as it stands: both are no events.
    """

    is_table = True
    is_sample = False
    """Whether nobody knows yet which columns are numbers."""
    is_raw = False
    """Whether only the first rows are read, each as a list of its cells."""

    def __init__(
        self, path: str | Path, numeric: Container[str], columns: Sequence[str] = ()
    ) -> None:
        super().__init__(path)
        self._numeric, self._columns, self._has_commas = numeric, list(columns), False

    def _lines(self, blocks: Iterator[bytes]) -> Iterator[list[bytes]]:
        first = next(blocks, b"")
        separator = self._separator_of(first.lstrip(b"\r\n").partition(b"\n")[0])
        self._has_commas = separator == ";"
        rows = _Rows(split_lines(chain([first], blocks)), separator)
        header = next(rows, None)
        if header is None:
            return
        if self.is_raw:
            some = islice(chain([header], rows), _LOOKED_AT)
            yield [msgspec.json.encode(row) for row in some if isinstance(row, list)]
            return
        is_data = bool(self._columns) and header != self._columns
        names = self._columns or _untyped(self._names(header))
        batch: list[bytes] = []
        size = 0
        for row in chain([header], rows) if is_data else rows:
            batch.append(line := self._line(names, row))
            size += len(line)
            if size >= BLOCK_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _separator_of(self, row: bytes) -> str:
        """What stands between the cells of the first row."""
        own = "\t" if ".tsv" in Path(self.path).suffixes else ","
        own = "::" if row.count(b"::") > 1 else own
        cells = {each: 1 + _QUOTED.sub(b"", row).count(each.encode()) for each in _SEPARATORS}
        if cells[own] == len(self._columns) or (not self._columns and cells[own] > 1):
            return own
        fitting = [each for each in _SEPARATORS if cells[each] == len(self._columns)]
        return fitting[0] if fitting else max(_SEPARATORS, key=cells.__getitem__)

    def _names(self, header: list[str] | bytes) -> list[str]:
        """The columns' names; SourceError where they are none."""
        if isinstance(header, bytes):
            raise SourceError(f"the header row cannot be read as CSV; at {self.path}")
        names = [name for name in header if name]
        if not names:
            raise SourceError(f"no names of columns in the first row; at {self.path}")
        if any(map(_is_datum, names)) and not self._knows(names):
            advice = 'name its columns in [[sources]]: columns = ["user_id", …]'
            given = "for `streamer init` --columns user_id,…"
            raise SourceError(f"no header row: {advice}, {given}; at {self.path}")
        if again := next((name for name in names if names.count(name) > 1), None):
            raise SourceError(f"two columns are called {again!r}: rename one; at {self.path}")
        return header

    def _knows(self, names: list[str]) -> bool:
        """Whether a field is called like one of these columns by us, or usually."""
        return any(name in self._numeric or plain(name) in _USUAL for name in names)

    def _line(self, names: list[str], row: list[str] | bytes) -> bytes:
        if isinstance(row, bytes):
            return row
        if len(row) != len(names):
            return msgspec.json.encode(row)
        return msgspec.json.encode(
            {
                name: self._number(cell) if name in self._numeric else cell
                for name, cell in zip(names, map(self._with_point, row), strict=True)
                if cell and name and cell != _NULL
            }
        )

    def _with_point(self, cell: str) -> str:
        """A cell; of a sample between semicolons a number with a decimal comma has a point."""
        return _with_point(cell) if self._has_commas and self.is_sample else cell

    def _number(self, cell: str) -> msgspec.Raw | str:
        """A cell as a number, if it is one; between semicolons it may have a decimal comma."""
        text = _with_point(cell) if self._has_commas else cell
        if _is_whole(text):  # pandas writes integers so where one is missing
            text = text.partition(".")[0]
        return msgspec.Raw(text.encode()) if _is_number(text) else cell


def _with_point(cell: str) -> str:
    """A number with a decimal point, where it has a comma.

    >>> _with_point("1.547,69"), _with_point("12,5"), _with_point("a, b")
    ('1547.69', '12.5', 'a, b')
    """
    return cell.replace(".", "").replace(",", ".") if _has_comma(cell) else cell


def _untyped(names: list[str]) -> list[str]:
    """Names of columns without their types.

    >>> _untyped(["user_id:token", "rating:float", "a:b"])
    ['user_id', 'rating', 'a:b']
    """
    found = [_TYPED.fullmatch(name) for name in names]
    return [of[1] if of else name for of, name in zip(found, names, strict=True)]


def first_rows(path: str | Path) -> list[list[str]]:
    """The cells of the first rows of a table, without a look at what they are."""
    file = CsvFile(path, ())
    file.is_raw = True
    return [msgspec.json.decode(row) for batch in islice(file, 1) for row in batch]


def holds_rows(path: str | Path) -> bool:
    """Whether a file, whatever its name is, begins with rows of one separator: not with JSON."""
    file = LineFile(path)
    if file.is_live:
        return False
    rows = file.head(_LOOKED_AT)
    if len(rows) < 2 or rows[0].lstrip().startswith((b"{", b"[", b"<")):
        return False
    if shape_of(rows[:1]) and shape_of(rows):
        return False
    counts = [[row.count(each.encode()) for row in rows] for each in _SEPARATORS]
    return any(min(of) > 0 and (of[0] > 1 or max(of) == min(of)) for of in counts)


class _Rows:
    """Rows of cells; the text of a row, at most ``limits.MAX_LINE_BYTES`` of it, where it is none:
    not UTF-8, or too long. Empty lines are none."""

    def __init__(self, batches: Iterable[list[bytes]], delimiter: str) -> None:
        self._lines = (line for batch in batches for line in batch)
        self._taken: list[bytes] = []
        self._bytes = 0
        self._is_first = True
        self._separator = delimiter
        own = _UNIT if len(delimiter) > 1 else delimiter
        self._reader = csv.reader(_Text(self), delimiter=own)

    def __iter__(self) -> Iterator[list[str] | bytes]:
        return self

    def __next__(self) -> list[str] | bytes:
        while True:
            self._taken, self._bytes = [], 0
            try:
                row = next(self._reader)
            except (csv.Error, _TooLongError, UnicodeDecodeError):
                return b"\n".join(self._taken)[: limits.MAX_LINE_BYTES]
            if row:
                return row

    def next_line(self) -> str:
        """The next line of the text, for the row that is read."""
        if self._bytes > limits.MAX_LINE_BYTES:
            raise _TooLongError
        line = next(self._lines)
        if self._is_first:
            self._is_first, line = False, line.removeprefix(_BOM)
        self._taken.append(line)
        self._bytes += len(line) + 1
        if len(line) >= limits.MAX_LINE_BYTES:
            raise _TooLongError
        text = line.decode() + "\n"
        return text.replace(self._separator, _UNIT) if len(self._separator) > 1 else text


class _Text:
    """Lines for the reader: no generator, which would end with the first error."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> str:
        return self._rows.next_line()


class _TooLongError(Exception):
    """A row is longer than any record."""


def numeric_columns(settings: Settings) -> frozenset[str]:
    """Names of columns whose numbers are numbers: those that a numeric field of ours is read from,
    and that are no id, time or dimension besides. All other cells are texts, whatever is in them.

    >>> from streamer.settings.load import parse
    >>> sorted(numeric_columns(parse({"events": {"fields": {"score": "relevance"}}})))[-3:]
    ['relevance', 'reward_estimate', 'value']
    """
    numbers = {*NUMBERS, *settings.policy_fields}
    numbers |= {*settings.own_numbers}
    columns = {settings.events.fields.get(name, name) for name in numbers}
    mapped = list(_mapped(settings))
    columns -= {column for ours, column in mapped if ours not in numbers}
    return frozenset(columns | {column for ours, column in mapped if ours in numbers})


def _mapped(settings: Settings) -> Iterator[tuple[str, str]]:
    """(our field, a column that the settings read it from)."""
    for source in settings.read_sources:
        fields = [field for kind in ALL_KINDS for field in source.fields_of(kind).items()]
        for ours, said in fields:
            steps = (path_of(path)[0] for path in paths_of(said))
            yield from ((ours, step) for step in steps if isinstance(step, str))
