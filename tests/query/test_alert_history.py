"""The history of alerts: verdicts computed again are those that were given, and equal the oracle's
at every past look; what is expected of a segment comes true."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.query.alert_history import AlertHistory, Span, step_ms
from streamer.query.alerts import AlertEvaluation
from streamer.query.checks import judged
from streamer.query.verdicts import Verdicts
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from streamer.stats.random_groups import GroupSums
from tests.oracle.acceptance import accept
from tests.oracle.alert_readings import read_alert
from tests.oracle.alert_series import sums_of
from tests.oracle.dimensions import Kept
from tests.oracle.joining import join
from tests.oracle.oracle import records_of_log
from tests.oracle.shape import Record
from tests.oracle.sink import Sink
from tests.oracle.user_days import facts_of
from tests.support.agreement import run_engines, to_log
from tests.support.engines import Engines
from tests.support.lanes import long, shortened

DAY, H = 86_400_000, 3_600_000
BEGIN = 20_000 * DAY + 7 * H
BEYOND = {"dropped", "risen", "no traffic"}
SETTINGS = parse({
    "dimensions": [{"name": "surface", "values": ["home", "feed"]}],
    "windows": {"lengths": ["1h"]},
    "metrics": {"families": ["traffic"]},
    "composites": [{"name": "clicks", "parts": [
        {"metric": "ctr_ratio", "against": "target", "target": 0.4},
        {"metric": "ctr_attributed_ratio", "against": "target", "target": 0.1},
    ]}],
    "alerts": [
        {"name": "days", "window": "2h", "segments": ["surface"], "drop": 0.4,
         "traffic_drop": 0.3},
        {"name": "before", "window": "4h", "baseline": "before", "for": "2h"},
        {"name": "lagging", "metric": "ctr_attributed_ratio", "window": "3h"},
        {"name": "mixed", "metric": "composite@clicks", "window": "4h", "segments": ["surface"]},
    ],
})  # fmt: skip
ALERTS = {alert.name: alert for alert in SETTINGS.alerts}


def records(days: int, dice_of: Any, home_from: int = 0, more: int = 1) -> list[Record]:
    """Steady traffic, on home from one of the days on; ``dice_of``: hour → what is random in it.
    In the last day clicks on home fail for five hours, and then all is silent for four; not where
    there is ``more`` traffic."""
    lines, hours = list[dict[str, Any]](), 24 * days
    for hour in range(hours):
        dice, left = dice_of(hour), hours - hour if more == 1 else 24
        for i in range(0 if 7 < left <= 11 else 24 * more):
            some = ["home", "feed"] if hour >= 24 * home_from else ["feed"]
            surface = dice.choice([*some, "aside"] if more == 1 and left > 30 else some)
            event_ms = BEGIN + hour * H + dice.randrange(H)
            event = {"ts": event_ms, "user_id": f"u{dice.randrange(300)}", "item_id": "i",
                     "request_id": f"r{hour} {i}", "surface": surface}  # fmt: skip
            lines.append({"type": "impression", **event})
            is_broken = surface == "home" and 12 < left <= 17
            if dice.random() < (0.03 if is_broken else 0.5):
                lines.append({"type": "click", **event, "ts": event_ms + 1000})
    ordered = sorted(lines, key=lambda line: int(line["ts"]))
    return records_of_log([json.dumps(x).encode() for x in ordered], SETTINGS, partitions=2)


@cache
def faulty(days: int) -> tuple[list[Record], Engines]:
    dice = Random(days)
    log = records(days, lambda hour: dice)
    return log, run_engines(SETTINGS, 2, to_log(log), 500, days)


@cache
def regular(days: int, home_from: int) -> Engines:
    """Each day as the one before."""
    log = records(days, lambda hour: Random(hour % 24), home_from, more=2)
    return run_engines(SETTINGS, 2, to_log(log), 500)


def history_of(alert: Alert, engines: Engines) -> AlertHistory:
    views = [view_of(p) for p in engines.partitions]
    at_ms = max(view.header.stream_ms for view in views)
    return AlertHistory(
        AlertEvaluation(SETTINGS, alert, engines.catalogue.alert_measures, views, at_ms), at_ms
    )


def said_at(spans: list[Span], what: str, look_ms: int) -> str | None:
    """What was beyond the tolerated at a look."""
    found = [
        s.status
        for s in spans
        if s.check == what and s.from_ms <= look_ms and (s.until_ms is None or look_ms < s.until_ms)
    ]
    assert len(found) < 2
    return found[0] if found else None


@pytest.mark.parametrize("name", shortened(list(ALERTS)))
def test_past_verdicts_equal_the_oracles(name: str) -> None:
    alert = ALERTS[name]
    log, engines = faulty(9)
    verdict = accept(log, SETTINGS)
    kept = Kept(verdict.events, SETTINGS, verdict.key)
    facts = list(facts_of(verdict, join(verdict, SETTINGS), kept, SETTINGS))
    sums = sums_of(facts, kept, SETTINGS, alert)
    history = history_of(alert, engines)
    found = history.segments()
    assert len(history.looks_ms) == DAY // history.step_ms
    assert history.omitted == 0
    assert len(found) == (4 if alert.segments else 1)
    for look_ms in history.looks_ms[:: 1 if alert.window_ms > 3 * H else 3]:
        expected = {"metric": beyond(alert, sums, look_ms - 1, "streamer_alert_status")}
        expected["traffic"] = beyond(alert, sums, look_ms, "streamer_alert_traffic_status")
        for what, of in expected.items():
            said = {each.segment: said_at(each.spans, what, look_ms) for each in found}
            assert {s: status for s, status in said.items() if status} == of, (what, look_ms)


@pytest.mark.parametrize("name", shortened(list(ALERTS)[::-1]))
@long
def test_past_verdicts_are_those_of_windows_then(name: str) -> None:
    """Also of weekdays, whose oracle is slow."""
    alert = ALERTS[name]
    _, engines = faulty(31)
    views = [view_of(p) for p in engines.partitions]
    measures = engines.catalogue.alert_measures
    history = history_of(alert, engines)
    found = {each.segment: each.spans for each in history.segments()}
    assert found
    assert history.looks_ms
    for look_ms in history.looks_ms[::5]:
        for watched in judged(AlertEvaluation(SETTINGS, alert, measures, views, look_ms - 1)):
            status = watched.metric.status
            said = said_at(found[watched.segment], "metric", look_ms)
            assert said == (status if status in BEYOND else None), (look_ms, watched.segment)
        between = look_ms + history.step_ms // 2  # until the next look nothing else is said
        for watched in judged(AlertEvaluation(SETTINGS, alert, measures, views, between)):
            traffic = watched.checks.get("traffic")
            expected = traffic.status if traffic and traffic.status in BEYOND else None
            said = said_at(found[watched.segment], "traffic", look_ms)
            assert said == expected, (look_ms, watched.segment)


def test_the_largest_segments_of_the_day_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The surface `aside` went silent 30 hours ago."""
    _, engines = faulty(9)
    history = history_of(ALERTS["days"], engines)
    assert [segment for (segment,) in (each.segment for each in history.segments())] == [
        *("all", "home", "feed", "aside")
    ]
    aside = history.segments()[-1]
    assert {span.status for span in aside.spans} == {"no traffic", "dropped"}
    assert [s.until_ms for s in aside.spans if s.check == "traffic"][-1] is None
    monkeypatch.setattr(limits, "ALERT_HISTORY_SEGMENTS", 3)
    cut = history_of(ALERTS["days"], engines)
    assert [each.segment for each in cut.segments()] == [("all",), ("home",), ("feed",)]
    assert cut.omitted == 1


def test_spans_say_when_an_alert_fired() -> None:
    """Clicks on home fail from hour -17 to -12, all traffic from -11 to -7 of the last one."""
    _, engines = faulty(9)
    history = history_of(ALERTS["days"], engines)
    end_ms = BEGIN + 9 * DAY
    (whole, *others) = history.segments()
    home = next(each for each in others if "home" in each.segment)
    falls = [s for s in home.spans if (s.check, s.status) == ("metric", "dropped")]
    assert end_ms - 17 * H < falls[0].from_ms <= end_ms - 15 * H  # once the window is of it
    assert end_ms - 13 * H <= (falls[-1].until_ms or 0) <= end_ms - 10 * H
    assert falls[0].fires_ms == falls[0].from_ms + 600_000  # `for` is 10m
    silence = {span.check: span for span in whole.spans}
    assert silence["metric"].status == "no traffic"
    silent_ms = silence["metric"].until_ms or 0
    assert end_ms - 10 * H < silence["metric"].from_ms < silent_ms < end_ms - 5 * H
    assert silence["traffic"].status == "dropped"
    before = history_of(ALERTS["before"], engines)
    (whole,) = before.segments()
    lasted = [(s.until_ms or 0) - s.from_ms > 2 * H for s in whole.spans]  # `for` is 2h
    assert lasted == [s.fires_ms is not None for s in whole.spans]
    assert {*lasted} == {True, False}


def test_a_change_began_where_it_did() -> None:
    """Of clicks on home that fail since two hours."""
    log = records(9, Random)
    fails_ms = BEGIN + (9 * 24 - 17) * H
    engines = run_engines(
        SETTINGS, 2, to_log([r for r in log if r.record_ms < fails_ms + 2 * H]), 500
    )
    views = [view_of(p) for p in engines.partitions]
    at_ms = max(view.header.stream_ms for view in views)
    windows = AlertEvaluation(
        SETTINGS, ALERTS["days"], engines.catalogue.alert_measures, views, at_ms
    )
    (home,) = (each for each in judged(windows) if each.segment == ("home",))
    assert home.metric.status == "dropped"
    assert home.began is not None
    assert home.began.low_ms <= fails_ms <= home.began.high_ms
    assert abs(home.began.since_ms - fails_ms) < H / 2
    assert home.metric.since_seconds == home.began.since_ms / 1000
    (whole, *_) = judged(windows)
    assert whole.metric.status.is_bad == (whole.began is not None)
    gradual = windows.began(("home",), replace(home.metric, gradual_days=5))
    assert gradual is not None
    assert windows.mature_ms - gradual.since_ms == 5 * 24 * H


@pytest.mark.parametrize("home_from", shortened([4, 5, 6]))
@long
def test_what_is_expected_comes_true_where_days_are_alike(home_from: int) -> None:
    alert, days = ALERTS["days"], 7
    now, later = (regular(d, home_from) for d in (days, days + limits.EXPECTED_DAYS + 1))
    views = [view_of(p) for p in later.partitions]
    measures, step = later.catalogue.alert_measures, step_ms(alert.window_ms // 6, H)
    history = history_of(alert, now)
    found = {each.segment: each.expected_ms for each in history.segments()}
    (home,) = (segment for segment in found if "home" in segment)
    expected_ms = found[home]
    assert expected_ms is not None
    first = history.looks_ms[-1] + step
    for look_ms in range(first, expected_ms + 1, step):
        then = AlertEvaluation(SETTINGS, alert, measures, views, look_ms - 1).change(home)
        assert then.status.is_open == (look_ms < expected_ms), look_ms


def test_the_smallest_change_of_stored_windows_fires_and_smaller_ones_do_not() -> None:
    """Of the clicks of the last three hours some are lost: the alert compares two."""
    alert, log = ALERTS["days"], records(9, lambda hour: Random(hour % 24), more=2)
    engines = run_engines(SETTINGS, 2, to_log(log), 500)
    newest, *_ = found = history_of(alert, engines).smallest_changes()
    assert len(found) == 24
    assert newest is not None
    for lost, status in (
        (newest + 0.07, "dropped"),
        (newest - 0.07, "perhaps beyond the tolerance"),
    ):
        clicks = [r for r in log if r.topic == "clicks" and r.record_ms >= BEGIN + 9 * DAY - 3 * H]
        gone = {r.address for i, r in enumerate(clicks) if i * lost % 1 < lost}
        kept = [r for r in log if r.address not in gone]
        views = [view_of(p) for p in run_engines(SETTINGS, 2, to_log(kept), 500).partitions]
        at_ms = max(view.header.stream_ms for view in views)
        windows = AlertEvaluation(SETTINGS, alert, engines.catalogue.alert_measures, views, at_ms)
        found_change = windows.change(("all",))
        assert found_change.status == status, (lost, found_change)


def beyond(alert: Alert, sums: Any, at_ms: int, of: str) -> dict[tuple[str, ...], str]:
    """Segment → what was beyond the tolerated, as the oracle has it at a time."""
    out, found = Sink(), dict[tuple[str, ...], str]()
    read_alert(out, SETTINGS, alert, sums, at_ms)
    for (name, pairs), value in out.readings.items():
        labels = dict(pairs)
        if value == 1 and name == of and labels["status"] in BEYOND:
            found[tuple(labels[name] for name in SETTINGS.dimension_names)] = labels["status"]
    return found


def test_before_keeps_the_window_before_a_fall_while_it_lasts() -> None:
    """Of ten-minute windows, clicks fall by 30 % and stay there: 20 % tolerated, `for` 10m."""
    alert = Alert(name="ctr", window="10m", baseline="before", drop=0.2)
    begin = 600  # panes
    panes = _Falling(begin)
    found = []
    for newest in range(begin - 10, begin + 60):
        verdicts = Verdicts(alert, panes, 1.0, newest * panes.series.pane_ms)
        found.append(verdicts.change(("all",)).status == "dropped")
    first = found.index(True)
    assert 10 + 2 <= first <= 10 + 6  # of six panes, four or five have fallen
    lasted = found[first:].index(False)
    assert lasted >= 6 * 5  # five windows, of which `for` is one
    assert not any(found[:10])
    assert not any(found[first + lasted + 6 :])


class _Falling:
    """Windows of one segment whose rate falls by 30 % at a pane."""

    def __init__(self, begin: int) -> None:
        self.series: Any = SimpleNamespace(pane_ms=100_000, lag_ms=0)
        self.since_ms, self.first_day, self._begin = 0, None, begin

    def window(self, last: int) -> Any:
        x = sum(70 if pane >= self._begin else 100 for pane in range(last - 5, last + 1))
        return {("all",): x}

    def totals(self, last: int) -> Any:
        raise NotImplementedError

    def grouped(self, window: Any, segment: Any) -> GroupSums:
        x = window[("all",)]
        return GroupSums(tuple(x + i % 3 for i in range(16)), (10_000,) * 16)

    def total_of(self, window: Any, segment: Any) -> Any:
        raise NotImplementedError


def test_the_strip_is_counted_from_the_log() -> None:
    log, engines = faulty(9)
    alert = ALERTS["days"]
    (home,) = (each for each in history_of(alert, engines).segments() if each.segment == ("home",))
    strip = home.strip
    assert strip is not None
    assert len(strip.values) == 7 * DAY // strip.step_ms == len(strip.usual) == len(strip.beyond)
    events = [json.loads(record.raw or b"") for record in log]
    counts = {
        kind: sorted(e["ts"] for e in events if e["type"] == kind and e.get("surface") == "home")
        for kind in ("impression", "click")
    }

    def counted(kind: str, end_ms: int) -> int:
        begin_ms = end_ms - alert.window_ms
        return sum(begin_ms <= ts < end_ms for ts in counts[kind])

    for i, (value, is_beyond) in enumerate(zip(strip.values, strip.beyond, strict=True)):
        end_ms = strip.from_ms + i * strip.step_ms
        shown, clicks = counted("impression", end_ms), counted("click", end_ms)
        assert value == (clicks / shown if shown else None)
        if value is None:
            assert is_beyond is None
    assert True in strip.beyond[-24:]
    assert False in strip.beyond


def test_a_composite_has_no_strip() -> None:
    assert all(each.strip is None for each in history_of(ALERTS["mixed"], faulty(9)[1]).segments())
