"""The oracle: visits and their ends, counted by hand. The gap is 30 minutes."""

from __future__ import annotations

from streamer.settings.load import parse
from streamer.settings.model import Settings

from .oracle import OracleResult
from .timeline import PLAIN, VARIANT, H, Log, M, value

HOUR = {"window": "1h"}
NONE = [None] * 5
QUANTILES = ("0.5", "0.9", "0.99")
DAY = parse({"dimensions": [], "windows": {"lengths": ["24h"]}})


def visits(result: OracleResult, window: str = "1h", **labels: str) -> list[int | float | None]:
    """(sessions, bounces, bounce rate, views per session, mean length)."""
    names = (
        *("window_sessions", "window_bounces", "bounce_rate_ratio", "views_per_session"),
        "session_length_mean_seconds",
    )
    return [value(result, name, window=window, **labels) for name in names]


def ended(log: Log, at_ms: int, settings: Settings = PLAIN) -> list[int | float | None]:
    """What the hour shows as soon as stream time is there."""
    later = Log()
    later.records = list(log.records)
    return visits(later.shown(at_ms).run(settings))


# What one session is --------------------------------------------------------------------------


def test_less_than_the_gap_apart_is_one_session() -> None:
    log = Log().visited(0).visited(30 * M - 1)
    assert ended(log, 60 * M) == [1, None, 0.0, 2.0, 1799.999]
    log = Log().visited(0).visited(30 * M)
    assert ended(log, 60 * M) == [2, 2, 1.0, 1.0, 0.0]


def test_the_gap_is_counted_from_the_last_event() -> None:
    # 0 -- 29 -- 58 -- 87 minutes: one visit, ended by the gap at 117
    log = Log().visited(0, action="start")
    for minute in (29, 58, 87):
        log.visited(minute * M)
    assert ended(log, 117 * M) == [1, None, 0.0, 3.0, 87 * 60.0]
    assert ended(log, 117 * M - 1) == NONE


def test_without_an_id_the_gap_alone_parts_a_users_sessions() -> None:
    log = Log().visited(0, session_id=None).visited(29 * M, session_id="").visited(59 * M)
    log.visited(59 * M, session_id=None).visited(10 * M, user_id="v", session_id=None)
    log.visited(10 * M, user_id="", session_id=None)
    result = log.shown(90 * M).run()
    assert visits(result, "1h")[0] == 4
    assert [reject[0] for reject in result.rejects] == ["sessions"]
    assert result.rejects[0][3] == "session_id"


def test_the_gap_is_a_setting() -> None:
    settings = parse(
        {
            "dimensions": [],
            "windows": {"lengths": ["1h"]},
            "attribution": {"session_gap": "5m"},
        }
    )
    log = Log().visited(0).visited(5 * M - 1).visited(10 * M)
    assert ended(log, 15 * M, settings) == [2, 1, 0.5, 1.5, 149.9995]


def test_users_and_session_ids_are_distinguished() -> None:
    log = Log().visited(0).visited(1, session_id="t").visited(2, user_id="v").visited(3, p=1)
    assert ended(log, 30 * M) == [4, 4, 1.0, 1.0, 0.0]


def test_the_same_session_id_hours_later_is_another_session() -> None:
    log = Log().visited(0).visited(1 * M).visited(5 * H).visited(5 * H + 10 * M, action="end")
    log.shown(6 * H)
    assert visits(log.run(DAY), "24h") == [2, 1, 0.5, 1.5, (60 + 600) / 2]


# Ends -----------------------------------------------------------------------------------------


def test_an_end_ends_at_once_and_silence_after_the_gap() -> None:
    log = Log().visited(0).visited(10 * M, action="end")
    assert ended(log, 10 * M) == [1, 1, 1.0, 1.0, 600.0]
    log = Log().visited(0).visited(10 * M, action="view")
    assert ended(log, 40 * M - 1) == NONE
    assert ended(log, 40 * M) == [1, None, 0.0, 2.0, 600.0]


def test_an_end_never_splits() -> None:
    # end at 5 min, and the visit goes on: it ends after the gap, at 40 min
    log = Log().visited(0).visited(5 * M, action="end").visited(10 * M)
    assert ended(log, 39 * M) == NONE
    assert ended(log, 40 * M) == [1, None, 0.0, 2.0, 600.0]
    # several ends: the last one counts
    log = Log().visited(0).visited(5 * M, action="end").visited(9 * M, action="end")
    assert ended(log, 9 * M) == [1, 1, 1.0, 1.0, 540.0]


def test_an_end_in_the_millisecond_of_the_last_view_ends() -> None:
    for actions in (("end", "view"), ("view", "end"), ("end", "dwell")):
        log = Log().visited(0)
        for action in actions:
            log.visited(10 * M, action=action)
        assert ended(log, 10 * M)[0] == 1
    assert ended(Log().visited(0).visited(1, action="end").visited(2), 20 * M) == NONE


def test_a_session_may_be_nothing_but_an_end() -> None:
    assert ended(Log().visited(5 * M, action="end"), 5 * M) == [1, None, 0.0, 0.0, 0.0]


def test_what_ends_beyond_stream_time_waits() -> None:
    # an end dated 4 minutes ahead of its arrival; panes of the hour are minutes
    log = Log().visited(0).visited(4 * M, 0, action="end")
    assert ended(log, 0) == NONE
    assert ended(log, 4 * M - 1) == NONE
    assert ended(log, 4 * M) == [1, 1, 1.0, 1.0, 240.0]


def test_the_window_is_that_of_the_end() -> None:
    # begun 80 minutes ago, silent for 60: counted at 50 min, in the hour until stream time is 110
    log = Log().visited(0).visited(20 * M)
    assert ended(log, 110 * M - 1) == [1, None, 0.0, 2.0, 1200.0]
    assert ended(log, 110 * M) == NONE


# Order of arrival -----------------------------------------------------------------------------


def test_a_late_event_bridges_two_sessions() -> None:
    log = Log().visited(0).visited(40 * M)
    assert ended(log, 70 * M) == [2, 2, 1.0, 1.0, 0.0]
    log.visited(20 * M, 41 * M)
    assert ended(log, 70 * M) == [1, None, 0.0, 3.0, 2400.0]


def test_a_late_event_reopens_an_ended_session() -> None:
    log = Log().visited(0).visited(10 * M, action="end").visited(12 * M, 50 * M)
    assert ended(log, 41 * M) == NONE
    assert ended(log, 42 * M) == [1, None, 0.0, 2.0, 720.0]


def test_a_late_event_moves_the_start() -> None:
    log = Log().visited(20 * M, variant="B").visited(25 * M, action="end", variant="B")
    log.visited(5 * M, 30 * M, variant="A")
    result = log.run(VARIANT)
    assert visits(result, variant="A") == visits(result, variant="all") == [1, None, 0.0, 2.0, 1200]
    assert visits(result, variant="B") == NONE


def test_what_is_not_accepted_is_no_event_of_a_session() -> None:
    log = Log().visited(0, event_id="e").visited(20 * M, event_id="e", action="end")
    log.visited(0, 70 * M)  # late
    assert ended(log, 60 * M) == [1, 1, 1.0, 1.0, 0.0]


# What is shown of them ------------------------------------------------------------------------


def test_bounces_have_exactly_one_view() -> None:
    # views: 1 beside a start and an end; 0; 2
    log = Log()
    for session_id, actions in (("a", "start view end"), ("b", "start dwell"), ("c", "view view")):
        for i, action in enumerate(actions.split()):
            log.visited(i * 1000, session_id=session_id, action=action)
    assert ended(log, 31 * M) == [3, 1, 1 / 3, 1.0, 4 / 3]


def test_lengths_are_ranked_and_their_mean_is_exact() -> None:
    log = Log()
    for i in range(1, 11):
        log.visited(0, session_id=f"s{i}").visited(i * M + 1, session_id=f"s{i}", action="end")
    result = log.run()
    shown = [value(result, "window_session_length_seconds", quantile=q, **HOUR) for q in QUANTILES]
    assert shown == [300.001, 540.001, 600.001]
    assert value(result, "session_length_mean_seconds", **HOUR) == 330.001


def test_endless_visits_count_as_a_month_in_the_quantiles() -> None:
    settings = parse(
        {
            "dimensions": [],
            "windows": {"lengths": ["24h"]},
            "attribution": {"session_gap": "6h"},
        }
    )
    log = Log()
    for hour in range(0, 32 * 24, 4):
        log.visited(hour * H)
    result = log.visited(32 * 24 * H, action="end").run(settings)
    at = {"window": "24h"}
    shown = [value(result, "window_session_length_seconds", quantile=q, **at) for q in QUANTILES]
    assert shown == [31 * 86_400.0] * 3
    assert value(result, "session_length_mean_seconds", **at) == 32 * 86_400.0


def test_dimensions_are_those_of_the_first_event() -> None:
    log = Log().visited(0, variant="A").visited(1 * M, variant="B").visited(2 * M, action="end")
    assert visits(log.run(VARIANT), variant="A") == [1, None, 0.0, 2.0, 120.0]
    assert visits(log.run(VARIANT), variant="B") == NONE


def test_dimensions_that_the_first_event_lacks_are_unknown() -> None:
    # neither a later event nor an impression of the user fills them
    log = Log().shown(0, variant="A").visited(0).visited(1, action="end", variant="A")
    assert visits(log.run(VARIANT), variant="unknown") == [1, 1, 1.0, 1.0, 0.001]
    assert visits(log.run(VARIANT), variant="A") == NONE


def test_of_equal_first_times_the_lower_offset_is_first() -> None:
    log = Log().visited(5, variant="B").visited(1, variant="A").visited(1, variant="C")
    log.visited(9, action="end")
    assert visits(log.run(VARIANT), variant="A")[0] == 1
    assert visits(log.run(VARIANT), variant="C") == NONE


def test_a_segment_of_sessions_alone_has_no_traffic() -> None:
    result = Log().visited(0, variant="A", action="end").run(VARIANT)
    assert value(result, "window_sessions", variant="A", **HOUR) == 1
    assert value(result, "window_impressions", variant="A", **HOUR) is None
    assert value(result, "impressions_total", variant="A") is None
