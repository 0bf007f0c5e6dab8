"""``streamer check``: what each alert finds, with stored windows and without."""

from __future__ import annotations

from streamer.cli.check_alerts import alert_findings, found_with, stored_views
from streamer.cli.finding import OK, WARN
from streamer.settings.alerts import Alert
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from tests.query.test_alert_history import SETTINGS, faulty
from tests.support.agreement import to_log
from tests.support.engines import chunks_of
from tests.support.journals import finish, start


def test_what_alerts_can_find_is_told() -> None:
    """A metric of slates waits for feedback: half an hour of clicks, and an hour of lateness."""
    alerts = [
        {"name": "fast", "metric": "ctr_ratio", "window": "10m", "drop": 0.3, "for": "5m"},
        {"name": "slow", "metric": "mrr", "window": "24h", "drop": 0.1},
        {"name": "dwell", "metric": "dwell_mean_seconds", "direction": "lower", "drop": 0.5},
    ]
    fast, slow, dwell = alert_findings(parse({"alerts": alerts}))
    assert {fast.level, slow.level, dwell.level} == {OK}
    assert (
        "a lasting fall of more than 30% fires after 15 min, a total loss after 8 min" in fast.what
    )
    assert "a lasting fall of more than 10% fires after 1540 min" in slow.what
    assert "a lasting rise of more than 50% fires after 70 min; noise" in dwell.what


def test_where_the_numerator_comes_later_the_attributed_metric_is_named() -> None:
    alerts = [{"name": "sold", "metric": "cvr_ratio"}, {"name": "ctr", "metric": "ctr_ratio"}]
    _, late, _ = alert_findings(parse({"alerts": alerts}))
    assert late.level == WARN
    assert late.what.startswith("alert sold: conversions come later than their clicks")
    assert (
        late.fix == 'set metric = "cvr_attributed_ratio", the share of clicks that are old enough'
    )
    waits = parse({"alerts": [{"name": "sold", "metric": "cvr_attributed_ratio"}]})
    assert [each.level for each in alert_findings(waits)] == [OK]


async def test_stored_windows_say_how_much_noise_there_is() -> None:
    store = MemoryStore()
    assert await stored_views(SETTINGS, store) == []
    run = await start(store, SETTINGS, 2)
    for chunk in chunks_of(to_log(faulty(9)[0]), 500):
        run.engines.feed(chunk)
    await finish(store, run)
    assert await stored_views(Settings(), store) == []
    views = await stored_views(SETTINGS, store)
    said = {f.what.split(":")[0]: f.what for f in alert_findings(SETTINGS, views)}
    assert list(said) == [f"alert {alert.name}" for alert in SETTINGS.alerts]
    assert said["alert days"].startswith(
        "alert days: by the noise of the past day, a lasting fall of 77% fires after 130 min, "
        "a total loss after 102 min"
    )
    assert said["alert days"].endswith("; segments take more")
    assert all(" by the noise of the past day, " in what for what in said.values()), said


async def test_state_of_other_settings_says_nothing() -> None:
    store = MemoryStore()
    await finish(store, await start(store, SETTINGS, 2))
    alert = {"name": "other", "metric": "ctr_ratio"}
    assert await stored_views(parse({"alerts": [alert]}), store) == []


def test_where_hardly_anything_fires_it_is_told() -> None:
    for direction, none in (("higher", "a total loss"), ("lower", "a rise to ten times as much")):
        alert = Alert(name="ctr", drop=0.2, direction=direction)
        never = found_with(alert, 0, [None, None, 0.3])
        assert (never.level, never.what) == (
            WARN,
            f"alert ctr: by the noise of the past day, not even {none} fires",
        )
        rarely = found_with(alert, 0, [None, 0.3, 0.3])
        assert rarely.level == OK
        assert rarely.what.endswith("; at the worst hour nothing fires")
    assert found_with(alert, 0, [1.5]).what == (
        "alert ctr: by the noise of the past day, a lasting rise of 150% fires after 70 min, "
        "one of 200% after 55 min; at the worst hour it takes 150%"
    )
