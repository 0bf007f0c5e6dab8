"""The series of slates: means over those of a window, and how sure they are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from streamer.settings.model import Settings

from . import ranking, scoring
from .dimensions import Dims, Kept, Segment
from .ranking import UNIT
from .sink import Sink
from .slates import Slate
from .span import Span

FOLLOWED = ("engaged", "contrasted", "gauc", "paired")
"""Populations that feedback changes."""
PROBED = ("sampled", "reference")
"""Populations that are what they are when they are shown."""


@dataclass(frozen=True)
class Measure:
    """One metric of slates. ``over_all``: also the mean over all slates, those outside of the
    population counting 0."""

    name: str
    population: str
    value: Callable[..., int]
    labels: tuple[tuple[str, str], ...] = ()
    over_all: bool = False


Values = dict[str, list[int]]
"""Population that a slate belongs to → the values of its measures, in their order."""


class SlateReadings:
    """All slates of a log, and what each of them is worth."""

    def __init__(self, slates: list[Slate], kept: Kept, settings: Settings) -> None:
        self.kept = kept
        families = settings.metrics.families
        self.measures: dict[str, list[Measure]] = {}
        if "ranking" in families:
            self.measures |= graded_measures(settings) | probed_measures(settings)
        if "scoring" in families:
            self.measures |= scored_measures(settings)
        self.has_ranking = "ranking" in families
        attribution = settings.attribution
        is_long = settings.metrics.feedback.get("conversion", 0) > 0
        horizon_ms = attribution.conversion_ms if is_long else attribution.click_ms
        self.wait_ms = horizon_ms + settings.time.max_lateness_ms
        self.settings = settings
        self.known: dict[tuple[tuple[float, ...], int], Values] = {}
        self.slates = [(slate, self.values_of(slate)) for slate in slates if self.measures]

    def values_of(self, slate: Slate) -> Values:
        """What depends on nothing but grades, and on how many positions people see, is computed
        once for slates that have the same."""
        found: Values = {}
        if self.has_ranking:
            seen = visible(slate.event.dims, self.settings)
            if (slate.grades, seen) not in self.known:
                self.known[slate.grades, seen] = self.graded(slate.grades, seen)
            found |= self.known[slate.grades, seen] | self.probed(slate, seen)
        if "gauc" in self.measures and any(m.row.feedback for m in slate.members):
            found |= self.scored(slate)
        return found

    def graded(self, grades: tuple[float, ...], seen: int) -> Values:
        found, measures = {}, graded_measures(self.settings, seen)
        for name, is_so in (
            ("engaged", ranking.relevant(grades) > 0),
            ("contrasted", ranking.is_contrasted(grades)),
        ):
            if is_so:
                found[name] = [m.value(grades) for m in measures[name]]
        return found

    def scored(self, slate: Slate) -> Values:
        items = scoring.scored(slate)
        found = {}
        for name, pairs in (
            ("gauc", scoring.clicked_pairs(items)),
            ("paired", scoring.differences(items)),
        ):
            if pairs:
                found[name] = [m.value(pairs) for m in self.measures[name]]
        return found

    def probed(self, slate: Slate, seen: int) -> Values:
        found, measures = {}, probed_measures(self.settings, seen)
        if slate.held_out is not None:
            found["sampled"] = [m.value(slate.held_out_rank) for m in measures["sampled"]]
        if slate.reference:
            found["reference"] = [m.value(slate) for m in measures["reference"]]
        return found

    def read(self, out: Sink, span: Span, stream_ms: int) -> None:
        """The series of a window."""
        cells: dict[Segment, list[tuple[bool, Values]]] = defaultdict(list)
        for slate, values in self.slates:
            event = slate.event
            if span.covers(event.event_ms):
                is_mature = span.is_mature(event.event_ms, self.wait_ms, stream_ms)
                for segment in self.kept.segments(event.dims):
                    cells[segment].append((is_mature, values))
        for segment, found in cells.items():
            labels = {"window": span.label, **dict(segment)}
            everything = [values for _, values in found]
            matured = [values for is_mature, values in found if is_mature]
            for maturity, chosen in (("provisional", everything), ("mature", matured)):
                self.read_followed(out, {"maturity": maturity, **labels}, chosen)
            for name in PROBED:
                members = [values[name] for values in everything if name in values]
                self.read_population(out, name, labels, members)

    def read_followed(self, out: Sink, labels: dict[str, str], slates: list[Values]) -> None:
        """What feedback changes, of the slates of one maturity."""
        for name in FOLLOWED:
            members = [values[name] for values in slates if name in values]
            if name == "engaged":
                self.read_engaged(out, labels, members, len(slates))
            else:
                self.read_population(out, name, labels, members)

    def read_engaged(
        self, out: Sink, labels: dict[str, str], members: list[list[int]], total: int
    ) -> None:
        """Means over engaged slates, and over ``total`` ones: the others have 0 throughout."""
        if not self.has_ranking:
            return
        for over, n in (("engaged", len(members)), ("all", total)):
            of_these = {"over": over, **labels}
            out.support("window_slates", of_these, n)
            for i, measure in enumerate(self.measures["engaged"]):
                if over == "engaged" or measure.over_all:
                    put_mean(out, measure, of_these, [values[i] for values in members], n)

    def read_population(
        self, out: Sink, name: str, labels: dict[str, str], members: list[list[int]]
    ) -> None:
        out.support(f"window_{name}_slates", labels, len(members))
        for i, measure in enumerate(self.measures.get(name, ())):
            put_mean(out, measure, labels, [values[i] for values in members], len(members))


# Means ----------------------------------------------------------------------------------------


def put_mean(
    out: Sink, measure: Measure, labels: dict[str, str], values: list[int], n: int
) -> None:
    """The mean over ``n`` slates, those without a value having 0, and its standard error."""
    labels = dict(measure.labels) | labels
    out.ratio(measure.name, labels, Fraction(sum(values), UNIT), n)
    if n >= 2:
        out.put(f"{measure.name}_stderr", labels, standard_error(values, n))


def standard_error(values: list[int], n: int) -> float:
    """Of the mean of ``n`` values, those not given being 0."""
    total, squares = sum(values), sum(value * value for value in values)
    return math.sqrt(Fraction(n * squares - total * total, n * (n - 1) * n)) / UNIT


# Which there are ------------------------------------------------------------------------------


def visible(dims: Dims, settings: Settings) -> int:
    """How many positions people see: by the value of a dimension, else as many as the first
    cut-off."""
    for name, positions in settings.metrics.visible.items():
        value = dims[settings.dimension_names.index(name)]
        return positions.get(value or "", settings.metrics.k[0])
    return 0


def cutoffs(settings: Settings, seen: int) -> dict[str, int]:
    """By label; ``seen``: how many positions people see, where that is one."""
    found = {str(k): k for k in settings.metrics.k}
    return {**found, "visible": seen} if settings.metrics.visible else found


def graded_measures(settings: Settings, seen: int = 0) -> dict[str, list[Measure]]:
    engaged = [Measure("mrr", "engaged", ranking.reciprocal_rank, over_all=True)]
    for label, k in cutoffs(settings, seen).items():
        engaged += at_cutoff(label, k, settings)
    contrasted = [
        Measure("fcp_ratio", "contrasted", ranking.concordance),
        Measure("kendall_tau", "contrasted", ranking.kendall_tau),
        Measure("spearman_rho", "contrasted", ranking.spearman_rho),
    ]
    if "tau_b" in settings.metrics.conventions.get("kendall_tau", ()):
        labels = (("convention", "tau_b"),)
        contrasted.append(Measure("kendall_tau", "contrasted", ranking.kendall_tau_b, labels))
    return {"engaged": engaged, "contrasted": contrasted}


def at_cutoff(label: str, k: int, settings: Settings) -> Iterator[Measure]:
    """The metrics of the first k, in all conventions that are asked for."""
    conventions = settings.metrics.conventions
    for (name, convention), value in AT_CUTOFF.items():
        if convention and convention not in conventions.get(name, ()):
            continue
        named = (("convention", convention),) if convention else ()
        yield Measure(
            name,
            "engaged",
            partial(value, k=k),
            (("k", label), *named),
            over_all=name != "recall_ratio",
        )


AT_CUTOFF: dict[tuple[str, str], Callable[..., int]] = {
    ("precision_ratio", ""): ranking.precision,
    ("precision_ratio", "shown"): ranking.precision_shown,
    ("recall_ratio", ""): ranking.recall,
    ("hit_ratio", ""): ranking.hit,
    ("arhr", ""): ranking.reciprocal_hits,
    ("map_ratio", ""): ranking.average_precision,
    ("map_ratio", "jurity"): partial(ranking.average_precision, divisor=ranking.most_possible),
    ("map_ratio", "primer"): partial(ranking.average_precision, divisor=ranking.found_relevant),
    ("mar_ratio", ""): ranking.average_recall,
    ("mar_ratio", "jurity"): partial(ranking.average_recall, divisor=ranking.most_possible),
    ("mar_ratio", "primer"): partial(ranking.average_recall, divisor=ranking.found_relevant),
    ("cg", ""): ranking.cumulative_gain,
    ("dcg", ""): ranking.discounted_gain,
    ("ndcg_ratio", ""): ranking.normalized_gain,
    ("ndcg_ratio", "jurity"): partial(ranking.normalized_gain, is_ideal_cut=False),
    ("ndcg_ratio", "exponential"): partial(ranking.normalized_gain, gain=ranking.exponential),
}
"""(Name, convention, "" = the default) → value of grades and k."""


def scored_measures(settings: Settings) -> dict[str, list[Measure]]:
    margin = settings.metrics.margin
    losses: dict[str, Callable[[float], float]] = {
        "bpr_loss": scoring.bpr,
        "hinge_loss": scoring.hinge,
        "margin_loss": partial(scoring.hinge, margin=margin),
    }
    return {
        "gauc": [Measure("gauc_ratio", "gauc", scoring.gauc)],
        "paired": [
            Measure(name, "paired", partial(scoring.mean_loss, loss=loss))
            for name, loss in losses.items()
        ],
    }


def probed_measures(settings: Settings, seen: int = 0) -> dict[str, list[Measure]]:
    return {
        "sampled": [
            Measure("hit_sampled_ratio", "sampled", ranking.hit_sampled),
            Measure("ndcg_sampled_ratio", "sampled", ranking.gain_sampled),
        ],
        "reference": [
            Measure("index_recall_ratio", "reference", partial(index_recall, k=k), (("k", label),))
            for label, k in cutoffs(settings, seen).items()
        ],
    }


def index_recall(slate: Slate, k: int) -> int:
    """How many of the brute-force list's first k are among the first k shown."""
    best = slate.reference[:k]
    shown = {m.is_compared_as for m in slate.members[:k]}
    return ranking.quotient(sum(item in shown for item in best), len(best))
