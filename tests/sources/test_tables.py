"""CSV and Parquet files: rows as lines of NDJSON."""

from __future__ import annotations

import builtins
import datetime
import gzip
import io
import json
import subprocess
import sys
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from streamer.cli.main import main
from streamer.errors import SettingsError, SourceError
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.files import FileSource
from streamer.sources.line_batch import NO_TOPIC
from streamer.sources.parquet_rows import ParquetFile
from tests.oracle.shape import Readings
from tests.support.lanes import long

HEADER = "type,ts,user_id,item_id,position,variant\n"
TABLE = HEADER + "".join(
    f"{'impression' if i % 3 else 'click'},{1_700_000_000_000 + i},"
    f"u{i % 7},00{i % 5},{i % 9 + 1},A\n"
    for i in range(3000)
)


def rows_of(path: Path, settings: Settings | None = None) -> list[Any]:
    source = FileSource([path], settings or Settings())
    found = [json.loads(raw) for batch in source for _, _, raw in batch]
    assert source.read_bytes == source.total_bytes == path.stat().st_size
    return found


def lines_of(path: Path, text: str | bytes) -> list[bytes]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [raw for batch in FileSource([path], Settings()) for _, _, raw in batch]


def written(path: Path, columns: dict[str, Any], **types: Any) -> Path:
    arrays = [pyarrow.array(values, types.get(name)) for name, values in columns.items()]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, list(columns)), path)
    return path


def readings(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> Readings:
    assert main(["replay", str(path), "--json", "--strict", *more]) == 0
    found: Readings = json.loads(capsys.readouterr().out)
    return found


# CSV ----------------------------------------------------------------------------------------------


def test_a_table_counts_the_same_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pandas.read_csv(io.StringIO(TABLE), dtype={"item_id": str})
    objects = [json.dumps(row).encode() for row in frame.to_dict("records")]
    files = {
        "log.ndjson": b"\n".join(objects),
        "log.csv": TABLE.encode(),
        "log.csv.gz": gzip.compress(TABLE.encode()),
        "log.csv.zst": zstandard.compress(TABLE.encode()),
        "log.tsv": TABLE.replace(",", "\t").encode(),
        "semicolons.csv": TABLE.replace(",", ";").encode(),
        "bars.csv.gz": gzip.compress(TABLE.replace(",", "|").encode()),
        "tabs.csv": TABLE.replace(",", "\t").encode(),
        "excel.csv": TABLE.replace(",", "\t").encode("utf-16"),
        "utf16.ndjson": b"\n".join(objects).decode().encode("utf-16"),
        "bom.ndjson": b"\xef\xbb\xbf" + b"\n".join(objects),
        "array.json": b"[" + b",".join(objects) + b"]",
        "pretty.json": json.dumps([json.loads(each) for each in objects], indent=2).encode(),
        "objects.json": b"\n".join(
            json.dumps(json.loads(each), indent=1).encode() for each in objects
        ),
        "windows.csv": b"\xef\xbb\xbf" + TABLE.replace("\n", "\r\n").encode(),
        "indexed.csv": frame.to_csv().encode(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pandas(frame), tmp_path / "log.parquet", row_group_size=700
    )
    found = [readings(tmp_path / name, capsys) for name in (*files, "log.parquet")]
    assert all(one == found[0] for one in found)
    assert json.loads(objects[-1])["item_id"] == "004"


ROWS = TABLE.removeprefix(HEADER)


def test_a_source_names_the_columns_of_a_table_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    source = {
        "topics": ["other"],
        "columns": HEADER.strip().split(","),
        "kind": {"field": "type", "impression": ["impression"], "click": ["click"]},
        "fields": {"ts": "ts", "item_id": "item_id", "position": "position"},
    }
    settings = parse({"sources": [source]})
    path.write_text(TABLE)
    expected = rows_of(path, settings)
    path.write_text(ROWS)
    assert rows_of(path, settings) == expected
    assert expected[0]["user_id"] == "u0"
    named = parse({"sources": [source, source | {"topics": ["log"], "columns": list("abcdef")}]})
    assert list(rows_of(path, named)[0]) == list("abcdef")
    with pytest.raises(SettingsError, match="columns has 'a' twice: each name once; at sources"):
        parse({"sources": [source | {"columns": ["a", "a"]}]})


@pytest.mark.parametrize(
    "first", ["qzw,17,qzy", "2026-11-24T07:00:00Z,qzw,x9", "U1,11/1/2026 7:00,"]
)
def test_a_first_row_of_data_is_refused_and_not_shown(tmp_path: Path, first: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(first + "\n" + first + "\n")
    with pytest.raises(SourceError, match="no header row: name its columns in") as refused:
        list(FileSource([path], Settings()))
    said = str(refused.value).replace(str(tmp_path), "")
    assert not any(cell in said for cell in first.split(",") if cell)


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("a.csv", "user_id,0,1\nu,3,4\n", {"user_id": "u", "0": "3", "1": "4"}),
        ("a.csv", "a|x|y|z,b|q\n1,2\n", {"a|x|y|z": "1", "b|q": "2"}),
        ("a.tsv", "a\tPrice, EUR\n1\t2\n", {"a": "1", "Price, EUR": "2"}),
        ("a.tsv.gz", "\n\na\tb\n1\t2\n", {"a": "1", "b": "2"}),
        ("a.tsv", "a;b;c\n1;2;3\n", {"a": "1", "b": "2", "c": "3"}),
    ],
)
def test_headers_and_separators_are_found(
    tmp_path: Path, name: str, text: str, row: dict[str, str]
) -> None:
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert rows_of(tmp_path / name) == [row]


def test_columns_say_where_cells_end(tmp_path: Path) -> None:
    path = tmp_path / "movies.csv"
    path.write_text("1,Toy Story,Adventure|Animation|Children|Comedy\n")
    each = {"kind": {"fixed": "impression"}, "fields": {"ts": "at", "item_id": "id"}}
    sources = [
        {"topics": ["others"], "columns": ["x"], **each},
        {"topics": ["^mov"], "columns": ["id", "title", "genres"], **each},
        {"topics": ["plain"], **each},
    ]
    settings = parse({"sources": sources})
    assert list(rows_of(path, settings)[0]) == ["id", "title", "genres"]
    path = tmp_path / "plain.csv"
    path.write_text("item,title\n1,a\n")
    assert rows_of(path, settings) == [{"item": "1", "title": "a"}]


def test_init_takes_columns_and_writes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.tsv").write_text(ROWS.replace(",", "\t"))
    (tmp_path / "plain.csv").write_text(TABLE)
    columns, out = HEADER.strip(), str(tmp_path / "streamer.toml")
    assert main(["init", str(tmp_path / "log.tsv"), "--columns", columns, "--out", out]) == 0
    capsys.readouterr()
    found = readings(tmp_path / "log.tsv", capsys, "-c", out)
    wanted = readings(tmp_path / "plain.csv", capsys, "-c", out)
    assert found == wanted
    assert 'columns = ["type", "ts"' in Path(out).read_text()


def test_between_semicolons_numbers_may_have_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('item_id;value;"a;b,c"\n1,5;1,5;x\n2;1.5;y\n')
    assert rows_of(path) == [
        {"item_id": "1,5", "value": 1.5, "a;b,c": "x"},
        {"item_id": "2", "value": 1.5, "a;b,c": "y"},
    ]


def test_cells_are_texts_but_of_numeric_fields(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "item_id,position,score,value,dwell_ms,user_id,note,p_new,loads\n"
        "007,2,1.50,-1e3,+1,1.50,7,0.25,3\n"
        "8,,NaN,01,0x1,,1,1.,.5\n"
    )
    settings = parse({"policies": [{"name": "new", "propensity": "p_new"}]})
    first, second = rows_of(path, settings)
    assert first == {
        **{"item_id": "007", "position": 2, "score": 1.5, "value": -1000.0, "dwell_ms": "+1"},
        **{"user_id": "1.50", "note": "7", "p_new": 0.25, "loads": "3"},
    }
    assert second == {
        **{"item_id": "8", "score": "NaN", "value": "01", "dwell_ms": "0x1"},
        **{"note": "1", "p_new": "1.", "loads": ".5"},
    }


def test_mapped_columns_are_numbers_where_their_fields_are(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("rank,price,pieces,position,q\n1,2.50,3,4,0.5\n")
    source = {
        "topics": ["web"],
        "kind": {"fixed": "impression"},
        "fields": {"ts": "at", "item_id": "position", "position": "rank", "score": ["p", "q"]},
        "conversion": {"fields": {"value": {"product": ["price", "pieces"]}}},
    }
    expected = {"rank": 1, "price": 2.5, "pieces": 3, "position": "4", "q": 0.5}
    assert rows_of(path, parse({"sources": [source]})) == [expected]
    renamed = parse({"events": {"fields": {"position": "rank", "item_id": "q"}}})
    assert rows_of(path, renamed)[0]["rank"] == 1
    assert rows_of(path, renamed)[0]["q"] == "0.5"


def test_quotes_newlines_and_ragged_rows(tmp_path: Path) -> None:
    text = 'a,b\n"x, ""y""\nz",1\n1\n1,2,3\n\n,\n'
    assert lines_of(tmp_path / "log.csv", text) == [
        rb'{"a":"x, \"y\"\nz","b":"1"}',
        b'["1"]',
        b'["1","2","3"]',
        b"{}",
    ]


def test_broken_rows_are_refused_and_their_neighbours_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = b"click,1700000000000,u,x,,A\n"
    path, letters = tmp_path / "log.csv", tmp_path / "dead.jsonl"
    broken = [b"click,\xff,u,x,,A\n", b"click,1\n", b"click\r,1\n", b"x" * 3_000_000 + b"\n"]
    path.write_bytes(HEADER.encode() + row + row.join(broken) + row)
    assert main(["replay", str(path), "--dead-letters", str(letters)]) == 0
    found = [json.loads(line) for line in letters.read_bytes().splitlines()]
    assert [one["reason"] for one in found] == ["json", "object", "json", "too_large"]
    assert found[1]["value"] == '["click","1"]'
    assert found[3]["cut"]
    capsys.readouterr()
    assert main(["replay", str(path), "--strict"]) == 1
    assert "4 of 9 lines" in capsys.readouterr().err


@long
def test_a_quote_without_end_takes_one_bound_of_text_and_no_more(tmp_path: Path) -> None:
    text = 'a,b\n1,"2\n' + "3,4\n" * 300_000
    tracemalloc.start()
    found = lines_of(tmp_path / "log.csv", text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found[0]) == limits.MAX_LINE_BYTES
    assert found[-1] == b'{"a":"3","b":"4"}'
    assert peak < 60 * limits.MAX_LINE_BYTES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a,b,a\n1,2,3\n", "two columns are called 'a'"),
        (b",,\n1,2,3\n", "no names of columns"),
        (b"a,\xff\xfe\n", "cannot be read as CSV"),
    ],
)
def test_wrong_headers_are_errors(tmp_path: Path, text: bytes, said: str) -> None:
    with pytest.raises(SourceError, match=f"{said}.*log.csv"):
        lines_of(tmp_path / "log.csv", text)


def test_empty_tables_read_as_nothing(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "log.csv", "") == lines_of(tmp_path / "log.csv", "a,b\n") == []
    assert rows_of(written(tmp_path / "log.parquet", {"a": []})) == []


# Parquet ------------------------------------------------------------------------------------------


def test_types_of_parquet(tmp_path: Path) -> None:
    at = datetime.datetime(2023, 11, 14, 22, 13, 20, 250_000)
    ns = pyarrow.timestamp("ns", "UTC")
    times = pyarrow.array([1_700_000_000_250_000_999], ns)
    struct = pyarrow.StructArray.from_arrays([times], ["at"])
    path = written(
        tmp_path / "log.parquet",
        {
            "whole": [7],
            "real": [0.5],
            "nan": [float("nan")],
            "half": pyarrow.array([0.5], pyarrow.float16()),
            "flag": [True],
            "none": [None],
            "money": [Decimal("12.50")],
            "text": [b"caf\xc3\xa9"],
            "bytes": [b"\xff\xfe"],
            "naive": [at],
            "aware": [at.replace(tzinfo=datetime.UTC)],
            "ns": times,
            "day": [at.date()],
            "struct": struct,
            "list": [[{"sku": "a", "score": None}, {"sku": "b", "score": 1.5}]],
            "words": pyarrow.array(["x"]).dictionary_encode(),
            "map": pyarrow.array([[("k", b"v")]], pyarrow.map_("string", "binary")),
        },
    )
    assert rows_of(path) == [
        {
            **{"whole": 7, "real": 0.5, "nan": None, "half": 0.5, "flag": True, "money": 12.5},
            **{"text": "café", "bytes": "//4=", "naive": "2023-11-14T22:13:20.250000"},
            **{"aware": "2023-11-14T22:13:20.250000Z", "ns": "2023-11-14T22:13:20.250000Z"},
            **{"day": "2023-11-14", "struct": {"at": "2023-11-14T22:13:20.250000Z"}},
            "list": [{"sku": "a", "score": None}, {"sku": "b", "score": 1.5}],
            **{"words": "x", "map": {"k": "v"}},
        }
    ]


@pytest.mark.parametrize("zone", [None, "UTC", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_parquet_are_read_right(tmp_path: Path, unit: str, zone: str | None) -> None:
    moment = pandas.Timestamp(1_700_000_000, unit="s", tz="UTC")
    if zone is None:
        moment = moment.tz_localize(None)
    path = written(
        tmp_path / "log.parquet",
        {"type": ["click"], "ts": [moment], "item_id": [7]},
        ts=pyarrow.timestamp(unit, zone),
    )
    ((line,),) = list(FileSource([path], Settings()))
    assert line[:2] == ("clicks", 1_700_000_000_000)


def test_large_parquet_files_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    n = 300_000
    columns = {"type": ["click"] * n, "item_id": [f"item {i}" for i in range(n)]}
    written(path, columns)
    before = pyarrow.total_allocated_bytes()
    most = 0
    for batch in FileSource([path], Settings()):
        assert len(batch) <= 1000
        most = max(most, pyarrow.total_allocated_bytes() - before)
    assert most < 8_000_000


def repeated(path: Path, cell: object, rows: int, **options: Any) -> Path:
    """A Parquet file with the same cell in each row."""
    columns = {"n": list(range(rows)), "cell": [cell] * rows, "deep": [{"a": [cell, "x"]}] * rows}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd", **options)
    return path


@long
@pytest.mark.parametrize("cell", ["text", b"\xff\x00", "x" * 20_000])
def test_texts_that_are_stored_as_dictionaries_are_the_same_lines(
    tmp_path: Path, cell: object
) -> None:
    both = [
        [
            line
            for some in ParquetFile(
                str(repeated(tmp_path / f"{is_so}.parquet", cell, 2500, use_dictionary=is_so))
            )
            for line in some
        ]
        for is_so in (True, False)
    ]
    assert both[0] == both[1]
    assert [json.loads(line)["n"] for line in both[0]] == list(range(2500))


@long
def test_a_small_file_takes_no_gigabyte(tmp_path: Path) -> None:
    path, rows = tmp_path / "long.parquet", 3000
    places = pyarrow.array([0] * rows, pyarrow.int32())
    cells = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(["x" * 800_000]))
    pyarrow.parquet.write_table(
        pyarrow.table({"cell": cells}), path, compression="zstd", store_schema=False
    )
    assert path.stat().st_size < 10_000
    code = (
        "import re, sys\n"
        "from streamer.sources.parquet_rows import ParquetFile\n"
        "rows = sum(len(lines) for lines in ParquetFile(sys.argv[1]))\n"
        "print(rows, re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    found = subprocess.check_output([sys.executable, "-c", code, str(path)], text=True)
    count, kilobytes = map(int, found.split())
    assert count == rows
    assert kilobytes < 400_000


def test_a_cell_longer_than_a_record_is_refused_by_name(tmp_path: Path) -> None:
    path = repeated(tmp_path / "cell.parquet", "x" * 3_000_000, 2, use_dictionary=True)
    message = r"column 'cell' has 3,000,\d+ bytes in 2 rows, .*: at most 2,000,000 are read; leave"
    with pytest.raises(SourceError, match=message):
        list(ParquetFile(str(path)))


def test_numbers_that_are_all_alike_are_no_bomb(tmp_path: Path) -> None:
    path, rows = tmp_path / "constant.parquet", 300_000
    table = pyarrow.table({"n": [7] * rows, "m": [1.5] * rows})
    options = {"use_dictionary": False, "data_page_size": 1 << 28, "write_batch_size": rows}
    pyarrow.parquet.write_table(table, path, compression="gzip", **options)
    chunk = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(0)
    assert chunk.total_uncompressed_size > 100 * chunk.total_compressed_size
    batches = [len(some) for some in ParquetFile(str(path))]
    assert sum(batches) == rows
    assert len(batches) < rows / 500


@long
def test_a_small_column_that_becomes_a_large_one_is_refused_by_name(tmp_path: Path) -> None:
    path = repeated(tmp_path / "page.parquet", "x" * 900_000, 400, use_dictionary=False)
    assert path.stat().st_size < 200_000
    with pytest.raises(SourceError, match=r"'cell' has 360,\d+,\d+ bytes in 400 rows, of which"):
        list(ParquetFile(str(path)))


def test_broken_parquet_files_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match=r"broken Parquet file: .*log\.parquet$"):
        rows_of(path)
    arrays = [pyarrow.array([1]), pyarrow.array([2])]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, ["a", "a"]), path)
    with pytest.raises(SourceError, match="two columns are called 'a'"):
        rows_of(path)


def test_without_pyarrow_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "log.parquet", {"a": [1]})
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "pyarrow":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert main(["replay", str(path)]) == 1
    assert "pip install pyarrow" in capsys.readouterr().err


def test_rows_of_no_type_have_no_topic(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("a,b\n1,2\n")
    assert [line[0] for batch in FileSource([path], Settings()) for line in batch] == [NO_TOPIC]
