"""The page ``docs/conformance.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from tests.conformance import (
    diversity,
    lists,
    off_policy,
    offline,
    offline_log,
    own_ratios,
    scores,
)
from tests.conformance import libraries as by
from tests.conformance.cases import Case, five_users
from tests.conformance.comparisons import (
    COMPARISONS,
    LIBRARIES,
    members,
    of_random_slates,
    random_cases,
    values_of,
)
from tests.conformance.examples import examples
from tests.conformance.libraries import Values
from tests.conformance.ours import Value, ours

PACKAGES = {
    "trec_eval": "pytrec_eval-terrier",
    "ranx": "ranx",
    "Jurity": "jurity",
    "scikit-learn": "scikit-learn",
    "SciPy": "scipy",
}
_NEGLIGIBLE = 1e-11
"""Smaller differences are those of floating point, which is not alike everywhere."""


def page() -> str:
    """The text of the page."""
    return (
        "".join(
            f"{part}\n"
            for part in (
                _intro(),
                _five_users(),
                _as_they_are(),
                _random(),
                _offline(),
                _scores(),
                _off_policy(),
                _diversity(),
                _ratios(),
                _examples(),
            )
        ).rstrip("\n")
        + "\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def bound(difference: float) -> str:
    """A difference, rounded up to two digits.

    >>> bound(2e-17), bound(4.964e-10)
    ('< 1e-11', '5.0e-10')
    """
    if difference < _NEGLIGIBLE:
        return f"< {_NEGLIGIBLE:.0e}"
    step = 10.0 ** (math.floor(math.log10(difference)) - 1)
    return f"{math.ceil(difference / step) * step:.1e}"


def _shown(value: float) -> str:
    return f"{round(value, 9) + 0.0:.9f}"


def _named(value: Value, over: str = "") -> str:
    labels = {"k": value.k or "", "convention": value.convention, "over": over}
    text = ",".join(f'{name}="{label}"' for name, label in labels.items() if label)
    return f"`{value.metric}{{{text}}}`" if text else f"`{value.metric}`"


def _intro() -> str:
    versions = ", ".join(f"{name} {version(PACKAGES[name])}" for name in LIBRARIES)
    return f"""# Conformance

<!-- Written by `python -m tests.conformance`; do not edit. -->

This page compares every metric of slates with independent libraries, each under the library's
convention. streamer's values come from the whole engine: it replays a log of impressions and
clicks, in single events and in lists, and the readings (`maturity="provisional"`) are compared.
`make check` computes this page again and fails if it is not current; `tests/conformance` has the
bounds.

{versions}; trec_eval is called through pytrec_eval-terrier.

- streamer does not know relevant items that were *not shown*. So libraries do not get them either,
  except in the sections "Left to themselves" and "Offline evaluation".
- Libraries get the grade of every shown item, also 0. So trec_eval and ranx count slates without
  feedback as 0, which is `over="all"`; a mean over slates with feedback is `over="engaged"`.
- The order shown is given as scores without ties. A field is empty if the library lacks the metric,
  or refuses one of the slates.
"""


def _mean(theirs: Values, names: set[str]) -> float | None:
    """Mean over slates; None where the library does not cover them."""
    if not names or not names <= theirs.keys():
        return None
    return float(np.mean([theirs[name] for name in sorted(names)]))


def five_users_means() -> dict[tuple[Value, str], dict[str, float]]:
    """(value, population) → streamer or library → mean over the five users."""
    case = five_users()
    found = {key: {"streamer": mean} for key, mean in ours(case).mean.items()}
    for comparison in COMPARISONS:
        if case.kind in comparison.kinds:
            for value, theirs in values_of(comparison, case):
                for population, names in members(case, value.metric).items():
                    mean = _mean(theirs, names)
                    if mean is not None:
                        found[value, population].setdefault(comparison.package, mean)
    return found


def _five_users() -> str:
    rows = []
    for (value, population), means in five_users_means().items():
        over = population if population in ("all", "engaged") else ""
        shown = [_shown(means[x]) if x in means else "" for x in ("streamer", *LIBRARIES)]
        rows.append([_named(value, over), *shown])
    return f"""## Five users

k = 2. Shown: u1 A B C, u2 A B C, u3 A, u5 A B C. Relevant: u1 B C Z, u3 A, u4 X, u5 A. Z and X were
not shown, u4 was shown nothing, and u2 wanted nothing: so there are four slates, three of them
engaged.

{table(("metric", "streamer", *LIBRARIES), rows)}"""


def as_they_are(case: Case) -> dict[str, dict[str, Values]]:
    """Library → NDCG, MAP, precision and recall of users, told of all that is relevant."""
    (k,) = case.cutoffs
    judged = {
        s.name: {i.name: 1 for i in s.items if i.grade} | dict.fromkeys(s.wanted, 1)
        for s in case.slates
    }
    judged = {name: items for name, items in judged.items() if items}
    ranked = by.ranked_of(case.slates)
    trec = {"NDCG": "ndcg_cut", "MAP": "map_cut", "Precision": "P", "Recall": "recall"}
    ranx = {"NDCG": "ndcg", "MAP": "map", "Precision": "precision", "Recall": "recall"}
    jurity = {name: by.jurity_of(name, judged, ranked, k) for name in by.JURITY}
    return {
        "trec_eval": {n: by.trec_of(f"{m}_{k}", judged, ranked) for n, m in trec.items()},
        "ranx": {n: by.ranx_of(f"{m}@{k}", judged, ranked) for n, m in ranx.items()},
        "Jurity": {n: {str(i): float(x) for i, x in enumerate(v)} for n, v in jurity.items()},
    }


def _as_they_are() -> str:
    rows = []
    for library, measures in as_they_are(five_users()).items():
        cells = [f"{np.mean(list(v.values())):.6f} of {len(v)}" for v in measures.values()]
        rows.append([library, *cells])
    means = ours(five_users()).mean
    for over in ("engaged", "all"):
        cells = []
        for name in ("ndcg_ratio", "map_ratio", "precision_ratio", "recall_ratio"):
            mean = means.get((Value(name, 2), over))
            size = 3 if over == "engaged" else 4
            cells.append("" if mean is None else f"{mean:.6f} of {size}")
        rows.append([f'streamer, `over="{over}"`', *cells])
    return f"""## Left to themselves

The same five users, each library called as its manual says and told of Z and X, too: the mean, and
over how many users it was taken.

{table(("", "NDCG", "MAP", "precision", "recall"), rows)}
trec_eval leaves out who was shown nothing (u4), ranx counts him as 0, and both leave out u2, of
whom nothing is judged. Jurity counts u4 in NDCG and recall, not in MAP and precision; it does not
cut the ideal of NDCG at k, divides precision by what there is (u3: 1 / 1), and MAP by min(k,
relevant). Z lowers what is divided by the number of relevant items.
"""


def _random() -> str:
    rows = []
    total = unequal = 0
    for comparison in COMPARISONS:
        found = of_random_slates(comparison)
        total, unequal = total + found.compared, unequal + found.unequal
        value = Value(comparison.metric, 0, comparison.convention)
        means = [found.mean, found.error]
        rows.append([
            _named(value), f"{comparison.package}: {comparison.function}",
            str(found.compared), str(found.unequal), bound(found.slate),
            *("" if x is None else bound(x) for x in means),
        ])  # fmt: skip
    head = ("metric", "compared with", "values", "unequal", "slate", "mean", "standard error")
    sizes = ", ".join(f"{len(case.slates)} {case.kind}" for case, _ in random_cases())
    return f"""## Random slates

{sizes} slates of 1 to 20 items, from a fixed seed: binary ones
with gain 1, graded ones with gains 1, 2, 4 and 5, probed ones with held-out items and brute-force
lists; most items have scores, some of them tied. Each slate has a segment of its own, so that a
reading is the value of one slate. k = 1, 5, 10 and 20, which is the whole slate.

A value of a slate is a whole number of units of 1e-9. *values*: slates times cut-offs that were
compared. *unequal*: how many of them differ when the library's value is rounded to a unit, half up.
Then the largest differences: of a slate's value (up to 5e-10 is that rounding), of a mean over
slates, and of its standard error (`…_stderr` beside `scipy.stats.sem` of the library's values).
Sums of squares are exact integers, so standard errors differ by the rounding of values alone.

{table(head, rows)}
In all {total} values, {unequal} of them unequal.
"""


def _off_policy() -> str:
    rows = []
    for metric, estimation in off_policy.COMPARISONS.items():
        pairs = [
            (off_policy.readings(number)[metric], off_policy.theirs(number, metric))
            for number, _ in enumerate(off_policy.cases())
        ]
        apart = max(abs(ours_ - theirs) for ours_, theirs in pairs)
        values = [f"{ours_:.6f}" for ours_, _ in pairs]
        rows.append([f"`{metric}`", f'Jurity: `CTR(estimation="{estimation}")`', *values,
                     bound(apart)])  # fmt: skip
    head = ("metric", "compared with", *(case.name for case in off_policy.cases()), "difference")
    return f"""## Off-policy estimates

{off_policy.N} impressions each, from a fixed seed, of items shown at *random*, and by a *greedy*
policy. Jurity's targets choose one item each time. Weights are rounded to 1e-6.

{table(head, rows)}"""


def _diversity() -> str:
    rows = []
    for of in diversity.COMPARISONS:
        pairs = [(diversity.readings(c)[of.metric], of.theirs(c)) for c in lists.cases()]
        apart = max(abs(ours_ * of.unit - theirs) for ours_, theirs in pairs)
        rows.append(
            [f"`{of.metric}`", of.compared_with, *(f"{x:.6f}" for x, _ in pairs), bound(apart)]
        )
    head = ("metric", "compared with", *lists.cases(), "difference")
    return f"""## Coverage and diversity

{lists.USERS} lists of {lists.K} of {lists.ITEMS} items, from a fixed seed: drawn *even*ly, and
mostly the *popular* ones. RecTools needs NumPy below 2: the values of 0.19.0 were computed apart.
Its `Serendipity` ranks items by popularity, ours weighs them by self-information: they differ. For
the Gini coefficient and the diversity loss there is no such function.

{table(head, rows)}"""


def _ratios() -> str:
    rows = []
    for metric, function in own_ratios.FUNCTIONS.items():
        values = [f"{own_ratios.readings()[metric, of.name]:.6f}" for of in own_ratios.cases()]
        most = max(own_ratios.apart(metric, of) for of in own_ratios.cases())
        rows.append([f"`{metric}`", f"NumPy: `{function}`", *values, bound(most)])
    head = (
        "metric",
        "compared with",
        *(of.name for of in own_ratios.cases()),
        "relative difference",
    )
    return f"""## Ratios

{own_ratios.N} values each, from a fixed seed: latencies, margins below and above 0, and shares.
Values are rounded to 1e-6; quantiles are of a sketch, within 1 %.

{table(head, rows)}"""


def _offline() -> str:
    found = {kind: offline.ours(kind) for kind in offline.BOTH}
    rows = []
    for of in offline.COMPARISONS:
        values = {kind: found[kind].value(of.asked) for kind in of.kinds}
        texts = [f"{values[kind]:.6f}" if kind in values else "" for kind in found]
        apart = max(abs(values[kind] - of.value(kind)) for kind in of.kinds)
        named = [f"`{of.asked}`", f"{of.library}: `{of.function}`"]
        rows.append([*named, *texts, bound(apart)])
    return f"""## Offline evaluation

[`evaluate`](how-to/evaluate-a-recommender.md) on {offline_log.USERS} lists of 1 to 12 items, from a
fixed seed, with grades of 1 (*binary*) or 1 to 5 (*graded*). Here libraries get everything that is
relevant, shown or not; so does `evaluate` by default. RecTools' values were computed apart. Jurity
and RecTools take no grades.

{table(("metric", "compared with", *found, "difference"), rows)}"""


def _scores() -> str:
    rows = []
    for comparison in scores.COMPARISONS:
        labels = ",".join(f'{name}="{label}"' for name, label in comparison.labels)
        named = f"`{comparison.metric}{{{labels}}}`" if labels else f"`{comparison.metric}`"
        some = list(scores.found(comparison))
        values = [f"{each.ours:.6f}" for each in some]
        apart = max(some, key=lambda each: each.apart)
        said = bound(apart.apart) + (f" of {bound(apart.bound)}" if comparison.within else "")
        rows.append([named, f"{comparison.package}: {comparison.function}", *values, said])
    head = ("metric", "compared with", *(case.name for case in scores.cases()), "difference")
    return f"""## Scores over all impressions

{scores.N} impressions each, from a fixed seed: *rare* clicks, *even* odds, and *raw* scores beside
probabilities. Then the largest difference from the library; of the AUC beside its bound,
`auc_error_ratio`. Losses, squares and scores are rounded to 1e-9 for each impression.

{table(head, rows)}"""


def _examples() -> str:
    rows = [
        [
            e.name,
            e.printed,
            _shown(e.streamer),
            *(_shown(e.theirs[x]) if x in e.theirs else "" for x in LIBRARIES),
        ]
        for e in examples()
    ]
    return f"""## Examples of the sources

Those of the recommender-evaluation primer, computed. Of someone who prefers A to B and B to C, and
of the list B, A, C, it counts one concordant pair and two discordant ones. But B stands before C
there, as preferred: that list has 2/3, and 1/3 is what the list B, C, A has.

{table(("example", "printed", "streamer", *LIBRARIES), rows)}"""
