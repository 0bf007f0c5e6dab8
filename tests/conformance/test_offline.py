"""``streamer.evaluate`` has the values of trec_eval, ranx, Jurity and RecTools."""

from __future__ import annotations

from itertools import product

import pytest

from streamer.library.evaluation import evaluate
from tests.conformance.offline import COMPARISONS, OfflineComparison, frames, ours
from tests.conformance.offline_log import log
from tests.support.all_cases import hold_for_all

UNIT = 1e-9


def has_the_same_value(of: OfflineComparison, kind: str) -> None:
    if kind in of.kinds:
        value = ours(kind).value(of.asked)
        assert value == pytest.approx(of.value(kind), abs=UNIT)
        assert value > 0.1


def test_libraries_have_the_same_values() -> None:
    hold_for_all(
        product(COMPARISONS, ("binary", "graded")),
        lambda case: has_the_same_value(*case),
        lambda case: f"{case[0].library} {case[0].function}, {case[1]}",
        at_least=50,
    )


def test_the_log_has_what_libraries_treat_differently() -> None:
    shown, clicked = log("binary")
    pairs = {(user, item) for user, item, _ in shown}
    users = {user for user, _, _ in shown}
    assert sum((user, item) not in pairs for user, item, _ in clicked) > 100
    assert 10 < len(users - {user for user, _, _ in clicked}) < 100
    counted = evaluate(*frames("binary"), ["recall@5", "ndcg@5", "map@5"], relevant="shown")
    for name in ("recall@5", "ndcg@5"):
        whole, of_shown = ours("binary").value(name), counted.value(name)
        assert of_shown > whole + 0.05
