"""Files whose names say another format than they have are told so; others lose nothing."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from streamer.errors import SourceError
from streamer.settings.model import Settings
from streamer.sources.files import FileSource


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.ndjson", b"PK\x03\x04rest", "it is a zip archive: unpack it"),
        (
            "a.ndjson",
            gzip.compress(b"{}\n", mtime=0),
            "compressed with gzip: end its name with .gz",
        ),
        ("a.csv", b"PAR1\x15\x04", "it is a Parquet file: end its name with .parquet"),
        ("a.ndjson", b"type,ts,user_id\nclick,1,u\n", "end its name with .csv"),
        ("a.csv", b'{"type":"click"}\n', "it holds JSON, not rows: end its name with .ndjson"),
        ("a.csv", "ts,user".encode("utf-16")[:-1], "broken UTF-16: truncated data"),
    ],
)
def test_a_file_of_another_format_than_its_name_says(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(SourceError, match=re.escape(said)) as refused:
        list(FileSource([path], Settings()))
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("data", [b"hello, world\n", b"[1, 2]\n", b"a,b\n", b'"x"\n', b"\n{}\n"])
def test_a_first_line_that_is_no_event_loses_nothing_else(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(data + b'{"type":"click"}\n')
    (batch,) = FileSource([path], Settings())
    assert batch.raws[-1] == b'{"type":"click"}'
