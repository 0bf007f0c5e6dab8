"""Where text of commands leaves: colours, lines that end between words, tables, waiting.

Control characters of all text are escaped here, as events say much of it.

Rich leaves colours out where the output is no terminal, and where ``NO_COLOR`` is set. Nothing is
cut: a table that is wider than the terminal becomes a list, and a name is never broken, so that it
can be copied.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamer.formatting import printable, printable_json, printable_lines

WIDTH = 120
"""Characters of a line, where the output is no terminal."""
BAD, WARNING, GOOD, MUTED, STRONG = "bold red", "yellow", "green", "dim", "bold"
_MIN_TEXT = 20
"""Characters of a column of text, below which a table becomes a list."""


def console_of(*, is_stderr: bool = False, width: int = WIDTH) -> Console:
    """A console that colours nothing by itself; ``width``: where it is no terminal."""
    console = Console(highlight=False, stderr=is_stderr)
    if not console.is_terminal:
        console.width = width
    return console


def shown(text: str | Text) -> Text:
    """A text as it is printed: in one line, its control characters escaped.

    >>> shown("two\\nlines").plain, shown(Text.assemble("a\\x1b", ("b", BAD))).plain
    ('two\\\\nlines', 'a\\\\x1bb')
    """
    if isinstance(text, str):
        return Text(printable(text))
    if printable(text.plain) == text.plain:
        return text
    pieces = text.divide([*range(1, len(text))])
    for piece in pieces:
        piece.plain = printable(piece.plain)
    return Text().join(pieces)


def say(console: Console, text: str | Text, *, style: str = "", indent: int = 0) -> None:
    """Print a paragraph in lines that end between words; a word that is longer than a line stays
    whole. ``indent``: of all lines."""
    words = shown(text)
    words.stylize(style)
    for line in wrapped(words, console.width - indent) or [Text()]:
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)


def say_beside(console: Console, head: Text, text: str) -> None:
    """Print a head and text at its right, whose further lines begin below its first."""
    for line in wrapped(shown(text), console.width - head.cell_len) or [Text()]:
        console.print(Text.assemble(head, line), soft_wrap=True)
        head = Text(" " * head.cell_len)


def wrapped(words: Text, width: int) -> list[Text]:
    """The lines of a paragraph.

    >>> [line.plain for line in wrapped(Text("a streamer_ctr_ratio b c"), 8)]
    ['a', 'streamer_ctr_ratio', 'b c']
    """
    starts, used = [], 0
    for word in re.finditer(r"\S+\s*", words.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            starts.append(word.start())
            used = 0
        used += cell_len(word[0])
    lines = list(words.divide(starts))
    for line in lines:
        line.rstrip()
    return lines


def print_line(text: str) -> None:
    """Print one line, however long, to stdout."""
    print(printable(text), flush=True)


def print_document(text: str) -> None:
    """Print lines for programs to stdout, which need all characters; a terminal does not."""
    sys.stdout.write(printable_lines(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def print_json(made: Any) -> None:
    """Print a value as JSON to stdout."""
    document = msgspec.json.format(msgspec.json.encode(made), indent=1).decode()
    print_document(printable_json(document) + "\n")


def note(message: str, style: str = "") -> None:
    """Print one line to stderr, which begins with the name of the program, in a style."""
    with contextlib.suppress(BrokenPipeError):
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(Text.assemble(("streamer:", style), " ", printable(message)))
        sys.stderr.flush()


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal's stderr what is waited for."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(Text(what), spinner="line"):
        yield


class TextColumn(NamedTuple):
    """A column of a table: of names, which stay whole; of text, which may take several lines; or
    of numbers, to the right."""

    heading: str
    kind: str = "number"


def name_column(heading: str) -> TextColumn:
    """A column of names."""
    return TextColumn(heading, "name")


def text_column(heading: str) -> TextColumn:
    """A column of text."""
    return TextColumn(heading, "text")


class Grid:
    """Rows under headings. Where they do not fit beside each other, there are several tables, each
    with all names; where the names are too long for that, each row is a list of its values."""

    def __init__(self, *columns: TextColumn, title: str = "", caption: str = "") -> None:
        self.columns, self.title, self.caption = columns, printable(title), caption
        self._rows: list[list[Text]] = []
        self._sections: set[int] = set()

    def add(self, *cells: str | Text) -> None:
        """Add a row; cells that are missing are empty."""
        filled = [*cells, *[""] * (len(self.columns) - len(cells))]
        self._rows.append([shown(cell) for cell in filled])

    def add_section(self) -> None:
        """Begin a part of the table."""
        self._sections.add(len(self._rows))

    def print(self, console: Console) -> None:
        """Print it, without columns in which no row has anything."""
        chosen = [
            i for i, column in enumerate(self.columns) if column.kind == "name" or self._any(i)
        ]
        parts = self._parts(chosen, console.width)
        if parts is None:
            self._print_list(console, chosen)
        for number, part in enumerate(parts or ()):
            is_last = number == len(parts or ()) - 1
            title, caption = self.title if not number else "", self.caption if is_last else ""
            console.print(self._table(part, title, caption))

    def _any(self, column: int) -> bool:
        return any(row[column] for row in self._rows)

    def _parts(self, chosen: Sequence[int], width: int) -> list[list[int]] | None:
        """Columns that fit beside each other, in each part after the names; None where there is
        too little room beside these."""
        names = [i for i in chosen if self.columns[i].kind == "name"]
        room = width - 1 - sum(map(self._width, names))
        parts: list[list[int]] = []
        left = 0
        for i in (i for i in chosen if i not in names):
            if self._width(i) > left:
                parts.append(list(names))
                left = room
            left -= self._width(i)
            parts[-1].append(i)
            if left < 0:
                return None
        if len(parts) > 1 and room < width / 2:
            return None
        return [sorted(part) for part in parts] or [names]

    def _width(self, i: int) -> int:
        """The least width of a column, with the blanks after it."""
        cells = [Text(self.columns[i].heading), *(row[i] for row in self._rows)]
        natural = max(line.cell_len for cell in cells for line in cell.split("\n"))
        return 2 + (min(natural, _MIN_TEXT) if self.columns[i].kind == "text" else natural)

    def _table(self, chosen: Sequence[int], title: str, caption: str) -> Table:
        table = Table(
            title=title or None, caption=printable(caption) or None, title_justify="left",
            caption_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0),
        )  # fmt: skip
        for column in (self.columns[i] for i in chosen):
            table.add_column(
                column.heading,
                justify="right" if column.kind == "number" else "left",
                no_wrap=column.kind != "text" and "\n" not in column.heading,
            )
        for number, row in enumerate(self._rows):
            if number in self._sections:
                table.add_section()
            table.add_row(*(row[i] for i in chosen))
        return table

    def _print_list(self, console: Console, chosen: Sequence[int]) -> None:
        if self.title:
            console.print()
            say(console, self.title, style="italic")
        for row in self._rows:
            pairs = [(self.columns[i], row[i].copy()) for i in chosen if row[i]]
            names = [cell for column, cell in pairs if column.kind == "name"]
            say(console, Text("  ").join(names), style=STRONG)
            facts = [
                Text.assemble((f"{column.heading.replace(chr(10), ' ')} ", MUTED), cell)
                for column, cell in pairs
                if column.kind != "name"
            ]
            say(console, Text(" · ").join(facts), indent=4)
        if self.caption:
            say(console, self.caption, style=MUTED)
