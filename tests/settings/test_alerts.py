"""Settings of alerts: what is refused, and what a reference may be."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.settings.load import parse


def alert(**more: Any) -> Any:
    return parse({"alerts": [{"name": "ctr", **more}]}).alerts[0]


def test_a_reference_is_the_first_week_a_date_or_none() -> None:
    assert alert().reference == "first"
    assert alert(reference="none").reference_day is None
    assert alert(reference="1970-02-01").reference_day == 31


def test_holidays_are_dates() -> None:
    assert alert(holidays=["1970-02-01", "1970-01-02"]).holiday_days == {31, 1}
    assert alert().holiday_days == frozenset()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"reference": "last"}, "reference = 'last': 'first', 'none' or a date like 2026-11-02"),
        ({"reference": "2026-02-30"}, "reference = '2026-02-30'"),
        ({"reference": "20261102"}, "reference = '20261102'"),
        ({"reference": "1969-12-31"}, "reference = '1969-12-31'"),
        ({"holidays": ["25.12."]}, "holidays = ['25.12.']: must be dates like 2026-12-25"),
        ({"holidays": ["2026-02-30"]}, "holidays = ['2026-02-30']"),
        ({"traffic_drop": 1.0}, "traffic_drop = 1.0: must be 0 (no such alert) to below 1"),
        ({"traffic_rise": -1.0}, "traffic_rise = -1.0: must be 0 (no such alert) or above"),
        ({"traffic_rise": float("inf")}, "traffic_rise = inf"),
        (
            {"baseline": "before", "window": "10m", "for": "1h"},
            "for = '1h': can never fire: with baseline = 'before' a change is the baseline "
            "after 1h: write a shorter `for`",
        ),
        ({"for": "7d"}, "a change is the baseline after 7d"),
    ],
)
def test_what_cannot_hold_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        alert(**more)
    assert message in str(caught.value)
    assert "at alerts[0]" in str(caught.value)
