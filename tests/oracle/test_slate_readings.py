"""The oracle: means over slates and what goes with them, counted by hand."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from streamer.settings.load import parse
from streamer.settings.model import Settings

from .oracle import OracleResult, run
from .ranking import UNIT
from .slate_readings import standard_error
from .timeline import PLAIN, VARIANT, Log, M, value

HOUR = {"window": "1h"}
PROVISIONAL = {"maturity": "provisional", **HOUR}
ENGAGED = {"over": "engaged", **PROVISIONAL}
ALL = {"over": "all", **PROVISIONAL}
CONVENTIONS = {
    "precision_ratio": ["shown"],
    "map_ratio": ["jurity", "primer"],
    "mar_ratio": ["jurity", "primer"],
    "ndcg_ratio": ["jurity", "exponential"],
    "kendall_tau": ["tau_b"],
}


def made(**metrics: Any) -> Settings:
    """No dimensions, a window of an hour, k = 2."""
    return parse(
        {"dimensions": [], "windows": {"lengths": ["1h"]}, "metrics": {"k": [2], **metrics}}
    )


def five_users() -> Log:
    """The table of conventions: A B C shown to u1, u2 and u5, A to u3; nothing to u4."""
    log = Log()
    for user, shown, liked in (
        *(("u1", "ABC", "BCZ"), ("u2", "ABC", ""), ("u3", "A", "A")),
        *(("u4", "", "X"), ("u5", "ABC", "A")),
    ):
        if shown:
            log.shown(0, items=[{"item_id": item} for item in shown], request_id=user, user_id=user)
        for item in liked:
            log.click(1, item_id=item, request_id=user, user_id=user)
    return log


def of(result: OracleResult, name: str, k: int | None = 2, **labels: str) -> list[float | None]:
    """The mean over engaged slates, and over all."""
    more = labels if k is None else {"k": str(k), **labels}
    found = [value(result, name, **more, **over) for over in (ENGAGED, ALL)]
    return [None if x is None else round(x, 6) for x in found]


# Means ----------------------------------------------------------------------------------------


def test_five_users() -> None:
    # trec_eval has 0.7778 for recall and 0.7222 for MAP, because of Z, which was not shown here.
    result = five_users().run(made(conventions=CONVENTIONS))
    assert [value(result, "window_slates", **over) for over in (ENGAGED, ALL)] == [3, 4]
    assert of(result, "precision_ratio") == [0.5, 0.375]
    assert of(result, "precision_ratio", convention="shown") == [0.666667, 0.5]
    assert of(result, "recall_ratio") == [0.833333, None]
    assert of(result, "hit_ratio") == [1.0, 0.75]
    assert of(result, "mrr", k=None) == of(result, "arhr") == [0.833333, 0.625]
    assert of(result, "map_ratio") == of(result, "map_ratio", convention="jurity") == [0.75, 0.5625]
    assert of(result, "map_ratio", convention="primer") == [0.833333, 0.625]
    assert of(result, "mar_ratio") == [0.75, 0.5625]  # 1/4, 1, 1
    assert of(result, "mar_ratio", convention="primer") == [0.833333, 0.625]
    assert of(result, "cg") == [1.0, 0.75]
    assert of(result, "dcg") == [0.876977, 0.657732]
    assert of(result, "ndcg_ratio") == [0.795618, 0.596713]
    for name in ("jurity", "exponential"):
        assert of(result, "ndcg_ratio", convention=name) == of(result, "ndcg_ratio")


def test_order_is_of_slates_with_different_grades() -> None:
    # u1 0 1 1: two pairs discordant, one equal; u5 1 0 0: two concordant
    result = five_users().run(made(conventions=CONVENTIONS))
    assert value(result, "window_contrasted_slates", **PROVISIONAL) == 2
    assert value(result, "fcp_ratio", **PROVISIONAL) == 0.5
    for name in ("kendall_tau", "spearman_rho"):
        assert value(result, name, **PROVISIONAL) == 0.0
    tau_b = {"convention": "tau_b", **PROVISIONAL}
    assert value(result, "kendall_tau", **tau_b) == 0.0
    # -2/3 and 2/3; -2/√6 and 2/√6
    errors = [value(result, "kendall_tau_stderr", **labels) for labels in (PROVISIONAL, tau_b)]
    assert errors == pytest.approx([2 / 3, 2 / math.sqrt(6)], rel=1e-8)


def test_without_feedback_means_over_all_are_zero_and_the_others_absent() -> None:
    result = Log().shown(0, items=[{"item_id": "a"}, {"item_id": "b"}]).run(made())
    assert of(result, "precision_ratio") == [None, 0.0]
    assert of(result, "mrr", k=None) == [None, 0.0]
    assert of(result, "recall_ratio") == [None, None]
    assert value(result, "window_slates", **ENGAGED) is None
    assert value(result, "window_contrasted_slates", **PROVISIONAL) is None
    for name in ("fcp_ratio", "kendall_tau", "gauc_ratio", "bpr_loss", "hit_sampled_ratio"):
        assert value(result, name, **PROVISIONAL) is None


def test_conventions_are_shown_if_asked_for() -> None:
    result = five_users().run(made())
    assert not any("convention" in dict(labels) for _, labels in result.readings)
    result = five_users().run(made(conventions={"map_ratio": ["primer"]}))
    shown = {(n, dict(x)["convention"]) for n, x in result.readings if "convention" in dict(x)}
    names = ("streamer_map_ratio", "streamer_map_ratio_stderr")
    assert shown == {(name, "primer") for name in names}


@pytest.mark.parametrize("families", [["traffic"], ["ranking"], ["scoring"]])
def test_families(families: list[str]) -> None:
    log = Log().shown(0, items=[{"item_id": "a", "score": 1}, {"item_id": "b", "score": 2}])
    log.shown(0, held_out="x", reference=["x"], request_id="r").click(0, item_id="a")
    result = run(log.records, made(families=families))  # of other families it reads all
    has_ranking, has_scoring = families == ["ranking"], families == ["scoring"]
    for name in ("fcp_ratio", "window_contrasted_slates"):
        assert (value(result, name, **PROVISIONAL) is not None) == has_ranking
    assert (value(result, "window_slates", **ALL) is not None) == has_ranking
    for name in ("window_sampled_slates", "window_reference_slates", "hit_sampled_ratio"):
        assert (value(result, name, **HOUR) is not None) == has_ranking
    for name in ("gauc_ratio", "bpr_loss", "window_gauc_slates", "window_paired_slates"):
        assert (value(result, name, **PROVISIONAL) is not None) == has_scoring


def test_every_series_has_its_labels_and_its_error() -> None:
    log = five_users().shown(0, items=[{"item_id": "a"}], reference=["a"], held_out="a")
    log.shown(0, item_id="b", request_id="q", reference=["a"], held_out="a")
    readings = log.run(made(conventions=CONVENTIONS)).readings
    means = {(n, x) for n, x in readings if (n + "_stderr", x) in readings}
    errors = {(n, x) for n, x in readings if n.endswith("_stderr")}
    assert {(n.removesuffix("_stderr"), x) for n, x in errors} == means
    without_maturity = {n for n, x in means if "maturity" not in dict(x)}
    assert without_maturity == {
        *("streamer_hit_sampled_ratio", "streamer_ndcg_sampled_ratio"),
        "streamer_index_recall_ratio",
    }
    assert {n for n, x in means if "k" in dict(x)} == {
        f"streamer_{name}"
        for name in (
            *("precision_ratio", "recall_ratio", "hit_ratio", "arhr", "map_ratio", "mar_ratio"),
            *("cg", "dcg", "ndcg_ratio", "index_recall_ratio"),
        )
    }


# Scores and probes ----------------------------------------------------------------------------


def scored(log: Log, request: str, scores: str, **clicked: str) -> Log:
    """Items a b c … with these scores ("-" is none); item=kind: what follows."""
    items = [
        {"item_id": item, **({} if text == "-" else {"score": float(text)})}
        for item, text in zip("abcdef", scores.split(), strict=False)
    ]
    log.shown(0, items=items, request_id=request)
    for item, kind in clicked.items():
        log.click(1, item_id=item, request_id=request, feedback=kind)
    return log


def test_scores_of_slates() -> None:
    settings = made(feedback={"click": 0.0, "like": 2.0})
    log = scored(Log(), "p", "3 1 - 2", a="click", b="like", c="like")
    log = scored(log, "q", "1 - 2", c="click", b="click")
    log = scored(log, "r", "1 1", a="click", b="click")
    result = log.run(settings)
    # gauc: p (3 over 1 and 2) 1, q (2 over 1) 1, r has no other; paired: p, b under a and d
    assert value(result, "window_gauc_slates", **PROVISIONAL) == 2
    assert value(result, "gauc_ratio", **PROVISIONAL) == 1.0
    assert value(result, "window_paired_slates", **PROVISIONAL) == 1
    assert value(result, "hinge_loss", **PROVISIONAL) == 2.5
    assert value(result, "margin_loss", **PROVISIONAL) == 1.6
    assert value(result, "margin_loss", maturity="mature", **HOUR) is None
    loss = (math.log1p(math.exp(2)) + math.log1p(math.exp(1))) / 2
    assert value(result, "bpr_loss", **PROVISIONAL) == pytest.approx(loss, abs=1e-9)
    assert value(result, "window_slates", **ENGAGED) == 1


def test_margin_is_a_setting() -> None:
    log = scored(Log(), "p", "3 1", a="click")
    assert value(log.run(made(margin=5)), "margin_loss", **PROVISIONAL) == 3.0
    assert value(log.run(made()), "margin_loss", **PROVISIONAL) == 0.0


def test_held_out_items() -> None:
    items = [{"item_id": f"i{i}"} for i in range(12)]
    log = Log().shown(0, items=items, held_out="i2")
    log.shown(0, items=items, held_out="i10").shown(0, items=items, held_out="gone")
    log.shown(0, items=items)
    result = log.run()
    assert value(result, "window_sampled_slates", **HOUR) == 3
    assert value(result, "hit_sampled_ratio", **HOUR) == pytest.approx(1 / 3)
    assert value(result, "ndcg_sampled_ratio", **HOUR) == pytest.approx(0.5 / 3)


def test_recall_of_an_index() -> None:
    log = Log().shown(0, items=[{"item_id": x} for x in "abc"], reference=["b", "b", "a"])
    log.shown(0, items=[{"item_id": x} for x in "abc"], reference=["c"])
    result = log.run(made(k=[1, 2, 3]))
    assert value(result, "window_reference_slates", **HOUR) == 2
    found = [value(result, "index_recall_ratio", k=k, **HOUR) for k in "123"]
    # the first: b and a, both within the first 2 shown; the second: c is shown third
    assert found == pytest.approx([0.0, 0.5, 1.0])
    assert value(result, "index_recall_ratio", k="1", **PROVISIONAL) is None


# Panes and segments ---------------------------------------------------------------------------

SHORT = {
    "dimensions": [],
    "windows": {"lengths": ["1h"]},
    "attribution": {"click": "10m", "conversion": "20m"},
    "time": {"max_lateness": "5m", "max_skew": "1m"},
}


@pytest.mark.parametrize(
    ("feedback", "mature"),
    [
        ({"click": 1.0}, [3, 2]),  # panes of a minute: end + 10 + 5 <= 40
        ({"click": 1.0, "conversion": 0.0}, [3, 2]),
        ({"click": 1.0, "conversion": 2.0}, [1, 1]),  # end + 20 + 5 <= 40
    ],
)
def test_maturity(feedback: dict[str, float], mature: list[int]) -> None:
    log = Log()
    for at, has_click in ((14, True), (15, False), (24, True), (25, True)):
        log.shown(at * M, request_id=f"r{at}")
        if has_click:
            log.click(at * M, request_id=f"r{at}")
    log.shown(40 * M, item_id="single")
    result = log.run(parse({**SHORT, "metrics": {"feedback": feedback}}))
    for over, provisional, matured in (("all", 4, mature[0]), ("engaged", 3, mature[1])):
        labels = {"over": over, **HOUR}
        assert value(result, "window_slates", maturity="provisional", **labels) == provisional
        assert value(result, "window_slates", maturity="mature", **labels) == matured
    assert value(result, "mrr", maturity="mature", over="all", **HOUR) == pytest.approx(
        mature[1] / mature[0]
    )


def test_a_window_without_mature_slates() -> None:
    labels = {"over": "all", "maturity": "mature", **HOUR}
    result = five_users().run(made())
    assert value(result, "window_slates", **labels) is None
    assert value(result, "mrr", **labels) is None


def test_segments_add_over_partitions() -> None:
    log = Log()
    for p, variant, clicked in ((0, "A", "a"), (1, "A", "b"), (1, "B", "b")):
        request = f"{p}{variant}"
        items = [{"item_id": "a"}, {"item_id": "b"}]
        log.shown(0, items=items, request_id=request, variant=variant, p=p)
        # the click's own variant does not matter
        log.click(1, item_id=clicked, request_id=request, variant="C", p=p)
    result = log.run(VARIANT)
    found = {v: value(result, "mrr", variant=v, **ALL) for v in ("A", "B", "C", "all")}
    assert found == {"A": 0.75, "B": 0.5, "C": None, "all": pytest.approx(2 / 3)}
    assert value(result, "window_slates", variant="A", **ENGAGED) == 2


# Standard errors ------------------------------------------------------------------------------


def test_error_of_a_mean() -> None:
    values = [0, UNIT, UNIT // 4, 0, -UNIT]
    expected = statistics.stdev(v / UNIT for v in values) / math.sqrt(5)
    assert standard_error(values, 5) == pytest.approx(expected, rel=1e-12)
    assert standard_error([UNIT, UNIT // 4, -UNIT], 5) == pytest.approx(expected, rel=1e-12)
    assert standard_error([7, 7, 7], 3) == 0.0


def test_error_of_large_values_has_no_unit_of_its_own() -> None:
    values = [3 * UNIT, 700_000 * UNIT, 10 * UNIT, 123_456_789]
    expected = statistics.stdev(v / UNIT for v in values) / 2
    assert standard_error(values, 4) == pytest.approx(expected, rel=1e-12)
    assert standard_error([600_000, 700_000], 2) == pytest.approx(5.0e-5, rel=1e-12)


def test_errors_are_shown_from_two_slates_on() -> None:
    log = Log().shown(0, request_id="a").click(1, request_id="a").shown(0, request_id="b")
    result = log.run(PLAIN)
    assert value(result, "mrr_stderr", **ENGAGED) is None
    assert value(result, "mrr_stderr", **ALL) == 0.5
    assert value(result, "dcg_stderr", k="10", **ALL) == pytest.approx(0.5, abs=1e-8)
    assert value(result, "mrr", **ENGAGED) == 1.0
