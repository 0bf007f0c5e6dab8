"""Files are read as the source of theirs says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamer.settings.load import parse
from streamer.sources.files import FileSource, topic_of

SOURCE: dict[str, Any] = {"topics": ["x"], "kind": {"fixed": "click"}}
FIELDS = {"ts": "[].ts", "item_id": "[].item_id"}


def lines_of(path: Path, source: dict[str, Any]) -> list[bytes]:
    files = FileSource([path], parse({"sources": [SOURCE | source]}))
    return [raw for batch in files for _, _, raw in batch]


@pytest.mark.parametrize("text", ['[{"a": 1}, {"a": 2}]\n[{"a": 3}]\n', '[{"a": 1}]'])
def test_arrays_on_lines_are_records_where_events_stand_in_them(tmp_path: Path, text: str) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text(text, encoding="utf-8")
    arrays = lines_of(path, {"each": "[]", "fields": FIELDS})
    assert arrays == text.encode().splitlines()
    fields = {"ts": "ts", "item_id": "item_id"}
    assert b"[" not in b"".join(lines_of(path, {"fields": fields}))


def test_an_array_over_lines_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_text(json.dumps([[{"a": 1}], [{"a": 2}]], indent=1), encoding="utf-8")
    found = [json.loads(line) for line in lines_of(path, {"each": "[]", "fields": FIELDS})]
    assert found == [[{"a": 1}], [{"a": 2}]]


def test_objects_one_behind_another_are_records(tmp_path: Path) -> None:
    path = tmp_path / "delivery-stream-1"
    path.write_text('{"a": 1}{"a": "}{"}\n{"a": 3} {"a": 4}', encoding="utf-8")
    found = [json.loads(line) for line in lines_of(path, {"fields": {"ts": "a", "item_id": "a"}})]
    assert found == [{"a": 1}, {"a": "}{"}, {"a": 3}, {"a": 4}]


@pytest.mark.parametrize("name", ["clicks.dat", "clicks.txt", "clicks", "clicks.csv"])
def test_a_file_is_a_table_where_its_columns_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("7,214\n8,215\n", encoding="utf-8")
    source = {"columns": ["at", "item"], "fields": {"ts": "at", "item_id": "item"}}
    expected = [{"at": "7", "item": "214"}, {"at": "8", "item": "215"}]
    assert [json.loads(line) for line in lines_of(path, source)] == expected
    assert topic_of(path) == "clicks"


def test_json_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "clicks.ndjson"
    path.write_text('{"at": 7}\n', encoding="utf-8")
    source = {"columns": ["at"], "fields": {"ts": "at", "item_id": "item"}}
    assert lines_of(path, source) == [b'{"at": 7}']
