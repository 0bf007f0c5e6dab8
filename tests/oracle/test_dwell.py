"""The oracle: time on an item, reported by clicks and sessions, counted once, by hand."""

from __future__ import annotations

from typing import Any

from streamer.settings.load import parse
from tests.support.rollups import every

from .oracle import OracleResult
from .timeline import T0, VARIANT, H, Log, M, S, value

HOUR = {"window": "1h"}
DAY = parse({"dimensions": [], "windows": {"lengths": ["24h"]}})
R: dict[str, Any] = {"request_id": "r"}


def dwells(result: OracleResult, window: str = "1h", **labels: str) -> list[int | float | None]:
    """(how many, their mean in seconds)."""
    names = ("window_dwells", "dwell_mean_seconds")
    return [value(result, name, window=window, **labels) for name in names]


NONE = [None, None]


def reported(log: Log, event_ms: int, dwell_ms: int, **fields: Any) -> Log:
    """A session's report."""
    return log.visited(event_ms, action="dwell", dwell_ms=dwell_ms, **fields)


# What reports ---------------------------------------------------------------------------------


def test_sessions_report_in_both_forms() -> None:
    log = reported(Log(), 0, 4000)
    log.visited(0, action="dwell", start_ts=T0, end_ts=T0 + 2000)
    log.visited(0, action="dwell")  # says nothing
    assert dwells(log.run()) == [2, 3.0]


def test_only_the_action_dwell_reports() -> None:
    log = Log()
    for action in ("start", "view", "end"):
        log.visited(0, action=action, item_id="x", dwell_ms=4000, **R)
    assert dwells(log.run()) == NONE


def test_clicks_of_any_kind_report() -> None:
    log = Log().click(0, dwell_ms=1000, feedback="unheard_of", variant="A", **R)
    log.click(0, dwell_ms=3000, item_id="y", **R)
    assert dwells(log.run()) == [2, 2.0]
    assert dwells(log.run(VARIANT), variant="A") == [1, 1.0]


# Once a viewing -------------------------------------------------------------------------------


def test_the_larger_report_counts() -> None:
    clicks_more = reported(Log().click(0, dwell_ms=5000, **R), 0, 4000, **R)
    assert dwells(clicks_more.run()) == [1, 5.0]
    session_more = reported(Log().click(0, dwell_ms=5000, **R), 0, 6000, **R)
    assert dwells(session_more.run()) == [1, 6.0]
    clicks_none = reported(Log().click(0, **R), 0, 6000, **R)
    assert dwells(clicks_none.run()) == [1, 6.0]


def test_several_reports_of_one_topic_count_once_too() -> None:
    log = Log().click(0, dwell_ms=1000, **R).click(1000, dwell_ms=3000, **R)
    log.click(2000, dwell_ms=2000, feedback="like", **R)
    assert dwells(log.run()) == [1, 3.0]


def test_without_a_request_each_counts() -> None:
    log = reported(Log().click(0, dwell_ms=1000).click(0, dwell_ms=1000), 0, 4000)
    reported(log, 0, 10_000, **R)
    assert dwells(log.run()) == [4, 4.0]


def test_user_request_item_and_partition_are_distinguished() -> None:
    log = reported(Log().click(0, dwell_ms=1000, **R), 0, 1000, request_id="q")
    reported(log, 0, 1000, user_id="v", **R)
    reported(log, 0, 1000, item_id="y", **R)
    reported(log, 0, 1000, p=1, **R)
    reported(log, 0, 1000, session_id="t", **R)  # but the session is not: the same viewing
    assert dwells(log.run()) == [5, 1.0]


# Where it counts ------------------------------------------------------------------------------


def test_a_tie_goes_to_the_click() -> None:
    log = reported(Log().click(0, dwell_ms=1000, variant="A", **R), 0, 1000, variant="B", **R)
    result = log.run(VARIANT)
    assert dwells(result, variant="A") == [1, 1.0]
    assert dwells(result, variant="B") == NONE


def test_it_is_counted_at_the_winners_time() -> None:
    # The larger is reported at minute 0, outside the hour; the smaller at minute 1, inside.
    log = reported(Log().click(0, dwell_ms=9000, **R), 1 * M, 5000, **R).shown(60 * M)
    assert dwells(log.run()) == NONE
    log = reported(Log().click(0, dwell_ms=5000, **R), 1 * M, 9000, **R).shown(60 * M)
    assert dwells(log.run()) == [1, 9.0]
    log = reported(Log().click(0, dwell_ms=9000, **R), 1 * M, 9000, **R).shown(60 * M)
    assert dwells(log.run()) == NONE


def test_what_is_dated_beyond_stream_time_waits() -> None:
    log = Log().click(4 * M, 0, dwell_ms=9000)
    assert dwells(log.run()) == NONE
    assert dwells(log.shown(4 * M).run()) == [1, 9.0]


def test_of_equal_clicks_the_earliest_counts_then_the_lowest_offset() -> None:
    log = Log().click(5, dwell_ms=1000, variant="A", **R).click(3, dwell_ms=1000, variant="B", **R)
    log.click(3, dwell_ms=1000, variant="C", **R)
    result = log.run(VARIANT)
    shown = [dwells(result, variant=v)[0] for v in "ABC"]
    assert shown == [None, 1, None]
    log = reported(reported(Log(), 5, 1000, variant="A", **R), 3, 1000, variant="B", **R)
    result = reported(log, 3, 1000, variant="C", **R).run(VARIANT)
    assert [dwells(result, variant=v)[0] for v in "ABC"] == [None, 1, None]


def test_the_other_topics_best_fills_what_the_winner_lacks() -> None:
    # The session knows of nothing; the click inherited A from the impression.
    log = Log().shown(0, variant="A", **R).click(1, dwell_ms=1000, **R)
    result = reported(log, 2, 2000, **R).run(VARIANT)
    assert dwells(result, variant="A") == [1, 2.0]
    assert dwells(result, variant="unknown") == NONE
    # The click wins, has joined nothing; the session knows.
    log = reported(Log().click(1, dwell_ms=1000, **R), 2, 500, variant="B", **R)
    assert dwells(log.run(VARIANT), variant="B") == [1, 1.0]


def test_each_dimension_is_filled_apart() -> None:
    settings = parse({"windows": {"lengths": ["1h"]}, "metrics": every("variant", "surface")})
    log = Log().click(0, dwell_ms=1000, variant="A", **R)
    reported(log, 0, 2000, surface="home", **R)
    assert dwells(log.run(settings), variant="A", surface="home") == [1, 2.0]


def test_only_the_best_of_the_other_topic_fills() -> None:
    # Of the clicks the longer one has no variant; the shorter one's is not asked.
    log = Log().click(0, dwell_ms=1000, **R).click(0, dwell_ms=500, variant="A", **R)
    result = reported(log, 0, 2000, **R).run(VARIANT)
    assert dwells(result, variant="unknown") == [1, 2.0]
    assert dwells(result, variant="A") == NONE


def test_what_the_winner_has_stays() -> None:
    log = Log().click(0, dwell_ms=1000, variant="A", **R)
    result = reported(log, 0, 2000, variant="B", **R).run(VARIANT)
    assert dwells(result, variant="B") == [1, 2.0]
    assert dwells(result, variant="A") == NONE


def test_a_session_inherits_nothing_by_itself() -> None:
    log = reported(Log().shown(0, variant="A", **R), 1, 2000, **R)
    result = log.run(VARIANT)
    assert dwells(result, variant="unknown") == [1, 2.0]


def test_without_a_request_nothing_fills() -> None:
    log = reported(Log().click(0, dwell_ms=1000, variant="A"), 0, 2000)
    result = log.run(VARIANT)
    assert dwells(result, variant="A") == [1, 1.0]
    assert dwells(result, variant="unknown") == [1, 2.0]


# Viewings -------------------------------------------------------------------------------------


def test_reports_a_gap_apart_are_two_viewings() -> None:
    # The first covers -10 s to 10 s, the second from its own time less 20 s; the gap is 30 min.
    apart_ms = 10 * S + 30 * M + 20 * S
    for at_ms, expected in ((apart_ms - 1, [1, 20.0]), (apart_ms, [2, 15.0])):
        log = reported(Log().click(0, dwell_ms=10_000, **R), at_ms, 20_000, **R)
        assert dwells(log.run()) == expected


def test_a_long_dwell_reaches_back_no_further_than_the_gap() -> None:
    # two hours, reported at 60 min and 1 s: it covers from 30:01 on; the report at 0 is apart
    for at_ms, expected in ((60 * M, [2, 3600.0]), (60 * M - 1, [1, 7200.0])):
        log = reported(Log().click(0, dwell_ms=0, **R), at_ms, 7_200_000, **R).shown(61 * M)
        assert dwells(log.run(DAY), "24h") == expected


def test_what_reaches_back_furthest_is_first() -> None:
    # 0 and 50 min are apart; a long one, reported after both, begins before the second
    log = Log().click(0, dwell_ms=0, **R).click(50 * M, dwell_ms=0, **R)
    reported(log, 60 * M - 1, 7_200_000, **R).shown(61 * M)
    assert dwells(log.run(DAY), "24h") == [1, 7200.0]


def test_a_long_dwell_covers_what_it_says_forwards() -> None:
    # reported at 0, two hours: up to 2 h. Reported again before 2:30 h: the same viewing.
    for at_ms, expected in ((150 * M - 1, [1, 7200.0]), (150 * M, [2, 3600.0])):
        log = reported(Log().click(0, dwell_ms=7_200_000, **R), at_ms, 0, **R)
        assert dwells(log.run(DAY), "24h") == expected


def test_the_largest_upper_end_so_far_counts() -> None:
    # 0: covers two hours; 10 min: a short one; 140 min: near to the first only
    log = Log().click(0, dwell_ms=7_200_000, **R).click(10 * M, dwell_ms=1000, **R)
    reported(log, 140 * M, 1000, **R)
    assert dwells(log.run(DAY), "24h") == [1, 7200.0]


def test_a_report_between_makes_one_viewing_of_two() -> None:
    log = Log().click(0, dwell_ms=0, **R).click(50 * M, dwell_ms=4000, **R)
    assert dwells(log.run()) == [2, 2.0]
    reported(log, 25 * M, 2000, **R)
    assert dwells(log.run()) == [1, 4.0]


def test_order_of_arrival_does_not_matter() -> None:
    log = Log().click(50 * M, dwell_ms=4000, **R)
    log.click(0, 50 * M, dwell_ms=0, **R)
    log.visited(25 * M, 60 * M, action="dwell", dwell_ms=2000, **R)
    assert dwells(log.run()) == [1, 4.0]


def test_the_same_request_a_day_later_is_another_viewing() -> None:
    log = Log().click(0, dwell_ms=1000, **R).click(20 * H, dwell_ms=3000, **R)
    assert dwells(log.run(DAY), "24h") == [2, 2.0]


# What is shown --------------------------------------------------------------------------------


def test_classes_include_their_upper_bound() -> None:
    log = Log()
    for dwell_ms in (0, 1000, 1001, 2000, 5001, 10_000, 1_800_000, 1_800_001, 86_400_000):
        log.click(0, dwell_ms=dwell_ms)
    result = log.run()
    classes = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, "inf")
    shown = {
        str(c): value(result, "window_dwell_distribution", upto_seconds=str(c), **HOUR)
        for c in classes
    }
    counted = {"1": 2, "2": 2, "10": 2, "1800": 1, "inf": 2}
    assert shown == {str(c): counted.get(str(c)) for c in classes}


def test_position_never_matters() -> None:
    log = reported(Log().click(0, dwell_ms=1000, position=3, **R), 0, 2000, **R)
    result = log.run()
    assert dwells(result) == [1, 2.0]
    assert value(result, "window_position_clicks", position="3", **HOUR) == 1
