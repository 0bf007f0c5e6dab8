"""The dashboard *ranking*: whether lists are in a good order, and scores right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamer.metrics import ranking as slates
from streamer.monitoring import lists, scores
from streamer.monitoring.page import Variable, choice, firing, one_of, page
from streamer.monitoring.panels import SYSTEM, Panel, Query, graph, support
from streamer.monitoring.series import PERCENT
from streamer.monitoring.windowed import Windowed

_WITH_K = ("ndcg_ratio", "catalog_coverage_ratio", "intra_list_diversity_ratio")
_WITH_MATURITY = (
    *("window_slates", "window_gauc_slates", "window_scored_impressions", "log_loss"),
    *("snips_ratio", "serendipity_ratio"),
)
"""Metrics on the page, one of each family, by which a variable finds its values."""
_OVER = (
    "Over: engaged is slates with a relevant item, as offline evaluation has it; all counts those"
    " without as 0, and so falls when fewer slates get feedback."
)
_MATURITY = (
    "Maturity: provisional is the whole window, whose young slates still get feedback; mature is"
    " only what feedback can no longer change, an hour and a half old by default, so shorter"
    " windows have no mature readings."
)


def ranking(windowed: Windowed, page_url: str) -> dict[str, Any]:
    """The dashboard."""
    rows = {
        "Order of lists": [
            *_slates(windowed, "NDCG@$k: do the best items come first?", "ndcg_ratio"),
            *_slates(windowed, "MRR: how far up is the first good item?", "mrr"),
            *_slates(
                windowed, "Precision@$k: how many of the first $k are good?", "precision_ratio"
            ),
            *windowed.split(
                "COEC: are there more clicks than positions explain?",
                "coec_ratio",
                "window_coec_expected_clicks",
                note="1: as many clicks as the items' positions predict.",
            ),
            *windowed.split(
                "GAUC: do scores order each list?",
                "gauc_ratio",
                "window_gauc_slates",
                note=_MATURITY,
            ),
            *_positions(windowed),
        ],
        "Scores": scores.panels(windowed),
        "What is shown": lists.panels(windowed),
    }
    return page(
        "ranking",
        "Is the order of lists good, and are the scores right?",
        rows,
        variables=[*windowed.variables(), *_variables(windowed)],
        annotations=[firing("StreamerMetric.*|StreamerScoresDrifted")],
        folded=("Scores", "What is shown"),
        links=[("The exporter's page", page_url)],
    )


def _variables(windowed: Windowed) -> list[Variable]:
    """Of the labels that metrics on the page have."""
    variables = []
    if _first_shown(windowed, _WITH_K):
        cuts = windowed.settings.metrics.k
        first = max((k for k in cuts if k <= slates.SAMPLED_CUTOFF), default=min(cuts))
        of_slates = list(windowed.settings.metrics.cutoffs)
        variables.append(one_of("k", "k", of_slates, str(first)))
    if windowed.has("window_slates"):
        series = f"{windowed.of('window_slates').name}{{{SYSTEM}}}"
        variables.append(choice("over", series, "engaged"))
    if matured := _first_shown(windowed, _WITH_MATURITY):
        variables.append(choice("maturity", matured, "provisional"))
    return variables


def _first_shown(windowed: Windowed, names: Sequence[str]) -> str:
    """The series of the first metric that the settings show; "" if they show none."""
    name = next((name for name in names if windowed.has(name)), "")
    return f"{windowed.of(name).name}{{{SYSTEM}}}" if name else ""


def _slates(windowed: Windowed, title: str, name: str) -> list[Panel]:
    return windowed.split(title, name, "window_slates", note=f"{_OVER}\n\n{_MATURITY}")


def _positions(windowed: Windowed) -> list[Panel]:
    """Of all segments, by position."""
    if not windowed.has("ctr_position_ratio"):
        return []
    few = 'position=~"[1-5]"'
    queries = [Query(windowed.total("ctr_position_ratio", few, by=["position"]), "at {{position}}")]
    if windowed.has("window_position_impressions"):
        queries.append(
            Query(
                windowed.total("window_position_impressions", few, by=["position"]),
                "at {{position}}: impressions",
            )
        )
    description = windowed.of("ctr_position_ratio").description
    title = "CTR by position: where are the clicks?"
    return [
        graph(
            title, description, PERCENT, queries,
            empty="no impressions with a position in this window",
            overrides=[support(": impressions$")],
        )
    ]  # fmt: skip
