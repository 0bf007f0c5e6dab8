"""The oracle: joins, finality, dimensions and formulas, on timelines counted by hand."""

from __future__ import annotations

from streamer.settings.load import parse
from tests.support.rollups import every

from .timeline import T0, VARIANT, H, Log, M, S, joins, value

# Rows and joins -------------------------------------------------------------------------------


def test_newest_impression_wins_and_horizon_is_inclusive() -> None:
    # impressions: 0 ......... 10 ............................ (30 min horizon)
    # clicks:         5 -> 0       10 -> 10     40 -> 10   40 min + 1 ms -> none
    log = Log().shown(0).shown(10 * M)
    for at_ms in (5 * M, 10 * M, 40 * M, 40 * M + 1):
        log.click(at_ms)
    assert joins(log.run()) == [(0, 0), (1, 0), (1, 0), None]


def test_equal_times_are_decided_by_offset_then_index() -> None:
    log = Log().shown(0).shown(0, items=[{"item_id": "x"}, {"item_id": "y"}]).click(0)
    assert joins(log.run()) == [(1, 0)]


def test_a_late_impression_takes_the_click_over() -> None:
    # event times: shown 0, shown 8, click 9; the second arrives last
    log = Log().shown(0).click(9 * M).shown(8 * M, 60 * M)
    assert joins(log.run()) == [(1, 0)]


def test_request_id_restricts_and_its_lack_does_not() -> None:
    log = Log().shown(0, request_id="r").shown(1 * M).shown(2 * M, items=[{"item_id": "x"}])
    log.click(3 * M, request_id="r").click(3 * M).click(3 * M, request_id="s")
    assert joins(log.run()) == [(0, 0), (2, 0), None]


def test_an_id_of_joins_stands_for_the_user() -> None:
    # the user is unknown before the login, and another device has an id of its own
    log = Log().shown(0, join_id="d", user_id=None).shown(1 * M, join_id="e").shown(2 * M)
    log.click(3 * M, join_id="d").click(3 * M, join_id="e").click(3 * M).click(3 * M, join_id="f")
    result = log.run()
    assert joins(result) == [(0, 0), (1, 0), (2, 0), None]
    assert value(result, "anonymous_total", topic="impressions") == 0
    assert value(result, "window_users", window="1h") == 3


def test_an_id_of_joins_needs_no_user() -> None:
    log = Log().shown(0, join_id="d", user_id=None).click(1 * M, join_id="d", user_id=None)
    log.bought(2 * M, join_id="d", user_id=None, request_id=None)
    result = log.run()
    assert (joins(result), joins(result, "conversions")) == ([(0, 0)], [(0, 0)])
    anonymous = [
        value(result, "anonymous_total", topic=f"{kind}s") for kind in ("click", "conversion")
    ]
    assert anonymous == [0, 0]


def test_a_slate_is_that_of_an_id_of_joins() -> None:
    log = Log().shown(0, join_id="d", request_id="r", user_id=None).shown(1, request_id="r")
    log.shown(2, join_id="d", request_id="r")  # a repeat of the first
    log.click(1 * M, join_id="d", request_id="r").click(1 * M, request_id="r")
    assert joins(log.run()) == [(0, 0), (1, 0)]


def test_an_impression_with_an_id_of_its_own_is_joined_by_that_alone() -> None:
    # x is shown twice, with an id each; clicks name the older one, with an item or without, whoever
    # they are of, and a click on the item itself joins neither
    log = Log().shown(0, impression_id="m").shown(1 * M, impression_id="n")
    log.click(2 * M, impression_id="m").click(2 * M, impression_id="m", item_id=None)
    log.click(2 * M, impression_id="m", user_id=None).click(2 * M, request_id="r")
    log.click(2 * M, impression_id="n", request_id="r").click(2 * M, impression_id="o")
    log.bought(3 * M, impression_id="n").bought(3 * M, impression_id="m", item_id=None)
    result = log.run()
    assert joins(result) == [(0, 0), (0, 0), (0, 0), None, (1, 0), None]
    assert joins(result, "conversions") == [(1, 0), (0, 0)]


def test_items_of_a_list_have_impressions_of_their_own() -> None:
    shown = [{"item_id": "x", "impression_id": "m"}, {"item_id": "y"}, {"impression_id": "n"}]
    log = Log().shown(0, items=shown)
    log.click(1 * M, impression_id="m", item_id=None).click(1 * M, item_id="y").click(1 * M)
    lines = [{"impression_id": "n"}, {"impression_id": "m", "item_id": "x"}]
    log.click(1 * M, item_id=None, items=lines)
    assert joins(log.run()) == [(0, 0), (0, 1), None, (0, 2), (0, 0)]


def test_repeats_count_and_never_join() -> None:
    # request r: x at 0, again at 1 min (a repeat, newer), and a list that has y twice
    log = Log().shown(0, request_id="r").shown(1 * M, request_id="r")
    log.shown(2 * M, items=[{"item_id": "y"}, {"item_id": "y"}])
    log.click(3 * M, request_id="r").click(3 * M).click(3 * M, item_id="y")
    result = log.run()
    assert joins(result) == [(0, 0), (0, 0), (2, 0)]
    assert value(result, "impressions_total") == 4
    labels = {"window": "1h", "maturity": "provisional"}
    assert value(result, "window_ctr_attributed_impressions", **labels) == 4
    assert value(result, "window_ctr_attributed_clicked", **labels) == 2
    assert value(result, "ctr_attributed_ratio", **labels) == 0.5
    assert value(result, "window_clicks", window="1h") == 3


def test_a_repeat_is_measured_from_the_first_showing() -> None:
    # A: 0 first, 90 min repeat, 95 min repeat (30 + 60 + 5), 95 min + 1 ms starts again
    log = Log()
    for at_ms in (0, 90 * M, 95 * M, 95 * M + 1):
        log.shown(at_ms, request_id="r")
    log.click(96 * M, request_id="r")
    assert joins(log.run()) == [(3, 0)]


def test_conversion_needs_earlier_feedback_on_the_row() -> None:
    # shown 0 -------- shown 20, click 21 (joins 20) ------------ click 25 for y: never shown
    # bought 20:30 -> none (no feedback yet); 21 -> row 1; 1 day + 20 min -> row 1; + 1 ms -> none
    log = Log().shown(0).shown(20 * M).click(21 * M)
    for at_ms in (20 * M + 30 * S, 21 * M, 24 * H + 20 * M, 24 * H + 20 * M + 1):
        log.bought(at_ms)
    assert joins(log.run(), "conversions") == [None, (1, 0), (1, 0), None]


def test_conversion_of_a_like_joins_but_converts_no_click() -> None:
    settings = parse(
        {
            "dimensions": [],
            "windows": {"lengths": ["1h"]},
            "metrics": {"feedback": {"click": 1.0, "like": 2.0}},
        }
    )
    log = Log().shown(0).click(1 * M, feedback="like").bought(2 * M).click(1 * M, feedback="zap")
    result = log.run(settings)
    assert joins(result, "conversions") == [(0, 0)]
    assert joins(result) == [(0, 0)]  # the kind that is not configured is never joined
    labels = {"window": "1h", "maturity": "provisional"}
    assert value(result, "ctr_attributed_ratio", **labels) == 0.0
    assert value(result, "cvr_attributed_ratio", **labels) is None
    assert value(result, "window_feedback", window="1h", feedback="like") == 1
    assert value(result, "feedback_total", feedback="other") == 1
    assert value(result, "window_clicks", window="1h") == 0
    assert value(result, "clicks_total") == 0  # the segment is seen


# Finality ----------------------------------------------------------------------------------


def test_unsettled_until_the_impression_can_no_longer_come() -> None:
    # click at 0 without its impression. Clicks read to 65 min + 1: E(impressions) = A(clicks) - 5
    for last_ms, final in ((65 * M, False), (65 * M + 1, True)):
        log = Log().click(0).raw("clicks", b"{", last_ms)
        result = log.run(VARIANT)
        assert result.unsettled == ([] if final else [("clicks", 0, 0)])
        assert value(result, "unattributed_total", topic="clicks") == int(final)
        assert value(result, "unsettled", topic="clicks") == int(not final)
        assert value(result, "clicks_total", variant="unknown") == (1 if final else None)
        assert value(result, "window_clicks", window="1h", variant="unknown") in (1, None)


def test_own_dimensions_settle_without_a_join_but_do_not_miss() -> None:
    result = Log().click(0, variant="A").run(VARIANT)
    assert result.unsettled == []
    assert value(result, "clicks_total", variant="A") == 1
    assert value(result, "unattributed_total", topic="clicks") == 0


def test_a_join_by_request_is_final_and_one_without_is_not() -> None:
    log = Log().shown(0, request_id="r", variant="A").click(1 * M, request_id="r").click(1 * M)
    result = log.run(VARIANT)
    assert result.unsettled == [("clicks", 0, 1)]
    assert value(result, "clicks_total", variant="A") == 1
    assert value(result, "window_clicks", window="1h", variant="A") == 2


def test_conversion_is_final_with_final_feedback() -> None:
    by_request = Log().shown(0, request_id="r").click(1 * M, request_id="r")
    assert by_request.bought(2 * M, request_id="r").run(VARIANT).unsettled == []
    pending = Log().shown(0, request_id="r").click(1 * M)
    pending.bought(2 * M, request_id="r")
    unsettled = pending.run(VARIANT).unsettled
    assert unsettled == [("clicks", 0, 0), ("conversions", 0, 0)]


# Dimensions -----------------------------------------------------------------------------------


def test_feedback_inherits_what_it_does_not_carry() -> None:
    log = Log().shown(0, request_id="r", variant="A", position=3)
    log.click(1 * M, request_id="r", variant="unknown", dwell_ms=4000)
    log.click(1 * M, request_id="r", variant="B", position=4)
    result = log.run(VARIANT)
    at = {"window": "1h"}
    assert value(result, "window_clicks", variant="A", **at) == 1
    assert value(result, "window_clicks", variant="B", **at) == 1
    assert value(result, "window_dwells", variant="A", **at) == 1
    assert value(result, "ctr_ratio", variant="all", **at) == 2.0
    assert value(result, "ctr_ratio", variant="B", **at) is None
    assert value(result, "window_position_clicks", variant="A", position="3", **at) == 1
    assert value(result, "window_position_clicks", variant="B", position="4", **at) == 1
    # attributed: one impression of A, clicked
    clicked = value(
        result, "window_ctr_attributed_clicked", variant="A", maturity="provisional", **at
    )
    assert clicked == 1


def test_bounded_values_keep_the_smallest_hashes_of_the_union() -> None:
    settings = parse(
        {
            "dimensions": [{"name": "variant", "values": ["N"], "max_values": 1}],
            "metrics": every("variant"),
            "windows": {"lengths": ["1h"]},
        }
    )
    # Hashes ascend from X over B to A: partition 0 keeps B of A and B; the union keeps X.
    log = Log().shown(0, variant="A").shown(0, variant="B").shown(0, variant="N")
    log.shown(0, variant="X", p=1).shown(0, variant="X", p=1).shown(0)
    result = log.run(settings)
    shown = {
        name: value(result, "impressions_total", variant=name)
        for name in ("A", "B", "X", "N", "other", "unknown", "all")
    }
    expected = {"A": None, "B": None, "X": 2, "N": 1, "other": 2, "unknown": 1, "all": 6}
    assert shown == expected
    assert value(result, "label_values_capped_total", dimension="variant") == 1


# Windows and formulas -------------------------------------------------------------------------


def test_window_panes() -> None:
    # 5m: panes of 5 s. S = T0 + 300 s sits in pane 60; the window is panes 1..60 after T0.
    log = Log().shown(4999).shown(5000).shown(5 * M).shown(5 * M + 4999, 5 * M)
    log.shown(5 * M + 5000, 5 * M)
    result = log.run()
    assert value(result, "stream_time_seconds") == T0 / 1000 + 300
    assert value(result, "window_impressions", window="5m") == 3


def test_maturity() -> None:
    settings = parse(
        {
            "dimensions": [],
            "windows": {"lengths": ["1h"]},
            "attribution": {"click": "10m", "conversion": "20m"},
            "time": {"max_lateness": "5m", "max_skew": "1m"},
        }
    )
    # panes of a minute; S = 40 min: mature for clicks if end + 15 <= 40, conversions end + 25 <= 40
    log = Log().shown(14 * M).click(14 * M).shown(15 * M).click(15 * M).shown(25 * M).shown(40 * M)
    result = log.run(settings)

    def both(name: str) -> list[int | float | None]:
        return [value(result, name, window="1h", maturity=m) for m in ("mature", "provisional")]

    assert both("window_ctr_attributed_impressions") == [2, 4]
    assert both("window_ctr_attributed_clicked") == [2, 2]
    assert both("ctr_attributed_ratio") == [1.0, 0.5]
    assert both("window_cvr_attributed_clicked") == [1, 2]
    assert both("cvr_attributed_ratio") == [0.0, 0.0]


def test_position_and_expected_clicks() -> None:
    # A shows 1 1 2, B shows 1 2 2 and 60; clicks: A at 1, B at 2, A at 2.
    # position 1: 1 click / 3, position 2: 2 / 3. Expected A: 2/3 + 2/3, B: 1/3 + 4/3.
    log = Log()
    for variant, position in (*zip("AAABBB", (1, 1, 2, 1, 2, 2), strict=True), ("B", 60)):
        log.shown(0, variant=variant, position=position)
    for variant, position in (("A", 1), ("B", 2), ("A", 2)):
        log.click(0, variant=variant, position=position, item_id="elsewhere")
    result = log.run(VARIANT)
    at = {"window": "1h"}
    assert value(result, "coec_ratio", variant="A", **at) == 2 / (4 / 3)
    assert value(result, "window_coec_expected_clicks", variant="B", **at) == 5 / 3
    assert value(result, "coec_ratio", variant="all", **at) == 1.0
    assert value(result, "ctr_position_ratio", variant="A", position="1", **at) == 0.5
    assert value(result, "ctr_position_ratio", variant="B", position="other", **at) == 0.0


def test_list_positions_are_given_only_if_no_element_has_one() -> None:
    log = Log().shown(0, items=[{"item_id": "a"}, {"item_id": "b"}])
    log.shown(0, items=[{"item_id": "c", "position": 7}, {"item_id": "d"}])
    result = log.run()
    at = {"window": "1h"}
    shown = [value(result, "window_position_impressions", position=p, **at) for p in "1278"]
    assert shown == [1, 1, 1, None]


def test_money_and_dwell() -> None:
    log = Log().shown(0).click(0)
    for amount in (0.1, 0.2, 0.0000005):  # half a micro rounds to even
        log.bought(0, value=amount)
    log.bought(0)
    for dwell_ms in range(1, 10):
        log.click(0, dwell_ms=dwell_ms * 1000)
    log.click(0, start_ts=T0, end_ts=T0 + 10_000, feedback="unheard_of")
    result = log.run()
    at = {"window": "1h"}
    assert value(result, "conversion_value_total") == 0.3  # without dimensions all is settled
    assert value(result, "window_conversion_value", **at) == 0.3
    assert value(result, "conversion_value_per_click", **at) == 0.03
    assert value(result, "conversion_value_per_impression", **at) == 0.3
    assert value(result, "cvr_ratio", **at) == 0.4
    assert value(result, "window_dwells", **at) == 10
    assert value(result, "dwell_mean_seconds", **at) == 5.5
    quantiles = [
        value(result, "window_dwell_seconds", quantile=q, **at) for q in ("0.5", "0.9", "0.99")
    ]
    assert quantiles == [5.0, 9.0, 10.0]


def test_an_empty_log_has_counters_only() -> None:
    result = Log().run()
    assert value(result, "events_total", topic="clicks") == 0
    assert value(result, "stream_time_seconds") is None
    assert value(result, "identity_exact") == 1
    assert not any("window" in dict(labels) for _, labels in result.readings)
