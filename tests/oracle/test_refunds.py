"""Money given back: in part, by a value below 0, or with the whole order."""

from __future__ import annotations

from typing import Any

from streamer.settings.load import parse

from .oracle import OracleResult
from .timeline import VARIANT as BY_VARIANT
from .timeline import H, Log, M, S, joins, value

HOUR: dict[str, Any] = {"window": "1h"}
SUMS = ("window_conversions", "window_conversion_value", "window_refunds", "window_refund_value")
TOTALS = ("conversions_total", "conversion_value_total", "refunds_total", "refund_value_total")


def bought(**order: Any) -> Log:
    """A click on x, which A showed, and an order."""
    log = Log().shown(0, variant="A").click(S)
    return log.bought(2 * S, **{"event_id": "o", "value": 50, **order})


def sums(result: OracleResult, names: tuple[str, ...] = SUMS, **labels: str) -> list[Any]:
    return [value(result, name, **labels) for name in names]


def test_a_value_below_0_gives_money_back() -> None:
    result = bought().bought(3 * S, value=-20, event_id="o").run(BY_VARIANT)
    assert sums(result, variant="A", **HOUR) == [1, 30, 1, 20]
    assert value(result, "order_value_mean", variant="A", **HOUR) == 30
    assert joins(result, "conversions") == [(0, 0), (0, 0)]
    later = bought().bought(3 * S, value=-20, event_id="o").shown(2 * H, variant="A").click(2 * H)
    assert sums(later.run(BY_VARIANT), TOTALS, variant="A") == [1, 50, 1, 20]


def test_a_refund_takes_its_order_back() -> None:
    log = bought().bought(3 * S, type="refund", value=50, event_id="o")
    result = log.run(BY_VARIANT)
    assert sums(result, variant="A", **HOUR) == [None, 0, 1, 50]
    assert value(result, "cvr_ratio", variant="A", **HOUR) == 0
    attributed = {"variant": "A", "maturity": "provisional", **HOUR}
    assert value(result, "cvr_attributed_ratio", **attributed) == 0
    log.shown(2 * H, variant="A").click(2 * H)
    assert sums(log.run(BY_VARIANT), TOTALS, variant="A") == [1, 50, 1, 50]


def test_it_needs_no_item_where_the_order_has_lines() -> None:
    items = [{"item_id": "x", "value": 30}, {"item_id": "y", "value": 20}]
    log = Log().shown(0, variant="A").click(S).bought(2 * S, event_id="o", items=items)
    log.bought(3 * S, type="refund", value=-50, event_id="o", item_id=None)
    result = log.run(BY_VARIANT)
    assert sums(result, variant="A", **HOUR)[1:] == [-20, 1, 50]
    assert sums(result, variant="all", **HOUR) == [None, 0, 1, 50]


def test_a_refund_of_lines_leaves_the_order_until_all_of_its_value_is_given_back() -> None:
    items: list[dict[str, Any]] = [
        {"item_id": "x", "value": 30},
        {"item_id": "y", "value": 20},
    ]
    for given_back, orders in ((items[:1], 1), (items, None)):
        log = Log().shown(0, variant="A").click(S).bought(2 * S, event_id="o", items=items)
        log.bought(3 * S, type="refund", event_id="o", item_id=None, items=given_back)
        result = log.run(BY_VARIANT)
        amount = sum(line["value"] for line in given_back)
        assert sums(result, variant="all", **HOUR) == [orders, 50 - amount, 1, amount]


def test_a_conversion_below_0_takes_its_order_back_if_it_is_all_of_its_value() -> None:
    for amount, orders in ((-49.99, 1), (-50, None), (-60, None)):
        result = bought().bought(3 * S, value=amount, event_id="o").run(BY_VARIANT)
        assert value(result, "window_conversions", variant="A", **HOUR) == orders


def test_lines_that_are_more_than_64_bits_hold_are_added_up() -> None:
    items = [{"item_id": f"i{n}", "value": 1e12 if n < 12 else -1e12} for n in range(22)]
    result = Log().bought(S, event_id="o", items=items).run(BY_VARIANT)
    assert sums(result, variant="all", **HOUR)[:2] == [1, 2e12]


def test_a_later_slate_does_not_get_the_refund_of_an_earlier_order() -> None:
    log = bought().shown(M, variant="B").click(2 * M)
    result = log.bought(3 * M, value=-50, event_id="o").run(BY_VARIANT)
    assert joins(result, "conversions") == [(0, 0), (0, 0)]
    assert value(result, "window_conversion_value", variant="A", **HOUR) == 0
    assert value(result, "window_conversion_value", variant="B", **HOUR) is None


def test_a_refund_of_an_unknown_order_joins_nothing() -> None:
    for order in ("other", None):
        log = bought().bought(3 * S, type="refund", value=50, event_id=order)
        result = log.run(BY_VARIANT)
        assert joins(result, "conversions") == [(0, 0), None]
        assert value(result, "window_conversion_value", variant="A", **HOUR) == 50
        assert sums(result, variant="all", **HOUR) == [None, 0, 1, 50]


def test_it_joins_within_the_horizon_and_counts_at_its_own_time() -> None:
    settings = parse(
        {
            "dimensions": [{"name": "variant"}],
            "windows": {"lengths": ["1h"]},
            "attribution": {"conversion": "2h"},
        }
    )
    for after_ms, joined in ((2 * H, (0, 0)), (2 * H + 1, None)):
        log = bought().bought(after_ms, value=-50, event_id="o")
        result = log.run(settings)
        assert joins(result, "conversions") == [(0, 0), joined]
        assert value(result, "window_conversion_value", variant="all", **HOUR) == -50


def test_copies_have_the_order_the_item_and_the_amount() -> None:
    log = bought()
    for amount in (-20, -20, -10):
        log.bought(3 * S, value=amount, event_id="o")
    log.bought(3 * S, type="refund", value=20, event_id="o").bought(3 * S, value=50, event_id="o")
    result = log.run(BY_VARIANT)
    assert [offset for _, _, offset in result.duplicates] == [2, 4, 5]


def test_users_count_net_and_both_ends_are_capped() -> None:
    document = {
        "dimensions": [{"name": "variant"}],
        "windows": {"lengths": ["1h"]},
        "experiments": [
            {
                "name": "e",
                "dimension": "variant",
                "control": "A",
                "split": {"A": 1, "B": 1},
                "start": "2023-11-14",
                "metrics": [
                    {"name": "conversion_value_per_user", "cap": 30},
                    {"name": "conversions_per_user"},
                    {"name": "user_conversion_ratio"},
                ],
            }
        ],
    }
    log = Log()
    for number, (variant, amounts) in enumerate(
        [("A", (50, -20)), ("A", (100,)), ("B", (-100,)), ("B", (10, -10)), ("B", (0.5,))]
    ):
        who: dict[str, Any] = {"user_id": f"u{number}", "variant": variant}
        log.shown(0, **who)
        for amount in amounts:
            log.bought(S, **who, value=amount)
        log.bought(2 * S, type="refund", value=1, **who)
    for cap in (30, 0.5):
        document["experiments"][0]["metrics"][0]["cap"] = cap  # type: ignore[index]
        settings = parse(document)
        result = log.run(settings)
        log.truth(settings)
        labels = {"experiment": "e", "metric": "user_conversion_ratio", "arm": "B"}
        assert value(result, "experiment_value", **labels) == 0
