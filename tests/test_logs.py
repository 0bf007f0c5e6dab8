"""What is logged: one event a line, with fields, at its true level, and seldom the same."""

from __future__ import annotations

import io
import json
import logging
import logging.config
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from streamer import logs
from streamer.errors import SettingsError
from streamer.settings.load import parse
from streamer.settings.model import LogSettings


@pytest.fixture(autouse=True)
def factory() -> Iterator[None]:
    own = logging.getLogRecordFactory()
    logs.printable_logs()
    yield
    logging.setLogRecordFactory(own)


@contextmanager
def written(settings: LogSettings) -> Iterator[io.StringIO]:
    """What this process would write to stderr."""
    root, ours = logging.getLogger(), logging.getLogger("streamer")
    before = (root.handlers[:], root.level, ours.level)
    stream = io.StringIO()
    config: Any = logs.logging_config(settings.level, settings.format)
    config["handlers"]["stderr"]["stream"] = stream
    try:
        logging.config.dictConfig(config)
        yield stream
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])


def say_all() -> None:
    logger = logging.getLogger("streamer")
    logger.debug("partition %(partition)d: commit %(commit)d", {"partition": 3, "commit": 7})
    logger.info("assigned: %(which)s", {"which": "partition 3", "partitions": [3]})
    logging.getLogger("aiokafka").info("noise")
    logging.getLogger("aiokafka").warning("no broker at %s", "a:1")
    try:
        raise ValueError("a\nb")
    except ValueError:
        logger.exception("partition %(partition)d: a commit failed", {"partition": 3})


def test_json_is_an_object_a_line_with_what_the_message_names() -> None:
    with written(LogSettings(format="json", level="debug")) as stream:
        say_all()
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [each["level"] for each in found] == ["debug", "info", "warning", "error"]
    assert found[0]["message"] == "partition 3: commit 7"
    assert (found[0]["partition"], found[0]["commit"]) == (3, 7)
    assert found[1]["partitions"] == [3]
    assert (found[2]["logger"], found[2]["message"]) == ("aiokafka", "no broker at a:1")
    assert "ValueError: a\\nb" in found[3]["exception"]
    assert all(each["time"].endswith("Z") and len(each["time"]) == 24 for each in found)


def test_text_is_a_line_an_event_with_time_and_level() -> None:
    with written(LogSettings()) as stream:
        say_all()
    first, second, third, *traceback = stream.getvalue().splitlines()
    assert first.endswith("Z INFO assigned: partition 3")
    assert second.endswith("Z WARNING aiokafka: no broker at a:1")
    assert third.endswith("Z ERROR partition 3: a commit failed")
    assert traceback[-1] == "ValueError: a\\nb"
    with written(LogSettings(level="error")) as stream:
        logging.getLogger("streamer").warning("x")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("key", "value"), [("level", "loud"), ("format", "xml")])
def test_what_there_is_not_is_refused(key: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"log.{key} = '{value}': must be one of"):
        parse({"log": {key: value}})


def test_a_coordinator_that_starts_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    monkeypatch.setattr("streamer.logs.time.monotonic", lambda: now)
    logger = logging.getLogger("streamer.test_starts")
    logger.addFilter(logs.RateLimited())
    for _ in range(8):
        logger.error("Group Coordinator Request failed: %s", "GroupCoordinatorNotAvailableError")
        now += 2.0
    assert [r.levelname for r in caplog.records] == ["WARNING"]


def test_the_same_line_is_said_once_in_a_while_with_how_many_were_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    monkeypatch.setattr("streamer.logs.time.monotonic", lambda: now)
    logger = logging.getLogger("streamer.test_logs")
    logger.addFilter(logs.RateLimited())
    for _ in range(5):
        logger.warning("no broker at %s", "a:1")
        logger.warning("no metadata")
        now += 4.0
    more = " (and 2 more like it in the 12 s before)"
    said = [r.getMessage() for r in caplog.records]
    assert said == [
        *("no broker at a:1", "no metadata"),
        *(f"no broker at a:1{more}", f"no metadata{more}"),
    ]
