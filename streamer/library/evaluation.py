"""Offline evaluation: the metrics of a recommender over data frames.

``evaluate`` reads tables of any library that has Arrow's ``__arrow_c_stream__``. The core groups
their rows into lists and computes each list's values by the functions of the live engine.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt
from typing import Any, Literal

from streamer._core import Evaluator
from streamer.encoding.segments import ALL
from streamer.errors import SourceError, UsageError
from streamer.formatting import counted
from streamer.ingest.hash_key import FIXED_KEY
from streamer.library.selection import Names, names_of
from streamer.library.spelled_ids import Ids, example_of, ids_of, spelling_warnings
from streamer.library.table import Cell, Table
from streamer.metrics.coverage import covered
from streamer.metrics.diversity import difference_of_lists, gini, mean_surprise
from streamer.metrics.evaluated import EvaluatedMetric, described, parse_metric
from streamer.metrics.item_counts import CLICKED, SHOWN, ItemCounts, ItemTable
from streamer.metrics.slates import UNIT, core_tables
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.sources.tables import ArrowTable
from streamer.stats.distributions import interval_of_mean

OF_COLUMNS = ("user_id", "item_id", "request_id", "position", "score", "grade")
"""The columns that tables have, by the names that ``columns`` maps."""
_LABELS = ("k", "over", "convention")
_OF_VALUES = ("value", "low", "high", "stderr", "support", "users")
_RESERVED = ("metric", *_LABELS, *_OF_VALUES)
_MARGIN = Settings().metrics.margin


@dataclass(frozen=True, slots=True)
class EvaluatedValue:
    """A value of a metric over some lists.

    ``metric``: its name in the catalogue. ``labels``: the values of ``by`` ("all": all lists), and
    ``k``, ``over`` and ``convention`` where the metric has them. ``value``: None without support.
    ``low``, ``high``: the interval of the mean, within what is possible, and ``stderr`` its
    standard error; None below two users, and of metrics of items. ``support``: the lists of the
    mean, or all lists; ``users``: theirs.
    """

    metric: str
    labels: Mapping[str, str]
    value: float | None
    low: float | None
    high: float | None
    stderr: float | None
    support: int
    users: int


class Evaluation(Table):
    """What ``evaluate`` returns: a row for each metric over all lists, then over each segment.

    Columns: ``metric`` (its name in the catalogue), the columns ``by`` ("all": all lists), ``k``,
    ``over`` and ``convention`` where metrics have them, ``value``, ``low`` and ``high`` (the
    interval), ``stderr``, ``support`` (lists) and ``users``.

    ``impressions``, ``lists``, ``users``: rows of the table, and what they make up. ``clicks``:
    rows; ``clicks_without_list``: those of users (or requests) without impressions, which do not
    count.
    """

    def __init__(
        self,
        rows: Sequence[EvaluatedValue],
        by: Sequence[str],
        asked: Sequence[str],
        sizes: tuple[int, int, int, int, int],
    ) -> None:
        """``asked``: the metrics, whose values over all lists come first."""
        self.impressions, self.lists, self.users, self.clicks, self.clicks_without_list = sizes
        self._rows = tuple(rows)
        self._asked = dict(zip(asked, self._rows, strict=False))
        labels = [*by, *(name for name in _LABELS if any(name in row.labels for row in rows))]
        columns: dict[str, list[Cell]] = {"metric": [row.metric for row in rows]}
        columns |= {name: [row.labels.get(name) for row in rows] for name in labels}
        columns |= {name: [getattr(row, name) for row in rows] for name in _OF_VALUES}
        super().__init__(columns)

    def value(self, metric: str) -> float:
        """The value of a metric over all lists, by the name that was asked for; NaN without
        support. UsageError where it was not asked for."""
        if metric not in self._asked:
            raise UsageError(f"{metric!r} was not asked for: there are {', '.join(self._asked)}")
        value = self._asked[metric].value
        return nan if value is None else value


def evaluate(
    impressions: ArrowTable,
    clicks: ArrowTable,
    metrics: str | Sequence[str] = ("ndcg@10", "map@10", "recall@10", "hit@10", "mrr"),
    *,
    by: Names = None,
    over: Literal["engaged", "all"] = "engaged",
    relevant: Literal["all", "shown"] = "all",
    columns: Mapping[str, str | None] | None = None,
    catalog_size: int | None = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Metrics of lists that were shown, or would be: a row of ``impressions`` is an item of one.

    ``impressions`` has the columns ``user_id`` and ``item_id``. A list is all rows of a user, or,
    if there is a column ``request_id``, of a request of a user. Its order is that of ``position``,
    ascending, else of ``score``, descending, else of the rows. Rows of equal position or score stay
    in row order, those without one come last. Of an item that comes twice in a list the first row
    counts; of a list the first 1,000 items do.

    ``clicks`` has the columns ``user_id`` and ``item_id`` of what is relevant: in that request with
    ``request_id``, else in every list of the user. ``grade`` is its gain (default 1; 0: not
    relevant; at most 17 different ones); of several the largest counts.

    Ids are texts or integers: 17 is "17", not "17.0". UserWarning where they seem to be spelled
    differently in both tables, or no item of clicks is in a list. ``columns`` maps these names to
    others, as ``{"item_id": "sku"}``; None leaves out an optional column.

    ``metrics``: names with a cut-off, as ``ndcg@10``; options after dots are a convention and the
    lists of the mean, as ``map@10.jurity.all``. METRICS
    ``by``: columns of impressions; metrics are computed for each combination of their values, too.
    A list has the values of its first row; a missing one is "unknown".
    ``over``: the lists of means: ``"engaged"``, with a relevant item, or ``"all"``, where the
    others count 0. Recall is over engaged lists always, correlations over lists with different
    grades, gauc and losses over lists with scores of both kinds.
    ``relevant``: ``"all"`` counts relevant items that a list does not show, as trec_eval and ranx
    do; ``"shown"`` does not, as the live engine, which cannot know them. Users who were shown
    nothing do not count.
    ``catalog_size``: items of the catalogue, for coverage, Gini and novelty; default: those shown.
    ``confidence``: of intervals. They allow for users with several lists: the standard error is
    that of a ratio of sums over users (delta method), with Student's t for users - 1.

    Raises UsageError for arguments and SourceError for tables that cannot be used.

    >>> import pandas as pd
    >>> import streamer
    >>> shown = pd.DataFrame({"user_id": [1, 1, 1, 2, 2], "item_id": ["a", "b", "c", "b", "a"]})
    >>> clicked = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["b", "z", "b"]})
    >>> streamer.evaluate(shown, clicked, ["mrr", "recall@2"])["value"]
    [0.75, 0.75]
    """
    asked, labels = _asked(names_of(metrics), over), names_of(by)
    _check(labels, relevant, catalog_size, confidence)
    spec = _spec(asked, labels, columns or {}, relevant == "all")
    core = _read(spec, impressions, clicks)
    _check_gains(core.gains, asked)
    sums = core.sums(json.dumps(core_tables(core.gains, _MARGIN)).encode())
    _warn(*_ids(spec, impressions, clicks), has_hit=not core.gains or sums[0][0][-1][2] != "0")
    reader = _Reader(asked, catalog_size, 1 - confidence, tuple(core.gains), sums)
    return _evaluation(core, reader, labels)


evaluate.__doc__ = (evaluate.__doc__ or "").replace(
    "METRICS", "There are:\n\n" + "".join(f"    - {line}\n" for line in described())
)


def _asked(metrics: list[str], over: str) -> list[EvaluatedMetric]:
    if not metrics:
        raise UsageError("metrics: none is named: name one, as 'ndcg@10'")
    if over not in ("engaged", "all"):
        raise UsageError(f"over = {over!r}: 'engaged' or 'all'")
    twice = sorted({name for name in metrics if metrics.count(name) > 1})
    if twice:
        raise UsageError(f"metrics: {', '.join(twice)}: name each once")
    return [parse_metric(name, over) for name in metrics]


def _check(by: list[str], relevant: str, catalog_size: int | None, confidence: float) -> None:
    if relevant not in ("all", "shown"):
        raise UsageError(f"relevant = {relevant!r}: 'all' or 'shown'")
    wrong = [name for name in by if name in _RESERVED]
    if wrong or len(set(by)) < len(by):
        raise UsageError(f"by = {by}: columns, each once, and none called {', '.join(_RESERVED)}")
    if catalog_size is not None and catalog_size < 1:
        raise UsageError(f"catalog_size = {catalog_size}: at least 1")
    if not 0 < confidence < 1:
        raise UsageError(f"confidence = {confidence}: between 0 and 1, as 0.95")


def _read(spec: dict[str, Any], impressions: ArrowTable, clicks: ArrowTable) -> Evaluator:
    """Both tables as the core holds them."""
    for name, table in (("impressions", impressions), ("clicks", clicks)):
        if not hasattr(table, "__arrow_c_stream__"):
            raise SourceError(
                f"{name}: {type(table).__name__} is no table: pass a data frame of pandas, Polars, "
                "pyarrow or DuckDB (it has __arrow_c_stream__)"
            )
    try:
        core = Evaluator(json.dumps(spec).encode(), impressions, clicks)
    except Exception as error:  # whatever the tables' own libraries raise
        raise SourceError("; ".join(map(str, error.args))) from error
    _check_sizes(core, lambda: _ids(spec, impressions, clicks))
    return core


def _ids(spec: dict[str, Any], impressions: ArrowTable, clicks: ArrowTable) -> tuple[Ids, Ids]:
    """Ids of both tables, as they are spelled."""
    both = (("impressions", impressions), ("clicks", clicks))
    shown, clicked = (
        ids_of(table, {f"{of}_id": spec[name][of] for of in ("user", "request", "item")})
        for name, table in both
    )
    return shown, clicked


def _evaluation(core: Evaluator, reader: _Reader, by: list[str]) -> Evaluation:
    """The values of all lists, then of each segment in the order of its labels."""
    totals = reader.rows(0, dict.fromkeys(by, ALL))
    rows = list(totals)
    if by:
        _check_labels(by, core.segments)
        for number, values in sorted(enumerate(core.segments, 1), key=lambda pair: pair[1]):
            rows += reader.rows(number, dict(zip(by, values, strict=True)))
    return Evaluation(rows, by, [metric.asked for metric in reader.asked], core.sizes)


def _warn(shown: Ids, clicked: Ids, *, has_hit: bool) -> None:
    """Warn the caller of ``evaluate`` of ids that match nothing."""
    for text in spelling_warnings(shown, clicked, has_hit=has_hit):
        warnings.warn(text, stacklevel=3)


def _check_labels(by: Sequence[str], segments: Sequence[Sequence[str]]) -> None:
    """SourceError for a value that stands for all lists."""
    for name, values in zip(by, zip(*segments, strict=True), strict=True):
        if ALL in values:
            raise SourceError(
                f"impressions: {name!r} has the value {ALL!r}, which stands for all lists: give it "
                "another name"
            )


def _check_sizes(core: Evaluator, ids: Callable[[], tuple[Ids, Ids]]) -> None:
    rows, _, _, clicks, without_list = core.sizes
    if not rows:
        raise SourceError("impressions: the table has no rows, so there is no list to evaluate")
    if not clicks:
        raise SourceError("clicks: the table has no rows, so nothing is relevant in any list")
    if without_list == clicks:
        raise SourceError(
            f"clicks: none of the {counted(clicks, 'row')} belongs to a list of impressions: "
            "user_id (and request_id) must be the same ids in both tables"
            f"{example_of('user_id', *ids())}"
        )


def _check_gains(gains: Sequence[float], asked: list[EvaluatedMetric]) -> None:
    largest = gains[-1] if gains else 0.0
    is_exponential = any(metric.convention == "exponential" for metric in asked)
    most = limits.MAX_EXPONENTIAL_GAIN if is_exponential else limits.MAX_GAIN
    if largest > most:
        why = ", as exponential gains are asked for" if is_exponential else ""
        raise SourceError(f"clicks: a grade of {largest:g}; at most {most:g}{why}: scale grades")


# The core's spec ------------------------------------------------------------------------------


def _cutoffs(asked: list[EvaluatedMetric]) -> tuple[int, ...] | None:
    """Cut-offs of counts of items; None: no metric needs them."""
    of_items = [metric for metric in asked if metric.of_lists is None]
    if not of_items:
        return None
    return tuple(sorted({metric.k or limits.MAX_ITEMS for metric in of_items}))


def _spec(
    asked: list[EvaluatedMetric],
    by: list[str],
    columns: Mapping[str, str | None],
    counts_unshown: bool,
) -> dict[str, Any]:
    names, named = _names(columns)
    user, item, request = names["user_id"], names["item_id"], names["request_id"]
    is_scored = any(metric.needs_scores for metric in asked)
    shared = {"user": user, "item": item, "request": request}
    shown = {"position": names["position"], "score": names["score"], "by": by}
    return {
        "hash_key": FIXED_KEY,
        "impressions": shared
        | shown
        | {"is_scored": is_scored, "max_segments": limits.MAX_EVALUATED_SEGMENTS},
        "clicks": shared | {"grade": names["grade"]},
        "asked": [
            [names[x] for x in ("request_id", "position", "score") if x in named],
            [names[x] for x in ("grade",) if x in named],
        ],
        "means": {
            "means": [_mean_spec(metric) for metric in (*asked, _HIT) if metric.of_lists],
            "counts_unshown": counts_unshown,
            "has_scoring": is_scored,
            "cutoffs": _cutoffs(asked),
        },
    }


_HIT = parse_metric(f"hit@{limits.MAX_ITEMS}", "all")
"""It is asked for behind all others, and tells whether there is any hit."""


def _names(columns: Mapping[str, str | None]) -> tuple[dict[str, str | None], set[str]]:
    """Our name → the column's, and those of ours that were mapped."""
    unknown = [name for name in columns if name not in OF_COLUMNS]
    if unknown:
        raise UsageError(
            f"columns: {unknown[0]!r} is no column: it maps {', '.join(OF_COLUMNS)} to others"
        )
    for name in ("user_id", "item_id"):
        if columns.get(name, name) is None:
            raise UsageError(f"columns: {name} cannot be left out")
    mapped = {name for name, column in columns.items() if column is not None}
    return {name: columns.get(name, name) for name in OF_COLUMNS}, mapped


def _mean_spec(metric: EvaluatedMetric) -> dict[str, Any]:
    declared = metric.of_lists
    assert declared is not None
    return {
        "name": metric.name,
        "k": metric.k or (limits.MAX_ITEMS if declared.by_k else 0),
        "convention": metric.convention,
        "population": declared.population.name,
        "over": metric.over,
    }


# Reading sums ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reader:
    """Makes values of the core's sums; ``alpha``: 1 - confidence; ``gains``: of the clicks."""

    asked: list[EvaluatedMetric]
    catalog_size: int | None
    alpha: float
    gains: tuple[float, ...]
    sums: Sequence[tuple[list[tuple[int, int, str, str, str, str]], Any]]

    def rows(self, segment: int, labels: Mapping[str, str]) -> list[EvaluatedValue]:
        """The values of a segment, one a metric."""
        means, exposure = self.sums[segment]
        of_lists = iter(means)
        rows = list[EvaluatedValue]()
        for metric in self.asked:
            of = (metric.name, {**labels, **metric.labels})
            if metric.of_lists is not None:
                rows.append(self._mean(metric, of[1], next(of_lists)))
            else:
                value = self._of_items(metric, self._table(segment))
                lists = int(exposure[2][self._places.weight(self._places.cutoffs[0])])
                rows.append(EvaluatedValue(*of, value, None, None, None, lists, 0))
        return rows

    def _mean(
        self,
        metric: EvaluatedMetric,
        labels: dict[str, str],
        row: tuple[int, int, str, str, str, str],
    ) -> EvaluatedValue:
        """A mean. With x the sum of a user's values and n the user's lists it is m = Σx / Σn, and
        its variance U / (U - 1) Σ (x - m n)² / (Σn)² of U users, which is s² / U where each user
        has one list."""
        n, users = row[:2]
        total, squares, products, sizes = map(int, row[2:])
        if not n:
            return EvaluatedValue(metric.name, labels, None, None, None, None, 0, 0)
        value = total / (UNIT * n)
        if users < 2:
            return EvaluatedValue(metric.name, labels, value, None, None, None, n, users)
        spread = n * n * squares - 2 * n * total * products + total * total * sizes
        stderr = sqrt(spread * users / ((users - 1) * n**4)) / UNIT
        ends = metric.bounds(self.gains, _MARGIN)
        low, high = interval_of_mean(value, stderr, users - 1, ends, self.alpha)
        return EvaluatedValue(metric.name, labels, value, low, high, stderr, n, users)

    @cached_property
    def _places(self) -> ItemCounts:
        return ItemCounts((), ((),), _cutoffs(self.asked) or (), ())

    def _table(self, segment: int) -> ItemTable:
        items, counts, every = self.sums[segment][1]
        return ItemTable(items, counts.reshape(-1, len(every)), every)

    @cached_property
    def _every_item(self) -> ItemTable:
        return self._table(0)

    @cached_property
    def _size(self) -> float:
        return float(self.catalog_size or self._every_item.distinct(SHOWN))

    def _of_items(self, metric: EvaluatedMetric, table: ItemTable) -> float | None:
        places, known, size = self._places, self._every_item, self._size
        if metric.name == "catalog_coverage_ratio":
            return covered(table, size, places.top(metric.k) if metric.k else SHOWN)
        if metric.name == "exposure_gini":
            return gini(table, size)
        if metric.name == "inter_list_diversity_ratio":
            k = metric.k or limits.MAX_ITEMS
            return difference_of_lists(table, places.weight(k), places.excess(k))
        place = SHOWN if metric.name == "novelty_ratio" else CLICKED
        return mean_surprise(table, place, known, size)
