"""Reports of workers name logs as sources do."""

from __future__ import annotations

import msgspec
import pytest

from streamer.state.redis.input import decoded
from streamer.state.worker_report import WorkerReport


@pytest.mark.parametrize("log", ["clicks", "Web-events.v2", "clicks-1@eu_1"])
def test_a_report_may_name_any_topic(log: str) -> None:
    data = msgspec.json.encode((0, WorkerReport("w", read_to={f"{log}/3": 7})))
    (report,) = decoded(1, {b"w": data})
    assert report.read_to == {f"{log}/3": 7}


@pytest.mark.parametrize("log", ["", "a b", "a@b@c", "a@B", "x" * 250])
def test_a_report_of_no_topic_is_unreadable(log: str) -> None:
    data = msgspec.json.encode((0, WorkerReport("w", read_to={f"{log}/3": 7})))
    (report,) = decoded(1, {b"w": data})
    assert report.unreadable == "it names an unknown log"
