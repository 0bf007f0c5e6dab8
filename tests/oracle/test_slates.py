"""The oracle: which shown items make a slate, in which order, and their grades, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamer.settings.load import parse
from streamer.settings.model import Settings

from .acceptance import accept
from .joining import join
from .oracle import OracleResult
from .slates import Slate, slates_of
from .timeline import PLAIN, T0, VARIANT, H, Log, M, S, value

R: dict[str, Any] = {"request_id": "r"}
HOUR = {"window": "1h"}
GRADED = parse(
    {
        "dimensions": [],
        "windows": {"lengths": ["1h"]},
        "metrics": {"feedback": {"like": 1.5, "star": 5.0, "skim": 0.0, "conversion": 3.0}},
    }
)
"""A click has no gain here."""
DETAILED = parse(
    {
        "dimensions": [{"name": "variant"}],
        "windows": {"lengths": ["5m", "24h"]},
        "metrics": {
            "k": [1, 3, 1000],
            "feedback": {"click": 1.0, "like": 2.5, "skim": 0.0, "conversion": 4.0},
            "conventions": {
                "precision_ratio": ["shown"],
                "map_ratio": ["jurity", "primer"],
                "mar_ratio": ["jurity", "primer"],
                "ndcg_ratio": ["jurity", "exponential"],
                "kendall_tau": ["tau_b"],
            },
        },
    }
)
"""All that slates are worth."""
DAY = parse(
    {
        "dimensions": [],
        "windows": {"lengths": ["24h"]},
        "metrics": {"k": [1, 5], "feedback": {"click": 1.0, "conversion": 5.0}},
    }
)


def slates(log: Log, settings: Settings = PLAIN) -> list[Slate]:
    """Those of the oracle; core and oracle read the same of them."""
    log.run(settings)
    log.run(DETAILED)
    return slates_of(join(accept(log.records, settings), settings), settings)


def orders(log: Log, settings: Settings = PLAIN) -> list[str]:
    """The item ids of each slate, rank 1 first; slates in the order of the log."""
    return ["".join(m.item_id for m in slate.members) for slate in slates(log, settings)]


def grades(log: Log, settings: Settings = GRADED) -> list[tuple[float, ...]]:
    return [slate.grades for slate in slates(log, settings)]


def listed(items: str, **fields: Any) -> list[dict[str, Any]]:
    """Elements of ``items``; a field's list gives each element its own."""
    return [
        {"item_id": item, **{name: values[i] for name, values in fields.items()}}
        for i, item in enumerate(items)
    ]


# Which items ----------------------------------------------------------------------------------


def test_one_request_of_one_user_is_a_slate() -> None:
    log = Log().shown(0, item_id="a", **R).shown(1, item_id="b", **R)
    log.shown(2, item_id="c", request_id="q").shown(3, item_id="d", user_id="v", **R)
    log.shown(4, item_id="e", p=1, **R).shown(5, items=listed("fg"), **R)
    assert sorted(orders(log)) == ["c", "d", "e", "fgab"]  # those of the list have positions


def test_a_list_without_a_request_is_its_own_and_a_single_item_is_none() -> None:
    log = Log().shown(0, items=listed("ab")).shown(0, items=listed("ba")).shown(0, item_id="c")
    assert orders(log) == ["ab", "ba"]


def test_repeats_are_not_in_it() -> None:
    log = Log().shown(0, items=listed("aba", position=[3, 2, 1]), **R)
    log.shown(1 * M, item_id="a", position=1, **R).shown(1 * M, items=listed("cc"))
    assert orders(log) == ["ba", "c"]


def test_a_request_that_comes_back_late_opens_another_slate() -> None:
    # 30 + 60 + 5 minutes after a the first slate still takes x, and a again is a repeat. c opens
    # the second one, which shows b and a again.
    log = Log().shown(0, item_id="a", **R).shown(30 * M, item_id="b", **R)
    log.shown(95 * M, item_id="x", **R).shown(95 * M, item_id="a", **R)
    log.shown(95 * M + 1, item_id="c", **R).shown(100 * M, item_id="b", **R)
    log.shown(100 * M, item_id="a", **R).shown(100 * M, item_id="d", **R)
    assert orders(log) == ["abx", "cbad"]


def test_the_dedup_window_is_measured_by_arrival() -> None:
    # shown 35 minutes apart, or so; reaching the log 95 minutes apart, or 1 ms more
    log = Log().shown(5 * M, 0, item_id="a", **R).shown(40 * M, 95 * M, item_id="b", **R)
    assert orders(log) == ["ab"]
    log = Log().shown(5 * M, 0, item_id="a", **R).shown(40 * M, 95 * M + 1, item_id="b", **R)
    assert orders(log) == ["a", "b"]


def test_a_slate_has_a_thousand_members_at_most() -> None:
    log = Log().shown(0, item_id="first", position=10_000, **R)
    for start in (0, 600):
        items = [{"item_id": f"i{start + i}", "position": start + i + 1} for i in range(600)]
        log.shown(1, items=items, **R)
    log.shown(0, item_id="best", position=1, **R).click(2, item_id="best", **R)
    (slate,) = slates(log)
    assert len(slate.members) == 1000
    assert [m.item_id for m in slate.members[-2:]] == ["i998", "first"]
    assert not any(slate.grades)
    result = log.run()
    labels = {"maturity": "provisional", **HOUR}
    assert value(result, "window_slates", over="all", **labels) == 1
    assert value(result, "window_ctr_attributed_clicked", **labels) == 1
    assert value(result, "window_slates", over="engaged", **labels) is None


# Their order ----------------------------------------------------------------------------------


def test_positions_come_first_then_time_then_place_in_the_log() -> None:
    log = Log().shown(5, item_id="f", **R).shown(3, item_id="e", **R)
    log.shown(9, item_id="c", position=7, **R).shown(8, item_id="b", position=7, **R)
    log.shown(8, item_id="d", position=7, **R).shown(20, item_id="a", position=2, **R)
    log.shown(5, item_id="g", **R)
    assert orders(log) == ["abdcefg"]
    log = Log().shown(0, items=listed("abcd", position=[9, None, 3, None]), **R)
    assert orders(log) == ["cabd"]
    log = Log().shown(0, items=listed("abc", position=[4, 4, 4]), **R)
    assert orders(log) == ["abc"]


def test_the_rank_is_the_place_and_not_the_position() -> None:
    log = Log().shown(0, items=listed("ab", position=[40, 90]), **R).click(1, item_id="b", **R)
    labels = {"maturity": "provisional", "over": "all", **HOUR}
    assert value(log.run(), "mrr", **labels) == 0.5


def placed(result: OracleResult, window: str, **labels: str) -> int | float | None:
    return value(
        result, "window_slates", over="all", maturity="provisional", window=window, **labels
    )


def test_time_and_dimensions_are_those_of_the_earliest_member() -> None:
    log = Log().shown(10 * M, item_id="a", variant="A", **R).shown(69 * M + 59 * S)
    assert placed(log.run(VARIANT), "1h", variant="A") == 1
    # minute 70: the panes from minute 11 on are in the window
    log.shown(11 * M - 1, item_id="b", variant="B", **R).shown(70 * M)
    assert placed(log.run(VARIANT), "1h", variant="all") is None
    log = Log().shown(11 * M, item_id="a", variant="A", **R).shown(70 * M)
    assert placed(log.run(VARIANT), "1h", variant="A") == 1
    log.shown(11 * M, item_id="b", variant="B", **R)  # as early, later in the log
    assert placed(log.run(VARIANT), "1h", variant="B") is None
    log = Log().shown(12 * M, item_id="a", variant="A", **R).shown(70 * M)
    log.shown(11 * M, 70 * M, item_id="b", variant="B", **R)  # arrives last, was first
    result = log.run(VARIANT)
    assert placed(result, "1h", variant="A") is None
    assert placed(result, "1h", variant="B") == 1
    log.shown(11 * M - 1, 70 * M, item_id="c", variant="B", **R)  # out of the window
    assert placed(log.run(VARIANT), "1h", variant="all") is None


def test_what_is_dated_beyond_stream_time_is_not_yet_in_the_window() -> None:
    log = Log().shown(0, item_id="a", **R).shown(4 * M, 0, item_id="b", request_id="q")
    assert placed(log.run(), "1h") == 1
    log.shown(4 * M, item_id="x")
    assert placed(log.run(), "1h") == 2


# Their grades ---------------------------------------------------------------------------------


def two(**fields: Any) -> Log:
    return Log().shown(0, items=listed("ab"), **{**R, **fields})


def test_the_largest_gain_of_what_was_attributed() -> None:
    log = two().click(1, item_id="b", feedback="like", **R)
    assert grades(log) == [(0.0, 1.5)]
    log.click(2, item_id="b", feedback="star", **R).click(3, item_id="b", feedback="like", **R)
    assert grades(log) == [(0.0, 5.0)]
    log.click(2, item_id="a", feedback="skim", **R).click(2, item_id="a", **R)
    log.click(2, item_id="a", feedback="share", **R)  # not configured
    assert grades(log) == [(0.0, 5.0)]
    assert [[m.row.clicked for m in s.members] for s in slates(log, GRADED)] == [[True, False]]


def test_a_conversion_grades_where_it_has_a_gain() -> None:
    log = two().bought(1, item_id="b", **R)
    assert grades(log) == [(0.0, 0.0)]  # nothing to build on
    log.click(1, item_id="b", feedback="skim", **R)
    assert grades(log) == [(0.0, 3.0)]
    assert grades(log, PLAIN) == [(0.0, 0.0)]
    log.click(1, item_id="b", feedback="conversion", **R)  # no feedback of the clicks topic
    assert grades(log, PLAIN) == [(0.0, 0.0)]
    log.click(1, item_id="b", feedback="star", **R)
    assert grades(log) == [(0.0, 5.0)]


def test_an_impression_that_arrives_after_its_click() -> None:
    log = Log().shown(0, item_id="a", **R).click(2, item_id="b", **R).shown(1, 5, item_id="b", **R)
    assert grades(log, PLAIN) == [(0.0, 1.0)]


def test_feedback_moves_to_a_newer_showing_in_another_slate() -> None:
    log = two().click(9, item_id="a", feedback="star")
    assert grades(log) == [(5.0, 0.0)]
    log.shown(8, 20, items=listed("a"), request_id="q")
    assert grades(log) == [(0.0, 0.0), (5.0,)]


def test_a_duplicate_changes_nothing() -> None:
    log = two(event_id="e").click(1, item_id="a", feedback="star", event_id="f", **R)
    log.shown(0, items=listed("ab"), event_id="e", **R)
    log.click(1, item_id="b", feedback="star", event_id="f", **R)
    assert grades(log) == [(5.0, 0.0)]


def test_feedback_on_what_was_not_shown_is_unattributed() -> None:
    log = two().click(1, item_id="a", **R).click(1, item_id="z", **R)
    log.raw("clicks", b"{", 70 * M)  # until nothing can come any more
    result = log.run()
    assert value(result, "unattributed_total", topic="clicks") == 1
    log = two().click(1, item_id="a", **R).click(1, item_id="z", **R)
    labels = {"maturity": "provisional", "over": "engaged", "k": "10", **HOUR}
    assert value(log.run(), "recall_ratio", **labels) == 1.0


# What is reported beside the items ----------------------------------------------------------------


def test_scores_are_those_of_the_elements() -> None:
    log = Log().shown(0, items=listed("ab", score=[0.25, None]), score=7, **R)
    log.shown(0, item_id="c", score=-3, **R)
    (slate,) = slates(log)
    assert {m.item_id: m.row.shown.score for m in slate.members} == {"a": 0.25, "b": None, "c": -3}


def test_reference_and_held_out_item_are_those_of_the_earliest_member_that_has_them() -> None:
    log = Log().shown(5, item_id="a", held_out="z", reference=["c", "c", "a"], **R)
    log.shown(3, item_id="b", held_out="a", **R).shown(9, item_id="c", reference=["c"], **R)
    log.shown(1, item_id="d", **R)
    (slate,) = slates(log)
    assert slate.held_out == "a"
    assert slate.held_out_rank == 3  # d, b, a, c by time
    assert slate.reference == ("c", "a")


def test_without_them_it_is_neither_sampled_nor_compared() -> None:
    (slate,) = slates(Log().shown(0, items=listed("ab"), reference=None, held_out=None))
    assert slate.held_out is None
    assert not slate.reference


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"reference": []}, "reference"),
        ({"reference": ["a"] * 1001}, "reference"),
        ({"reference": ["a", "i" * 513]}, "reference"),
        ({"reference": ["a", None]}, "reference"),
        ({"reference": "a"}, "reference"),
        ({"held_out": 1.5}, "held_out"),
        ({"held_out": ["a"]}, "held_out"),
        ({"score": 1_000_000.1}, "score"),
        ({"score": -1_000_001}, "score"),
        ({"items": listed("a", score=[1e7])}, "items"),
        ({"reference": ["a"] * 1000, "held_out": "h" * 512, "score": -1_000_000}, None),
    ],
)
def test_bounds(fields: dict[str, Any], reason: str | None) -> None:
    result = Log().shown(0, **fields).run()
    assert [r[3] for r in result.rejects] == ([] if reason is None else [reason])


def test_a_name_that_is_said_twice() -> None:
    start = b'{"ts":%d,"user_id":"u","item_id":"a",' % T0
    log = Log().raw("impressions", start + b'"reference":[1.5],"reference":["b"]}', 0)
    log.raw("impressions", start + b'"held_out":true,"held_out":"b"}', 0)
    log.raw("impressions", start + b'"reference":null,"reference":["b"]}', 0)
    assert [r[2:] for r in log.run().rejects] == [(0, "reference"), (1, "held_out")]


# However they come ----------------------------------------------------------------------------

REUSE_MS = 95 * M
"""From then on a request id opens another slate: click + lateness + skew."""


def scored(items: str, first: int = 1, **scores: float) -> list[dict[str, Any]]:
    return [
        {"item_id": item, "position": first + i, "score": scores.get(item, i % 3)}
        for i, item in enumerate(items)
    ]


def any_order() -> Log:
    """Single members, with and without positions, the first one last, and a click in between."""
    log = Log().shown(9, item_id="a", position=2, variant="A", **R)
    log.click(10, item_id="c", **R).shown(8, item_id="b", variant="B", score=1, **R)
    log.shown(5, 20 * M, item_id="c", position=2, score=1, **R)
    return log.shown(-10 * M, 21 * M, item_id="d", position=1, variant="C", score=0.5, **R)


def reused() -> Log:
    """A request used again within its slate's time and after it, with repeats."""
    log = Log().shown(0, items=scored("ab"), **R).click(1, item_id="b", **R)
    log.shown(REUSE_MS, items=scored("cb", first=3), **R).click(REUSE_MS + 1, item_id="c", **R)
    log.shown(REUSE_MS + 1, items=scored("da"), **R).click(REUSE_MS + 1, item_id="d", **R)
    return log.click(REUSE_MS + 2, item_id="a", feedback="like", **R)


def risen() -> Log:
    """Grades that rise, by a conversion on feedback that has no gain, too; and duplicates."""
    log = Log().shown(0, items=scored("abc", c=9), event_id="e", **R)
    log.click(1, item_id="b", feedback="skim", **R).bought(40 * M, item_id="b", **R)
    log.click(1, item_id="c", event_id="f", **R).click(2, item_id="c", feedback="like", **R)
    log.click(2, item_id="a", event_id="f", **R).shown(0, items=scored("abc"), event_id="e", **R)
    return log.shown(50 * M).shown(22 * 60 * M).click(22 * 60 * M)


def bought_late() -> Log:
    """Conversions hours after the impressions left; what they build on has a gain, or none."""
    log = Log()
    for kind in ("skim", "like"):
        named: dict[str, Any] = {"request_id": kind}
        log.shown(0, items=scored("abc"), **named).shown(1, item_id="d", score=2, **named)
        log.click(5 * M, item_id="b", feedback=kind, **named)
    log.shown(200 * M, user_id="v").click(200 * M, user_id="v")
    for kind in ("skim", "like"):
        log.bought(190 * M, 200 * M, item_id="b", request_id=kind)
    return log


def moved() -> Log:
    """Feedback without a request follows the newest showing, into another slate and away again."""
    log = Log().shown(0, items=scored("ab"), **R).click(9 * M, item_id="a", feedback="like")
    log.bought(10 * M, item_id="a")
    log.shown(5 * M, 20 * M, items=scored("ca"), request_id="q")
    return log.shown(8 * M, 21 * M, item_id="a")


def probed() -> Log:
    """Held-out items and brute-force lists, also of single members: on the first one only, on a
    later one only, and on members that disagree, of which the earliest comes last."""
    log = Log().shown(0, items=scored("abcdefghijklm"), held_out="k", reference=["b", "b", "a"])
    log.shown(0, items=scored("abcdefghijklm"), held_out="j").shown(0, items=scored("a"))
    log.shown(0, items=scored("ab"), reference=[f"i{i}" for i in range(999)] + ["a"])
    for item, fields in (("a", {}), ("b", {"held_out": "b"}), ("c", {"reference": ["x", "c"]})):
        log.shown(1, item_id=item, **fields, **R)
    log.shown(-M, 2, item_id="z", position=1, held_out="z", **R)
    both: dict[str, Any] = {"held_out": "i8", "reference": ["i7", "i8"]}
    requests: dict[str, Any] = {"first": (both, {}), "later": ({}, both), "none": ({}, {})}
    for request, fields in requests.items():
        for i, own in enumerate(fields):
            log.shown(3 + i, item_id=f"i{7 + i}", request_id=request, position=i + 1, **own)
    log.click(20, item_id="i8", request_id="first").bought(40 * M, item_id="i8", request_id="first")
    log.shown(4 * M, item_id="i8", request_id="moved", **both)
    log.click(4 * M + 1, item_id="i8", request_id="moved")
    log.shown(4 * M + 2, item_id="i9", request_id="moved", held_out="i9", reference=["i9"])
    early: dict[str, Any] = {"held_out": "i7", "reference": ["x", "i7", "x"]}
    return log.shown(-2 * M, 50 * M, item_id="i7", request_id="moved", **early)


@pytest.mark.parametrize("make", [any_order, reused, risen, bought_late, moved, probed])
def test_core_and_oracle_read_the_same(make: Callable[[], Log]) -> None:
    result = make().run(DETAILED)
    assert any(name == "streamer_window_slates" for name, _ in result.readings)


def provisional(log: Log, name: str, settings: Settings = PLAIN, **labels: str) -> Any:
    """A metric of the engaged slates of the last hours."""
    at = {"window": "24h", "maturity": "provisional", "over": "engaged", **labels}
    return value(log.run(settings), name, **at)


def test_a_slate_spread_over_time_is_compared_as_a_whole() -> None:
    """Its first member could leave long before the last."""
    log = two().click(S, item_id="b", **R).shown(85 * M, item_id="c", **R)
    for minute in range(86, 114, 2):  # clocks go on, others come and go
        log.shown(minute * M, user_id="v").click(minute * M, user_id="v")
    log.click(114 * M, item_id="c", **R).shown(115 * M, user_id="v")
    assert provisional(log, "recall_ratio", DAY, k="1") == 0.0
    assert provisional(log, "recall_ratio", DAY, k="5") == 1.0
    assert provisional(log, "mrr", DAY) == 0.5


def test_conversions_grade_slates_whose_impressions_are_long_gone() -> None:
    log = Log().shown(0, items=listed("abc"), **R).click(S, item_id="b", **R)
    log.shown(0, items=listed("de"), request_id="q").click(2 * S, item_id="e", request_id="q")
    for hour in range(1, 8):
        log.shown(hour * H, user_id="v").click(hour * H, user_id="v")
    assert provisional(log, "cg", DAY, k="5") == 1.0
    log.bought(7 * H + M, item_id="b", value=3, **R).bought(8 * H, item_id="e")
    assert provisional(log, "cg", DAY, k="5") == 5.0


def test_feedback_that_leaves_a_slate_finds_it_whole() -> None:
    log = two().shown(95 * M, item_id="c", **R).shown(101 * M, item_id="d")
    log.click(105 * M, 106 * M, item_id="c")
    assert provisional(log, "window_slates", DAY) == 1
    log.shown(104 * M, 111 * M, item_id="c").click(5 * H, item_id="z", user_id="v")
    assert provisional(log, "window_slates", DAY) is None
    assert provisional(log, "mrr", DAY, over="all") == 0.0
