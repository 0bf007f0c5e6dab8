"""Worked examples of the sources, through streamer and through libraries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.conformance.cases import Case, graded
from tests.conformance.comparisons import COMPARISONS, values_of
from tests.conformance.ours import Value, ours, populations


@dataclass(frozen=True)
class Example:
    """``printed``: what the source says; ``theirs``: library → value."""

    name: str
    printed: str
    streamer: float
    theirs: dict[str, float]


def examples() -> list[Example]:
    """Grades are of the items in the order shown."""
    dcg = (graded("a", 0, 5, 1, 4, 2),)
    lists = [(0, 0, 1), (1, 0, 0), (0, 0, 1), (0, 0, 0)]
    first = tuple(graded(f"l{i}", *grades) for i, grades in enumerate(lists))
    return [
        _example("DCG of grades 0 5 1 4 2", "6.151", Case("graded", dcg, (5,)), Value("dcg", 5)),
        _example("its nDCG", "0.6869", Case("graded", dcg, (5,)), Value("ndcg_ratio", 5)),
        _example(
            "MRR of lists with the first hit at 3, 1, 3, and none",
            "0.417",
            Case("binary", first, (3,)),
            Value("mrr"),
        ),
        _example(
            "FCP of the list B, C, A where A > B > C",
            "0.33",
            Case("graded", (graded("f", 2, 1, 4),), (3,)),
            Value("fcp_ratio"),
        ),
        _example(
            "FCP of the list B, A, C where A > B > C",
            "0.33",
            Case("graded", (graded("f", 2, 4, 1),), (3,)),
            Value("fcp_ratio"),
        ),
    ]


def _example(name: str, printed: str, case: Case, value: Value) -> Example:
    theirs = {}
    for comparison in COMPARISONS:
        is_asked = (comparison.metric, comparison.convention) == (value.metric, value.convention)
        if is_asked and case.kind in comparison.kinds:
            found = dict(values_of(comparison, case))[value]
            theirs[comparison.package] = float(np.mean(list(found.values())))
    mean = ours(case).mean[value, populations(value.metric)[0]]
    return Example(name, printed, mean, theirs)
