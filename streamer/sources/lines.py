"""Lines of a file, whatever it is compressed with, in bounded memory."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from streamer.errors import SourceError
from streamer.settings import limits
from streamer.sources.log_lines import as_objects

STDIN = "-"
BLOCK_BYTES = 1 << 18
"""Bytes of text handled at once."""
_ZSTD_BYTES = 1 << 10
"""Compressed bytes given to zstd at once: they may stand for 32,000 times as much text."""
_SIGNATURES = {
    b"PK\x03\x04": "a zip archive: unpack it",
    b"\x1f\x8b": "compressed with gzip: end its name with .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: end its name with .zst",
    b"PAR1": "a Parquet file: end its name with .parquet",
}
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_WINDOWS, _LEAST_LINES = "cp1252", 3
"""The encoding of tables that are none of Unicode, and the rows that must show it."""
_VALUES = re.compile(rb"\s*(\[\s*[{\n]|\{[ \t]*\r?\n|\{[^\n]*\}[ \t]*\{\")")
"""How a file begins whose values are not one a line: an array, an object over several lines, or
several on one."""
_ARRAY_LINE = re.compile(rb"\s*\[.*\][ \t\r]*(\n|$)")
"""An array on one line."""
_AFTER = re.compile(r"[\s,\]]")
_VALUE = re.compile(r"[^\s,\]]")
_BULK = re.compile(rb'\s*\{\s*"(index|create|update|delete)"\s*:\s*\{[^{}]*\}\s*\}')
"""What Elasticsearch's bulk files say of the document in the next line."""
_SQL = (
    rb"(--.*\n|/\*.*\n|\s)*(copy\s+[\w.\"]+\s*(\(|from\s)"
    rb"|(insert into|create table|drop table)\s|(set|pragma)\s+\w+\s*[=;])"
)
_NO_LOGS = {
    re.compile(pattern, re.IGNORECASE): what
    for pattern, what in {
        rb"\s*<(!doctype|html|head)": "a page of HTML, not a log: download the file itself",
        _SQL: "a dump of SQL, not a log: export each table as CSV (psql: \\copy TABLE to "
        "'TABLE.csv' csv header)",
        rb"\s*[\[{]\s*'": "Python's literals, not JSON: write each line by json.dumps()",
        rb"(?!\d{4}-)[^\s{\[]+\t[{\[][^\t\n]*[}\]]\r?\n": "JSON behind the keys of Kafka's "
        "records: put each key into its record as a field, or name the cluster with --brokers",
    }.items()
}
"""How a file begins that is none."""
_OBJECT = re.compile(rb"\s*\{\s*[\"}]")
_HEADER = re.compile(rb"[\w.$-]+((?:[,;|][\w.$-]+){2,}|(\t[\w.$-]+){2,})\r?\n")


class LineFile:
    """One input: plain, ``.gz`` or ``.zst``, in UTF-8 or UTF-16, tables also in that of Windows for
    Western languages; ``-`` is standard input.

    Iterating gives lists of lines without their newline; of JSON whose values are not one a line,
    as of an array, each value is a line; lines of logs are the objects that they hold.
    ``holds_lists``: an array that is a line by itself is one value. Of a line longer than
    ``limits.MAX_LINE_BYTES`` only that many bytes are kept, which is enough to reject it.
    """

    is_table = False

    def __init__(self, path: str | Path, *, holds_lists: bool = False) -> None:
        self.path = str(path)
        self._holds_lists = holds_lists
        self.total_bytes: int | None = None
        """Size on disk; None where it is not known (standard input, a pipe)."""
        self.read_bytes = 0
        """Bytes read from disk so far."""
        if self.path != STDIN:
            try:
                if not stat.S_ISFIFO(
                    os.stat(self.path).st_mode
                ):  # opening it twice ends its writer
                    with open(self.path, "rb") as file:
                        self.total_bytes = file.seek(0, 2) if file.seekable() else None
            except OSError as error:
                raise SourceError(f"cannot read file: {error.strerror}; at {self.path}") from error

    @property
    def is_live(self) -> bool:
        """Whether its lines are written while it is read."""
        return self.total_bytes is None

    def head(self, count: int) -> list[bytes]:
        """The first lines that are not empty, whatever they hold."""
        try:
            with open(self.path, "rb") as file:
                blocks = self._text(file)
                first = next(blocks, b"")
        except (EOFError, gzip.BadGzipFile, zlib.error, OSError, SourceError):
            return []
        finally:
            self.read_bytes = 0
        lines = first.removeprefix(codecs.BOM_UTF8).split(b"\n")
        lines = lines[:-1] if len(lines) > 1 else lines
        return [line for line in lines if line.strip()][:count]

    def __iter__(self) -> Iterator[list[bytes]]:
        try:
            if self.path == STDIN:
                yield from self._lines(self._checked(self._text(sys.stdin.buffer)))
                return
            with open(self.path, "rb") as file:
                yield from self._lines(self._checked(self._text(file)))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise SourceError(f"broken gzip file: {error}; at {self.path}") from error
        except OSError as error:
            raise SourceError(f"cannot read file: {error.strerror}; at {self.path}") from error

    def _lines(self, blocks: Iterator[bytes]) -> Iterator[list[bytes]]:
        first = next(blocks, b"")
        is_line = self._holds_lists and _ARRAY_LINE.match(first)
        split = split_values if _VALUES.match(first) and not is_line else split_lines
        lists = split(chain([first], blocks))
        if not _BULK.match(first):
            return as_objects(lists) if split is split_lines else lists
        return ([line for line in lines if not _BULK.match(line)] for lines in lists)

    def _checked(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        first = next(blocks, b"")
        encoding = "utf-16" if first.startswith(_UTF_16) else None
        if encoding is None and self.is_table and _is_windows(first):
            encoding = _WINDOWS
        if encoding is not None:
            blocks = _utf_8(chain([first], blocks), encoding, self.path)
            first = next(blocks, b"")
        _check_start(first, self.path, is_table=self.is_table)
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks

    def _text(self, file: BinaryIO) -> Iterator[bytes]:
        """Blocks of the file's text."""
        if self.path.endswith(".gz"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                while block := unpacked.read(BLOCK_BYTES):
                    self.read_bytes = file.tell()
                    yield block
        elif self.path.endswith(".zst"):
            yield from self._unpack_zstd(self._raw(file))
        else:
            yield from self._raw(file)

    def _raw(self, file: BinaryIO) -> Iterator[bytes]:
        # read1, where there is one, does not wait for a full block of a slow pipe.
        read = getattr(file, "read1", file.read)
        while block := read(BLOCK_BYTES):
            self.read_bytes += len(block)
            yield block

    def _unpack_zstd(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            import zstandard
        except ImportError as error:  # pragma: no cover
            raise SourceError(f"zstd needs the package zstandard; at {self.path}") from error
        frame = None
        for block in blocks:
            unpacked = []
            for start in range(0, len(block), _ZSTD_BYTES):
                rest = block[start : start + _ZSTD_BYTES]
                while rest:
                    frame = frame or zstandard.ZstdDecompressor().decompressobj()
                    try:
                        unpacked.append(frame.decompress(rest))
                    except zstandard.ZstdError as error:
                        raise SourceError(f"broken zstd file: {error}; at {self.path}") from error
                    rest = frame.unused_data if frame.eof else b""
                    frame = None if frame.eof else frame
                if sum(map(len, unpacked)) >= BLOCK_BYTES:
                    yield b"".join(unpacked)
                    unpacked = []
            yield b"".join(unpacked)
        if frame is not None:
            raise SourceError(f"broken zstd file: it ends within a frame; at {self.path}")


def split_lines(blocks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Lists of lines of consecutive blocks; a last line without a newline is one, too."""
    bound = limits.MAX_LINE_BYTES
    tail = b""
    """Start of the line that the next block continues; at most ``bound`` bytes are kept."""
    for block in blocks:
        lines = block.split(b"\n")
        lines[0] = tail + lines[0][: bound - len(tail)]
        tail = lines.pop()[:bound]
        if len(block) > bound:
            lines = [line[:bound] for line in lines]
        if lines:
            yield lines
    if tail:
        yield [tail]


def split_values(blocks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Lists of lines, each a value of arrays, or of values one after another, whatever lines they
    are written on. From the first that cannot be read on, lines are those of the text."""
    decoder, to_text = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text, is_begun, is_closed = "", False, False
    for block in chain(blocks, [b""]):
        text += to_text.decode(block, final=not block)
        if not is_begun and (head := text.lstrip()):
            text, is_begun = head.removeprefix("["), True
        values, at = [], 0
        while begin := _VALUE.search(text, at):
            is_closed |= "]" in text[at : begin.start()]
            at = begin.start()
            if is_closed and text[at] == "[":  # another array
                is_closed, at = False, at + 1
                continue
            try:
                _, end = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            if block and text[at] not in '{["' and not _AFTER.match(text, end):
                break  # a number goes on
            values.append(text[at:end].replace("\n", " ").encode(errors="surrogateescape"))
            at, is_closed = end, False
        is_closed |= not begin and "]" in text[at:]
        text = text[at:] if begin else ""
        if values:
            yield values
        if len(text) > limits.MAX_LINE_BYTES:
            break
    yield from split_lines(chain([text.encode(errors="surrogateescape")], blocks))


def _is_windows(block: bytes) -> bool:
    """Whether many lines, or the header, have letters beyond ASCII, mostly one by itself as Western
    languages have them, and none of them is UTF-8: as Excel writes them."""
    lines = block.split(b"\n")[:-1]
    others = [line for line in lines if not line.isascii()]
    least = 1 if others[:1] == lines[:1] else max(_LEAST_LINES, len(lines) // 100)
    if len(others) < least or any(map(_is_utf_8, others)):
        return False
    runs = [len(run) for line in others for run in _BEYOND_ASCII.findall(line)]
    return sum(runs) < 1.5 * len(runs)


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _utf_8(blocks: Iterator[bytes], encoding: str, path: str) -> Iterator[bytes]:
    """Blocks of another encoding as UTF-8."""
    errors = "replace" if encoding == _WINDOWS else "strict"  # some bytes are no letter in it
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    try:
        for block in blocks:
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeDecodeError as error:
        raise SourceError(f"broken UTF-16: {error.reason}; at {path}") from error


def _check_start(start: bytes, path: str, *, is_table: bool) -> None:
    """SourceError where a file's first bytes of text are of another format than it is read as:
    rows below a header where ``is_table``, else lines of NDJSON."""
    for signature, what in _SIGNATURES.items():
        if start.startswith(signature):
            raise SourceError(f"it is {what}; at {path}")
    head = start.removeprefix(b"\xef\xbb\xbf")
    for begin, what in _NO_LOGS.items():
        if begin.match(head):
            raise SourceError(f"it is {what}; at {path}")
    if is_table and _OBJECT.match(head):
        raise SourceError(f"it holds JSON, not rows: end its name with .ndjson; at {path}")
    if not is_table and (row := _HEADER.match(head)):
        ending = ".tsv" if b"\t" in row[0] else ".csv"
        raise SourceError(f"it holds rows, not JSON: end its name with {ending}; at {path}")
