"""Rules of ``[[sources]]``."""

from __future__ import annotations

import re
from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.ingest.record import record_decoder
from streamer.kafka.patterns import resolved
from streamer.settings.load import parse


def test_kinds_by_topic_need_names_of_topics() -> None:
    source = {"topics": ["shown", "^click"], "kind": {"impression": ["shown"], "click": ["clicks"]}}
    said = "what the records of the topics that fit '^click' are: name each of them in `topics`"
    with pytest.raises(SettingsError, match=re.escape(said)) as refused:
        parse({"sources": [source]})
    assert str(refused.value).endswith("set field, header or fixed; at sources[0].kind")


@pytest.mark.parametrize("kind", [{"fixed": "click"}, {"field": "event", "click": ["clicked"]}])
def test_other_kinds_hold_for_topics_of_a_pattern(kind: dict[str, Any]) -> None:
    settings = parse({"sources": [{"topics": ["^click"], "kind": kind}]})
    found = resolved(settings, {None: ["clicks-a", "clicks-b", "other"]})
    assert [log.kinds for log in found.logs.values()] == [("clicks",)] * 2
    record_decoder(found)


@pytest.mark.parametrize("text", ["", "x" * 129])
def test_missing_has_short_texts(text: str) -> None:
    source = {"topics": ["web"], "kind": {"fixed": "click"}, "missing": [text]}
    said = f"missing has {text[:20]!r}: texts of 1 to 128 characters; at sources[0]"
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse({"sources": [source]})
