"""The page *ranking*: how well slates are ordered, by arm and with what chance does.

A line of panels holds metrics of one population of slates, and its size as their support.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import timeseries

from grafana import bands, panels
from grafana.panels import FIRST_TEN, JOB
from grafana.windowed import Windowed
from streamer.metrics import ranking, scoring
from streamer.metrics.catalogue import PREFIX
from streamer.metrics.slate_metrics import SlateMetric

ROWS: dict[str, tuple[tuple[str, ...], ...]] = {
    "Relevant items first": (("mrr", "map_ratio"), ("hit_ratio", "precision_ratio")),
    "More list metrics": (("recall_ratio", "arhr", "mar_ratio"), ("dcg", "cg")),
    "Order and grades": (("fcp_ratio", "kendall_tau", "spearman_rho"),),
    "Scores": (("gauc_ratio",), ("bpr_loss", "hinge_loss", "margin_loss")),
    "Retrieval tests": (("hit_sampled_ratio", "ndcg_sampled_ratio"), ("index_recall_ratio",)),
}
"""Lines of metrics of one population each, names without prefix."""
TILES = ("ndcg_ratio", "mrr", "map_ratio", "hit_ratio", "precision_ratio", "window_slates")
_METRICS = {m.name: m for family in (ranking, scoring) for m in family.slate_metric.values}
_NARROWED = {
    "k": 'k="$k"',
    "over": 'over="$over"',
    "maturity": 'maturity="$maturity"',
    "convention": 'convention=""',
    "position": FIRST_TEN,
}
_BAND = (
    "Band: two standard errors to either side, which hold the true mean in 95 of 100 cases if"
    " slates are independent; those of one user are not quite, so it is somewhat too narrow. It"
    " shows noise; do not decide experiments by it. The panel beside it has the number of slates."
    f"\n\nNumbers of lines: 0 is all together, 1 to {bands.ARMS} are the chosen arms by name;"
    " further ones have a line without number and band."
)
_MATURITY = (
    "Maturity: provisional is the whole window, whose young slates still get feedback; mature is"
    " only what feedback can no longer change, an hour and a half old by default, so shorter"
    " windows have no mature readings."
)
_OVER = (
    "Over: engaged is slates with a relevant item, as offline evaluation has it; all counts those"
    " without as 0, and so falls when fewer slates get feedback."
)
_ONLY_ENGAGED = "Over engaged slates, whatever is chosen: without a relevant item it is 0 / 0."
_SUPPORTED, _SUPPORT = (14, 9, 6), (10, 6, 6)
"""Widths of each of one, two, three metrics, and of their support."""


class Ranking(Windowed):
    """Builds the page for the dimensions, cut-offs and conventions of a settings file."""

    def build(self) -> builders.Dashboard:
        """The page."""
        board = self._page("streamer-ranking", "streamer: ranking", "Metrics of ranked lists")
        board = board.with_row(builders.Row("All segments, in the chosen window"))
        for name in TILES:
            board = board.with_panel(self._tile(name, _NARROWED, title=self._title(name)))
        board = board.with_row(builders.Row("Order, and clicks by position"))
        for panel in self._first():
            board = board.with_panel(panel)
        for title, lines in ROWS.items():
            board = board.with_row(builders.Row(title))
            for line in lines:
                for panel in self._line(line):
                    board = board.with_panel(panel)
        return self._with_conventions(board)

    def _variables(self) -> list[builders.QueryVariable]:
        """Values of the first dimension are arms; of the others one is chosen, since a band is of
        one series."""
        series = f"{PREFIX}window_impressions{{{JOB}}}"
        window, *chosen = super()._variables()
        others = [panels.label_variable(name, series, "all") for name in self._dimensions[1:]]
        slates, cut = f"{PREFIX}window_slates{{{JOB}}}", f"{PREFIX}ndcg_ratio{{{JOB}}}"
        found = [window, *chosen[:1], *others]
        found.append(panels.label_variable("k", cut, str(self._default_cut())))
        found.append(panels.label_variable("over", slates, "engaged"))
        found.append(panels.label_variable("maturity", slates, "provisional"))
        for first in self._settings.dimensions[:1]:
            where = f'{PREFIX}window_slates{{{JOB}, {first.name}=~"${first.name}"'
            found += bands.arm_variables(first.name, where, first.values)
        return found

    def _default_cut(self) -> int:
        """The largest up to 10; the least one, if all are above."""
        cuts = self._settings.metrics.k
        return max((k for k in cuts if k <= ranking.SAMPLED_CUTOFF), default=min(cuts))

    def _title(self, name: str) -> str:
        what = self._of(name)
        return f"{what.title} at $k" if "k" in what.labels else what.title

    def _first(self) -> Iterator[timeseries.Panel]:
        """Whether a better order goes with clicks further up."""
        yield self._band("ndcg_ratio", 7)
        yield self._support_of(("ndcg_ratio",), 5)
        by_position = "ctr_position_ratio"
        note = "Event time, all arms together. Click rates fall with the position by themselves:"
        note += " users look at the first places most."
        yield self._graph(by_position, width=7, note=note, narrowed=_NARROWED)
        support = "window_position_impressions"
        title = f"{self._of(support).title}: support of {self._of(by_position).title}"
        yield self._graph(support, width=5, title=title, narrowed=_NARROWED)

    def _line(self, line: tuple[str, ...]) -> Iterator[timeseries.Panel]:
        for name in line:
            yield self._band(name, _SUPPORTED[len(line) - 1])
        yield self._support_of(line, _SUPPORT[len(line) - 1])

    def _band(self, name: str, width: int) -> timeseries.Panel:
        what, metric = self._of(name), _METRICS[name]
        narrowed = _narrowed(metric)
        where = self._where(name) + "".join(f", {narrowed[label]}" for label in what.labels)
        mean, error = (self._in_window(x, where) for x in (name, f"{name}_stderr"))
        queries = bands.band(mean, error, self._dimensions, what.title)
        text = "\n\n".join([what.description, *_notes(metric)])
        panel = panels.graph(
            self._title(name), text, what.unit, queries, width=width, from_zero=False
        )
        return bands.filled(panel)

    def _support_of(self, line: tuple[str, ...], width: int) -> timeseries.Panel:
        """How many slates: of both populations where a metric has two."""
        (support,) = {_METRICS[name].population.support for name in line}
        of = ", ".join(self._title(name).removesuffix(" at $k") for name in line)
        title = f"{self._of(support).title}: support of {of}"
        maturity = {"maturity": _NARROWED["maturity"]}
        return self._graph(support, width=width, title=title, narrowed=maturity)

    def _with_conventions(self, board: builders.Dashboard) -> builders.Dashboard:
        """Conventions that the settings ask for, each beside the default; none ask for a row."""
        chosen = self._settings.metrics.conventions
        if not any(chosen.values()):
            return board
        board = board.with_row(builders.Row("Conventions of other libraries"))
        narrowed = {label: _NARROWED[label] for label in ("k", "over", "maturity")}
        note = "The line whose convention is empty is the default one."
        for name in (name for name, options in chosen.items() if options):
            title = f"{self._title(name)}, by convention"
            panel = self._graph(name, width=14, title=title, note=note, narrowed=narrowed)
            board = board.with_panel(panel).with_panel(self._support_of((name,), 10))
        return board


def _narrowed(metric: SlateMetric) -> Mapping[str, str]:
    """How labels are narrowed to one value; a metric of one population has but that one."""
    if len(metric.over) == 1:
        return _NARROWED | {"over": f'over="{metric.over[0]}"'}
    return _NARROWED


def _notes(metric: SlateMetric) -> Iterator[str]:
    """What a newcomer has to know of a metric's labels and band."""
    if metric.over:
        yield _OVER if len(metric.over) > 1 else _ONLY_ENGAGED
    else:
        yield f"Over slates {metric.population.doc}."
    if metric.population.has_maturity:
        yield _MATURITY
    else:
        yield "It needs no feedback, so every reading is mature."
    if metric.conventions:
        yield "The default convention, that of trec_eval."
    yield _BAND
