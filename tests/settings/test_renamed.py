"""Metrics that were renamed: the old name stays for one release, and warns."""

from __future__ import annotations

import logging

import pytest

from streamer.cli.metrics import entries
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.query.readings import Reading, Readout
from streamer.server.prometheus_text import render
from streamer.settings.load import parse
from streamer.settings.renamed import RENAMED, new_name


def test_new_names_are_there_and_old_ones_are_not() -> None:
    names = {entry.name.removeprefix(PREFIX) for entry in entries()}
    assert set(RENAMED.values()) <= names
    assert not set(RENAMED) & names


def test_the_page_shows_both() -> None:
    reading = Reading(f"{PREFIX}user_hit_ratio", "gauge", "Share.", {"window": "1h"}, 0.25)
    lines = render(Readout.of(0, [reading])).splitlines()
    assert lines[:3] == [
        "# HELP streamer_user_hit_ratio Share.",
        "# TYPE streamer_user_hit_ratio gauge",
        'streamer_user_hit_ratio{window="1h"} 0.25',
    ]
    assert lines[3].startswith("# HELP streamer_hit_rate_ratio Deprecated")
    assert lines[5] == 'streamer_hit_rate_ratio{window="1h"} 0.25'


@pytest.mark.parametrize("pattern", ["hit_rate_ratio", "hit_rate_r*"])
def test_an_old_name_in_the_settings_warns(caplog: pytest.LogCaptureFixture, pattern: str) -> None:
    new_name.cache_clear()
    with caplog.at_level(logging.WARNING, "streamer"):
        catalogue = Catalogue(parse({"metrics": {"hide": [pattern, "*_stderr"]}}))
    assert "'hit_rate_ratio' is called 'user_hit_ratio' now" in caplog.text
    shown = {metric.name for metric in catalogue.metrics}
    assert "user_hit_ratio" not in shown
    assert "user_hit_lower_ratio" in shown
