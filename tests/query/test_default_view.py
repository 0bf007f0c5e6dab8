"""What a page opens on."""

from __future__ import annotations

import pytest

from streamer.query.default_view import DefaultView, default_view
from streamer.query.firing import FiringAlert
from streamer.settings.file_window import FILE, with_file_window
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.stats.alerting.baseline import Status


def settings_of(*windows: str, alert: str = "1h") -> Settings:
    return parse({
        "windows": {"lengths": list(windows)},
        "alerts": [{"name": "ctr", "metric": "ctr_ratio", "window": alert}],
    })  # fmt: skip


FIRES = FiringAlert(
    alert="ctr",
    segment={"variant": "all", "surface": "women"},
    name="women",
    where="surface women",
    check="metric",
    status=Status.DROPPED,
    sign="▼",
    headline="CTR of women is 0%",
    size="",
    evidence=[],
    likely="",
)


@pytest.mark.parametrize(
    ("windows", "alert", "fires", "window"),
    [
        (["5m", "1h", "24h", "7d"], "1h", False, "24h"),
        (["5m", "1h", "6h"], "1h", False, "6h"),
        (["48h", "7d"], "1h", False, "48h"),
        (["5m", "1h", "24h", "7d"], "1h", True, "1h"),
        (["5m", "24h", "7d"], "1h", True, "24h"),
        (["5m", "15m"], "1h", True, "15m"),
    ],
)
def test_what_fires_is_seen_and_else_a_day(
    windows: list[str], alert: str, fires: bool, window: str
) -> None:
    found = default_view(settings_of(*windows, alert=alert), [FIRES] if fires else [])
    assert found == DefaultView(window, ["surface"] if fires else [])


def test_a_file_opens_on_all_of_itself() -> None:
    settings = with_file_window(settings_of("1h", "24h"), 0, 10 * 86_400_000)
    assert default_view(settings, [FIRES]) == DefaultView(FILE, ["surface"])
