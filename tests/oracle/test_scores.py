"""Scores in the oracle: values by hand; and the exact AUC, which bins may miss by their bound."""

from __future__ import annotations

import math
from itertools import product

import pytest

from tests.oracle.acceptance import accept
from tests.oracle.joining import join
from tests.oracle.scores import Scored, amount, by_bin, correlation, square, thresholds
from tests.oracle.span import span_of
from tests.support.agreement import SETTINGS, log_records, read_engines, run_engines, to_log
from tests.support.lanes import shortened


@pytest.mark.parametrize(
    ("score", "clicked", "expected"),
    [
        (0.2, True, (1, 1, 200_000_000, 800_000_000, 640_000_000, 1_609_437_912, 1, 1)),
        (0.2, False, (1, 0, 200_000_000, 200_000_000, 40_000_000, 223_143_551, 1, 0)),
        (0, True, (1, 1, 0, 10**9, 10**9, 34_538_776_395, 0, 0)),
        (1, True, (1, 1, 10**9, 0, 0, 0, 1, 1)),
        (1.5, True, (0,) * 8),
        (-0.1, False, (0,) * 8),
    ],
)
def test_amounts(score: float, clicked: bool, expected: tuple[int, ...]) -> None:
    kinds = ("all", "clicked", "sum", "absolute", "squared", "loss", "predicted@0.2", "found@0.2")
    assert tuple(amount(f"scores {k}", Scored(score, clicked)) for k in kinds) == expected


def test_squares_are_rounded_once() -> None:
    assert [square(x) for x in (22_360, 22_361, 10**9)] == [0, 1, 10**9]


def test_bins_of_the_curve() -> None:
    some = [Scored(score, False) for score in (0, 0.1, 0.0999999, 1, 0.95)]
    assert {n: len(its) for n, its in by_bin(some).items()} == {1: 2, 2: 1, 10: 2}


def test_correlation() -> None:
    some = [Scored(0.9, True), Scored(0.5, False), Scored(0.3, True), Scored(0.1, False)]
    assert correlation(some) == pytest.approx(0.075 / math.sqrt(0.0875 * 0.25), rel=1e-12)
    assert correlation([Scored(1 / 3, True), Scored(1 / 3, False)]) is None


def test_thresholds_are_written_as_they_are_set() -> None:
    assert thresholds(SETTINGS["few values"]) == ["0.1", "0.5"]


@pytest.mark.parametrize("seed", shortened([0, 1, 2, 3]))
def test_the_exact_auc_is_within_the_bound(seed: int) -> None:
    settings = SETTINGS["defaults"]
    records = log_records(seed, "defaults", 2500, 1)
    found = read_engines(run_engines(settings, 1, to_log(records), 500))
    verdict = accept(records, settings)
    stream_ms = verdict.stream_time_ms()
    assert stream_ms is not None
    span = span_of("24h", stream_ms, settings)
    rows = [r for r in join(verdict, settings).rows if span.covers(r.event.event_ms)]
    scored = [(r.shown.score, r.clicked) for r in rows if r.shown.score is not None]
    clicked, others = ([s for s, is_so in scored if is_so is wanted] for wanted in (True, False))
    won = sum((a > b) + (a == b) / 2 for a, b in product(clicked, others))
    everything = {"window": "24h", "variant": "all", "surface": "all", "maturity": "provisional"}
    labels = frozenset(everything.items())
    auc, bound = (found[f"streamer_{name}", labels] for name in ("auc_ratio", "auc_error_ratio"))
    assert len(clicked) > 20
    assert abs(auc - won / (len(clicked) * len(others))) <= bound + 1e-12
