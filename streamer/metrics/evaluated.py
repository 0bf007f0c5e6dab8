"""Metrics that are evaluated offline, by the names that users know: ``ndcg@10``, ``map@5.jurity``.

A name is one of the catalogue, or a short one; ``@k`` is a cut-off; options follow after dots, as
in experiments: a convention of the metric, or the lists that the mean is over. Formulas are those
of the catalogue; the core computes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from streamer.errors import UsageError
from streamer.metrics import ranking, scoring
from streamer.metrics.coverage import ALL
from streamer.metrics.slate_metrics import SlateMetric
from streamer.settings import limits
from streamer.settings.names import nearest

SLATE_METRICS: dict[str, SlateMetric] = {
    metric.name: metric
    for metric in (*ranking.slate_metric.values, *scoring.slate_metric.values)
    if metric.population not in (ranking.SAMPLED, ranking.REFERENCE)
}
"""Those of lists, by name: a table of impressions has neither held-out items nor references."""
ITEM_METRICS = {
    "catalog_coverage_ratio": "Share of the catalogue that is shown",
    "exposure_gini": "Gini coefficient of impressions over the catalogue",
    "novelty_ratio": "Mean self-information of impressions",
    "serendipity_ratio": "Mean self-information of clicked impressions, over all",
    "inter_list_diversity_ratio": "1 - mean cosine of pairs of lists",
}
"""Those of items over all lists together, by name."""
_ITEM_METRICS_BY_K = ("catalog_coverage_ratio", "inter_list_diversity_ratio")
SHORT_NAMES = {
    "precision": "precision_ratio",
    "recall": "recall_ratio",
    "hit": "hit_ratio",
    "hit_rate": "hit_ratio",
    "map": "map_ratio",
    "mar": "mar_ratio",
    "ndcg": "ndcg_ratio",
    "fcp": "fcp_ratio",
    "kendall": "kendall_tau",
    "spearman": "spearman_rho",
    "gauc": "gauc_ratio",
    "bpr": "bpr_loss",
    "hinge": "hinge_loss",
    "margin": "margin_loss",
    "coverage": "catalog_coverage_ratio",
    "gini": "exposure_gini",
    "novelty": "novelty_ratio",
    "serendipity": "serendipity_ratio",
    "inter_list_diversity": "inter_list_diversity_ratio",
}
"""Short name → name of the catalogue."""
_CUT_IF_ASKED = ("mrr",)
"""In the catalogue they have no cut-off; libraries have one."""


@dataclass(frozen=True)
class EvaluatedMetric:
    """A metric as it was asked for. ``name``: of the catalogue; ``k``: 0 for none; ``over``: the
    population of a mean, "" for metrics of items."""

    asked: str
    name: str
    k: int
    convention: str = ""
    over: str = ""

    @property
    def of_lists(self) -> SlateMetric | None:
        """Its declaration; None of metrics of items."""
        return SLATE_METRICS.get(self.name)

    @property
    def needs_scores(self) -> bool:
        """Whether it compares scores, not the order alone."""
        of_lists = self.of_lists
        return of_lists is not None and of_lists.population in (scoring.GAUC, scoring.PAIRED)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of its values, as series have them."""
        declared = self.of_lists
        k = str(self.k) if self.k > 0 else ""
        if not k and (self.name in _ITEM_METRICS_BY_K or (declared and declared.by_k)):
            k = ALL
        over = self.over if declared and declared.over else ""
        labels = {"k": k, "convention": self.convention, "over": over}
        return {name: label for name, label in labels.items() if label}

    def bounds(self, gains: tuple[float, ...], margin: float) -> tuple[float, float]:
        """The least and the largest value that a list may have."""
        declared = self.of_lists
        if declared is None:
            return 0.0, inf
        return declared.bounds(gains, margin, self.k)


def parse_metric(asked: str, over: str) -> EvaluatedMetric:
    """The metric of a name; ``over``: "all" or "engaged", where the name says neither.
    UsageError for a name, a cut-off or an option that there is not.

    >>> parse_metric("ndcg@10", "engaged").labels
    {'k': '10', 'over': 'engaged'}
    >>> parse_metric("map_ratio@5.jurity.all", "engaged").labels
    {'k': '5', 'convention': 'jurity', 'over': 'all'}
    """
    short, *options = asked.split(".")
    short, at, cut = short.partition("@")
    name = SHORT_NAMES.get(short, short)
    if name not in SLATE_METRICS and name not in ITEM_METRICS:
        known = [*SHORT_NAMES, *SLATE_METRICS, *ITEM_METRICS]
        close = nearest(short, known)
        meant = f"did you mean {close!r}?" if close else f"there are {', '.join(_shortest())}"
        raise UsageError(f"metrics: {asked!r} is no metric of lists: {meant}")
    k = _cutoff(asked, name, cut, bool(at))
    metric = SLATE_METRICS.get(name)
    if metric is None:
        if options:
            raise UsageError(f"metrics: {asked!r}: {name} has no options")
        return EvaluatedMetric(asked, name, k)
    convention = ""
    for option in options:
        if option in metric.over:
            over = option
        elif option in metric.conventions:
            convention = option
        else:
            known = [*metric.over, *metric.conventions]
            raise UsageError(
                f"metrics: {asked!r}: no option {option!r}; it has {', '.join(known) or 'none'}"
            )
    populations = metric.over or (metric.population.name,)
    is_over = over if over in populations else populations[0]
    return EvaluatedMetric(asked, name, k, convention, is_over)


def _cutoff(asked: str, name: str, cut: str, is_cut: bool) -> int:
    """The cut-off of a name; 0 without one."""
    metric = SLATE_METRICS.get(name)
    by_k = name in _ITEM_METRICS_BY_K or (metric is not None and metric.by_k)
    if not is_cut:
        if name == "precision_ratio":
            raise UsageError(f"metrics: {asked!r} needs a cut-off: {asked}@10, for example")
        return 0
    if not by_k and name not in _CUT_IF_ASKED:
        raise UsageError(f"metrics: {asked!r}: {name} has no cut-off: leave out @{cut}")
    if not (cut.isdecimal() and 1 <= int(cut) <= limits.MAX_ITEMS):
        rule = f"a cut-off is a whole number from 1 to {limits.MAX_ITEMS}"
        raise UsageError(f"metrics: {asked!r}: {rule}")
    return int(cut)


def _shortest() -> Iterator[str]:
    """A name of each metric, the short one where it has one."""
    short = {name: short for short, name in reversed(SHORT_NAMES.items())}
    yield from (short.get(name, name) for name in (*SLATE_METRICS, *ITEM_METRICS))


def described() -> Iterable[str]:
    """A line on each metric: its names, its meaning, its conventions and its lists."""
    for shown, name in zip(_shortest(), (*SLATE_METRICS, *ITEM_METRICS), strict=True):
        metric = SLATE_METRICS.get(name)
        by_k = name in _ITEM_METRICS_BY_K or (metric is not None and metric.by_k)
        cut = "@k" if by_k else "[@k]" if name in _CUT_IF_ASKED else ""
        also = f" ({name})" if shown != name else ""
        meaning = metric.title if metric else ITEM_METRICS[name]
        choices = ", ".join(metric.conventions) if metric else ""
        yield f"``{shown}{cut}``{also}: {meaning}" + (f"; {choices}" if choices else "")
