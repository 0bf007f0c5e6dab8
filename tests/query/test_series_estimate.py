"""How many series settings lead to: an upper estimate that is kept, said and warned of."""

from __future__ import annotations

import pytest

from streamer.cli.finding import OK, WARN, series_finding
from streamer.cli.run import say_series
from streamer.query.series_estimate import expected_series
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.support.agreement import (
    DOCUMENTS,
    SETTINGS,
    log_records,
    read_engines,
    run_engines,
    to_log,
)
from tests.support.canonical import combinations_of
from tests.support.lanes import long

BESIDE = ("streamer_alert", "streamer_experiment", "streamer_rejected", "streamer_lift")
VALUES = {
    "variant": ["A", "B"],
    "country": ["de", "fr", "it"],
    "surface": [f"s{i}" for i in range(8)],
}


def named(**document: object) -> Settings:
    """Dimensions of 2, 3 and 8 values."""
    dimensions = [{"name": name, "values": values} for name, values in VALUES.items()]
    return parse({"dimensions": dimensions, **document})


@long
@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_log_shows_more(name: str) -> None:
    settings = SETTINGS[name]
    records = log_records(1, name, 800, 1)
    engines = run_engines(settings, 1, to_log(records), 500)
    shown = [key for key in read_engines(engines) if not key[0].startswith(BESIDE)]
    seen = [
        set(values) for values in zip(*combinations_of(engines.partitions[0]).values(), strict=True)
    ]
    assert len(shown) <= expected_series(settings, seen) <= expected_series(settings) < 10**6


def test_three_dimensions_are_affordable_and_crossings_cost() -> None:
    few = expected_series(named())
    assert 2_000 < few < 4_500
    every = [list(VALUES)]
    more = expected_series(named(metrics={"rollups": [[], *every]}))
    all_metrics = expected_series(named(metrics={"rollups": [[], *every], "detailed": every}))
    assert few < more < all_metrics


def test_values_that_are_stored_count_where_none_are_named() -> None:
    settings = parse({"dimensions": [{"name": "variant"}]})
    seen = expected_series(settings, [{"A", "B", "unknown"}])
    two = parse({"dimensions": [{"name": "variant", "values": ["A", "B"]}]})
    assert seen == expected_series(two)
    assert seen < expected_series(settings)


def test_values_that_a_ratio_names_are_not_all() -> None:
    everywhere, of_a = (
        parse(
            {
                "dimensions": [{"name": "variant"}],
                "ratios": [{"name": "of_a", "numerator": {"kind": "clicks", "where": where}}],
            }
        )
        for where in ({}, {"variant": ["A"]})
    )
    assert expected_series(of_a) > expected_series(everywhere)


def test_a_warning_where_series_are_many(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = series_finding(named(), [])
    assert finding.level == OK
    assert f"at most {expected_series(named()):,} on /metrics" in finding.what
    say_series(named())
    assert "streamer: series: at most" in capsys.readouterr().out
    monkeypatch.setattr(limits, "MANY_SERIES", 1000)
    assert series_finding(named(), []).level == WARN
    assert "more than 1,000" in series_finding(named(), []).what
    say_series(named())
    out, err = capsys.readouterr()
    assert out == ""
    assert "metrics.rollups" in err
