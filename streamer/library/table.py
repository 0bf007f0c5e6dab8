"""A small table of results: columns of equal length, for people and for data frames."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, TypeAlias, overload

from streamer.errors import UsageError
from streamer.formatting import printable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Cell: TypeAlias = str | int | float | bool | datetime.datetime | None
"""What a table holds; None: nothing."""
_SHOWN_ROWS = 60
"""Rows that are shown at most: the first and the last half."""


class Table(Sequence[Mapping[str, Cell]]):
    """Rows of named values, all of them in memory.

    It is a sequence of rows: ``table[0]`` is a mapping from column to value. ``table["value"]`` is
    a column, as a list.

    >>> table = Table({"variant": ["A", "B"], "value": [0.25, None]})
    >>> table
    variant  value
    A         0.25
    B
    >>> table[0]
    {'variant': 'A', 'value': 0.25}
    >>> table["value"]
    [0.25, None]
    """

    def __init__(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        """``columns``: name → values, of equal length. Integers in a column with other numbers
        become such."""
        self._columns = {name: _of_one_type(values) for name, values in columns.items()}
        lengths = {len(values) for values in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of {sorted(lengths)} values: all need as many")
        self._length = lengths.pop() if lengths else 0

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Cell]], names: Sequence[str]) -> Table:
        """A table of these columns; a row may lack some."""
        return cls({name: [row.get(name) for row in rows] for name in names})

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        names = self.columns
        for row in zip(*self._columns.values(), strict=True):
            yield dict(zip(names, row, strict=True))

    @overload
    def __getitem__(self, key: int) -> dict[str, Cell]: ...
    @overload
    def __getitem__(self, key: slice) -> list[Mapping[str, Cell]]: ...
    @overload
    def __getitem__(self, key: str) -> list[Cell]: ...
    def __getitem__(
        self, key: int | slice | str
    ) -> Mapping[str, Cell] | Sequence[Mapping[str, Cell]] | list[Cell]:
        if isinstance(key, str):
            if key not in self._columns:
                raise KeyError(f"no column {key!r}; there are {', '.join(self.columns)}")
            return list(self._columns[key])
        if isinstance(key, slice):
            return [self._row(i) for i in range(*key.indices(self._length))]
        at = key + self._length if key < 0 else key
        if not 0 <= at < self._length:
            raise IndexError(f"row {key} of {self._length}")
        return self._row(at)

    def _row(self, at: int) -> dict[str, Cell]:
        return {name: values[at] for name, values in self._columns.items()}

    def number(self, column: str = "value", **labels: str) -> float:
        """The number in a column of the only row, or of the only one with these labels: for tests
        and conditions. UsageError where there is none, or several.

        >>> Table({"variant": ["A", "B"], "value": [0.25, 0.5]}).number(variant="B")
        0.5
        """
        rows = [row for row in self if labels.items() <= row.items()]
        if len(rows) != 1:
            chosen = "".join(f", {name} = {value!r}" for name, value in labels.items())
            raise UsageError(f"number({column!r}{chosen}): {len(rows)} rows, not one")
        value = rows[0][column]
        if not isinstance(value, int | float):
            raise UsageError(f"number({column!r}): {value!r} is no number")
        return value

    # For other libraries -------------------------------------------------------------------------

    def to_dicts(self) -> list[dict[str, Cell]]:
        """A list of rows, each a dict.

        >>> Table({"value": [0.25]}).to_dicts()
        [{'value': 0.25}]
        """
        return [self._row(at) for at in range(self._length)]

    def to_arrow(self) -> pyarrow.Table:  # pyright: ignore[reportUnknownParameterType]
        """A table of pyarrow. UsageError where that is not installed."""
        try:
            import pyarrow
        except ImportError:
            raise _missing("to_arrow", "pyarrow") from None
        return pyarrow.table(self._columns)  # pyright: ignore[reportUnknownVariableType]

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas. UsageError where that is not installed."""
        try:
            import pandas
        except ImportError:
            raise _missing("to_pandas", "pandas") from None
        return pandas.DataFrame(self._columns)

    def to_polars(self) -> polars.DataFrame:
        """A data frame of Polars. UsageError where that is not installed."""
        try:
            import polars
        except ImportError:
            raise _missing("to_polars", "polars") from None
        return polars.DataFrame(self._columns)

    # For people ----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not self._columns:
            return "(no columns)"
        head, *rows = self._shown()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        is_number = self._are_numbers()
        lines = list[str]()
        for row in (head, *rows):
            cells = zip(row, widths, is_number, strict=True)
            line = (
                cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells
            )
            lines.append("  ".join(line).rstrip())
        return "\n".join([*lines, *self._omitted()])

    def _repr_html_(self) -> str:
        head, *rows = self._shown()
        sides = ["right" if right else "left" for right in self._are_numbers()]

        def line(tag: str, cells: Sequence[str]) -> str:
            both = zip(cells, sides, strict=True)
            return "".join(
                f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>' for cell, side in both
            )

        body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
        more = "".join(f"<p>{escape(text)}</p>" for text in self._omitted())
        return (
            f"<table><thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody></table>{more}"
        )

    def _shown(self) -> Iterator[list[str]]:
        """The heading, and the rows that are shown, as texts."""
        yield [*map(printable, self.columns)]
        half = _SHOWN_ROWS // 2
        for at in range(self._length):
            if self._length <= _SHOWN_ROWS or at < half or at >= self._length - half:
                yield [_text(values[at]) for values in self._columns.values()]
            elif at == half:
                yield ["…"] * len(self._columns)

    def _omitted(self) -> list[str]:
        if self._length <= _SHOWN_ROWS:
            return []
        return [f"{self._length:,} rows, of which {_SHOWN_ROWS} are shown"]

    def _are_numbers(self) -> list[bool]:
        return [
            any(isinstance(value, int | float) for value in values)
            for values in self._columns.values()
        ]


def _of_one_type(values: Sequence[Cell]) -> list[Cell]:
    """Values of a column, of which data frames want one type.

    >>> _of_one_type([1, 0.5, None]), _of_one_type([1, None])
    ([1.0, 0.5, None], [1, None])
    """
    if not any(isinstance(value, float) for value in values):
        return list(values)
    return [float(value) if type(value) is int else value for value in values]


def _text(value: Cell) -> str:
    """A value as people read it.

    >>> [_text(value) for value in (1234, 0.123456789, None, "A", True)]
    ['1,234', '0.123457', '', 'A', 'True']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return printable(value)


def _missing(method: str, package: str) -> UsageError:
    return UsageError(
        f"{method}() needs {package}, which is not installed: pip install {package}, or call "
        "to_dicts()"
    )
