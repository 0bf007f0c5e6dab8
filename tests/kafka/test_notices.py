"""The Kafka client's complaints are heard, not all of them."""

from __future__ import annotations

import logging

import pytest

from streamer import notices


def test_the_same_line_is_said_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    monkeypatch.setattr("streamer.notices.time.monotonic", lambda: now)
    logger = logging.getLogger("streamer.test_logs")
    logger.addFilter(notices.RateLimited())
    for _ in range(5):
        logger.warning("no broker at %s", "a:1")
        logger.warning("no metadata")
        now += 4.0
    assert [r.getMessage() for r in caplog.records] == ["no broker at a:1", "no metadata"] * 2
