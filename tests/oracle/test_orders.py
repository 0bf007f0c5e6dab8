"""An order is one conversion, whatever its lines; a record counts once, a line as an item."""

from __future__ import annotations

from streamer.settings.load import parse
from tests.oracle.timeline import H, Log, M, value

HOUR = {"window": "1h"}
LINES = [{"item_id": "x", "value": 10}, {"item_id": "y", "value": 5}, {"item_id": "z"}]


def test_an_order_of_three_lines_is_one_conversion() -> None:
    log = Log().shown(0).click(1000).bought(2 * M, items=LINES)
    result = log.run()
    assert value(result, "cvr_ratio", **HOUR) == 1.0
    assert value(result, "window_conversions", **HOUR) == 1
    assert value(result, "window_conversion_lines", **HOUR) == 3
    assert value(result, "window_conversion_value", **HOUR) == 15.0
    assert value(result, "order_value_mean", **HOUR) == 15.0
    assert value(result, "conversions_total") == 1


def test_an_order_counts_in_the_segment_of_its_first_line_and_lines_in_their_own() -> None:
    log = Log().shown(0, variant="A").click(1000)
    log.shown(0, variant="B", item_id="y").click(1000, item_id="y")
    log.bought(2 * M, items=LINES[:2])
    result = log.run(parse({"dimensions": [{"name": "variant"}], "windows": {"lengths": ["1h"]}}))
    of = {"a": HOUR | {"variant": "A"}, "b": HOUR | {"variant": "B"}}
    assert value(result, "window_conversions", **of["a"]) == 1
    assert value(result, "window_conversions", **of["b"]) is None
    assert value(result, "window_conversion_lines", **of["b"]) == 1
    assert value(result, "window_conversion_value", **of["b"]) == 5.0
    assert value(result, "order_value_mean", **of["b"]) is None


def test_an_order_joins_nothing_only_once() -> None:
    log = Log().shown(0).bought(2 * M, items=LINES)
    for add in (log.shown, log.click, log.bought):
        add(3 * H, user_id="w")
    result = log.run()
    assert value(result, "unattributed_total", topic="conversions") == 1


def test_what_stands_beside_the_lines_counts_with_the_first() -> None:
    parts = {
        "orders": {"kind": "conversions"},
        "lines": {"kind": "lines"},
        "clicks": {"kind": "clicks"},
        "spent": {"kind": "clicks", "field": "dwell_ms"},
    }
    ratios = [{"name": name, "numerator": part} for name, part in parts.items()]
    settings = parse({"dimensions": [], "windows": {"lengths": ["1h"]}, "ratios": ratios})
    log = Log().shown(0, position=7).shown(0, item_id="y")
    log.click(1000, items=["x", "y"], item_id=None, dwell_ms=4000, position=3, request_id=None)
    log.bought(2 * M, items=LINES)
    result = log.run(settings)
    sums = [value(result, "window_ratio_numerator", ratio=name, **HOUR) for name in parts]
    assert sums == [1, len(LINES), 2, 4000]
    assert value(result, "window_clicks", **HOUR) == 2
    assert value(result, "window_dwells", **HOUR) == 1
    assert value(result, "window_position_clicks", position="3", **HOUR) == 1


def test_users_and_experiments_count_orders() -> None:
    experiment = {"name": "e", "control": "A", "split": {"A": 1, "B": 1}, "start": "2023-11-14"}
    metrics = [{"name": "conversions_per_user"}, {"name": "order_value_mean"}]
    document = {"experiments": [experiment | {"dimension": "variant", "metrics": metrics}]}
    log = Log().shown(0, variant="A").click(1000).bought(2 * M, items=LINES)
    truth = log.truth(parse(document))
    (orders,) = {
        (sums.n, sums.x)
        for (_, metric, arm, _), sums in truth.sums.items()
        if (metric, arm) == ("conversions_per_user", "A")
    }
    assert orders == (1, 1)


DAY = 24 * H


def test_an_order_that_is_sent_again_a_day_later_is_one() -> None:
    log = Log().bought(0, event_id="o").bought(DAY, event_id="o").bought(29 * DAY, event_id="o")
    log.bought(29 * DAY + 1, event_id="o", items=["x"], item_id=None)  # a list: another id
    log.bought(31 * DAY, event_id="o")
    result = log.run()
    assert value(result, "duplicates_total", topic="conversions") == 2
    assert value(result, "accepted_total", topic="conversions") == 3
    once_more = Log().click(0, event_id="o").click(2 * H, event_id="o").run()
    assert value(once_more, "duplicates_total", topic="clicks") == 0


def test_rows_of_one_order_are_lines_and_each_counts_once() -> None:
    log = Log()
    for _ in range(2):
        for item in ("x", "y", "z"):
            log.bought(0, event_id="o", item_id=item)
    result = log.run()
    assert value(result, "accepted_total", topic="conversions") == 3
    assert value(result, "duplicates_total", topic="conversions") == 3
