"""Tells a file whose name says another format than it has, by how it begins."""

from __future__ import annotations

import re

from streamer.errors import SourceError

_SIGNATURES = {
    b"PK\x03\x04": "a zip archive: unpack it",
    b"\x1f\x8b": "compressed with gzip: end its name with .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: end its name with .zst",
    b"PAR1": "a Parquet file: end its name with .parquet",
    b"\xff\xfe": "text in UTF-16: convert it to UTF-8",
    b"\xfe\xff": "text in UTF-16: convert it to UTF-8",
}
_ARRAY = re.compile(rb"\s*\[\s*[{\n]")
_OBJECT = re.compile(rb"\s*\{\s*[\"}]")
_HEADER = re.compile(rb"[\w.$-]+((,[\w.$-]+){2,}|(\t[\w.$-]+){2,})\r?\n")


def check_start(start: bytes, path: str, *, is_table: bool) -> None:
    """SourceError where a file's first bytes of text are of another format than it is read as:
    rows below a header where ``is_table``, else lines of NDJSON."""
    for signature, what in _SIGNATURES.items():
        if start.startswith(signature):
            raise SourceError(f"it is {what}; at {path}")
    text = start.removeprefix(b"\xef\xbb\xbf")
    if is_table and _OBJECT.match(text):
        raise SourceError(f"it holds JSON, not rows: end its name with .ndjson; at {path}")
    if not is_table and _ARRAY.match(text):
        advice = "write one object a line (jq -c '.[]')"
        raise SourceError(f"it is one JSON array: {advice}; at {path}")
    if not is_table and (row := _HEADER.match(text)):
        ending = ".tsv" if b"\t" in row[0] else ".csv"
        raise SourceError(f"it holds rows, not JSON: end its name with {ending}; at {path}")
