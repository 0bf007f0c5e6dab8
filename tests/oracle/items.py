"""Coverage and diversity, list by list and item by item: what is shown, and how different it is."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from operator import and_

import numpy as np

from streamer.settings.model import Settings

from .dimensions import Dims, Kept, Segment
from .joining import Joins
from .shape import Event, Row, Shown
from .sink import Sink
from .slates import Slate
from .span import Span
from .users import kind_of, touch

MILLION = 10**6
FAMILIES = {"coverage", "diversity"}
Pair = tuple[str, str]
"""Components: numerator and denominator."""


def diversity(slate: Slate, k: int) -> Fraction | None:
    """The share of pairs of different categories among the first k items; None without pairs."""
    shown = [member.row for member in slate.members[:k]]
    categories = [row.shown.category for row in shown if row.shown.category is not None]
    pairs = list(combinations(categories, 2))
    return Fraction(sum(a != b for a, b in pairs), len(pairs)) if pairs else None


# Ratios of sums -------------------------------------------------------------------------------


def ratios(settings: Settings) -> dict[str, Pair]:
    """Metric → its components, where the family is on."""
    if "diversity" not in settings.metrics.families:
        return {}
    return {
        f"intra_list_diversity_ratio@{k}": (f"diversities@{k}", f"lists@{k}")
        for k in settings.metrics.k
    }


def added(slates: Iterable[Slate], settings: Settings) -> Iterator[tuple[Row, str, int]]:
    """(earliest row, component, amount) of what intervals, experiments and alerts need."""
    cutoffs = settings.metrics.k if ratios(settings) else ()
    for slate in slates:
        for k in cutoffs:
            found = diversity(slate, k)
            if found is not None:
                yield slate.earliest, f"lists@{k}", 1
                units = math.floor(found * MILLION + Fraction(1, 2))
                yield slate.earliest, f"diversities@{k}", units


# What is shown --------------------------------------------------------------------------------


@dataclass
class Cell:
    """What one segment shows in one window."""

    rows: list[Row] = field(default_factory=list)
    mature: list[Row] = field(default_factory=list)
    slates: list[Slate] = field(default_factory=list)


@dataclass
class ItemReadings:
    """What is shown of a log's items."""

    events: list[Event]
    joins: Joins
    slates: list[Slate]
    kept: Kept
    settings: Settings

    def read(self, out: Sink, span: Span, longest: Span) -> None:
        """What needs no counts of items; the longest window."""
        if "diversity" in self.settings.metrics.families:
            self.read_within(out, span)
            self.read_users(out, span, longest)

    def read_counts(self, out: Sink, span: Span, longest: Span, stream_ms: int) -> None:
        """What items are counted for; the longest window that they are counted in."""
        families = FAMILIES & set(self.settings.metrics.families)
        if not families or span.label not in self.settings.item_windows:
            return
        out.put("item_sample_ratio", {"window": span.label}, 1.0)
        popular = Counter(
            row.shown.item_id for row in self.joins.rows if longest.covers(row.event.event_ms)
        )
        for segment, cell in self.cells(span, stream_ms).items():
            labels = {"window": span.label, **dict(segment)}
            if "coverage" in families:
                self.read_coverage(out, labels, cell, popular)
            if "diversity" in families:
                self.read_items(out, labels, cell, popular)
                self.read_lists(out, labels, cell.slates)

    def segments(self, dims: Dims) -> list[Segment]:
        """The rollups that metrics of items are shown for."""
        counted = set(self.settings.items.dimensions)
        return [
            segment
            for segment in self.kept.segments(dims)
            if {name for name, value in segment if value != "all"} <= counted
        ]

    def cells(self, span: Span, stream_ms: int) -> dict[Segment, Cell]:
        wait_ms = self.settings.attribution.click_ms + self.settings.time.max_lateness_ms
        cells: dict[Segment, Cell] = defaultdict(Cell)
        for row in self.joins.rows:
            at_ms = row.event.event_ms
            for segment in self.segments(row.event.dims) if span.covers(at_ms) else ():
                cells[segment].rows.append(row)
                if span.is_mature(at_ms, wait_ms, stream_ms):
                    cells[segment].mature.append(row)
        for slate in self.slates:
            if span.covers(slate.event.event_ms):
                for segment in self.segments(slate.event.dims):
                    cells[segment].slates.append(slate)
        return cells

    def catalog_size(self, popular: Counter[str]) -> int:
        return self.settings.items.catalog_size or len(popular)

    def read_coverage(
        self, out: Sink, labels: dict[str, str], cell: Cell, popular: Counter[str]
    ) -> None:
        size = self.catalog_size(popular)
        for k in (*self.settings.metrics.k, None):
            items = {row.shown.item_id for row in cell.rows if is_among(row.shown, k)}
            shown = min(len(items), size)
            out.ratio("catalog_coverage_ratio", {"k": str(k or "all"), **labels}, shown, size)
        out.put("window_items", labels, float(len({row.shown.item_id for row in cell.rows})))

    def read_items(
        self, out: Sink, labels: dict[str, str], cell: Cell, popular: Counter[str]
    ) -> None:
        total, size = popular.total(), self.catalog_size(popular)
        if size > 1:
            surprise = {item: math.log(total / n) / math.log(size) for item, n in popular.items()}
            told = [surprise[row.shown.item_id] for row in cell.rows]
            out.put("novelty_ratio", labels, math.fsum(told) / len(told))
            for maturity, rows in (("provisional", cell.rows), ("mature", cell.mature)):
                if rows:
                    clicked = [surprise[row.shown.item_id] for row in rows if row.clicked]
                    matured = {"maturity": maturity, **labels}
                    out.put("serendipity_ratio", matured, math.fsum(clicked) / len(rows))
        shown = Counter(row.shown.item_id for row in cell.rows)
        missing = max(0, self.catalog_size(popular) - len(shown))
        out.put("exposure_gini", labels, gini([*shown.values(), *[0] * missing]))
        said = [row.shown.category for row in cell.rows]
        categories = Counter(category for category in said if category is not None)
        n = categories.total()
        if n:
            unlike = sum(x * (n - x) for x in categories.values())
            out.put("diversity_loss", labels, -unlike / n**2)

    def read_lists(self, out: Sink, labels: dict[str, str], slates: list[Slate]) -> None:
        if slates:
            out.put("window_lists", labels, float(len(slates)))
        for k in self.settings.metrics.k if len(slates) > 1 else ():
            cosine = mean_cosine([{m.item_id for m in slate.members[:k]} for slate in slates])
            out.put("inter_list_diversity_ratio", {"k": str(k), **labels}, 1 - cosine)

    def read_within(self, out: Sink, span: Span) -> None:
        """These are by every rollup, as they are ratios."""
        found: dict[tuple[Segment, int], list[int]] = defaultdict(list)
        for slate in self.slates:
            at_ms, dims = slate.event.event_ms, slate.event.dims
            for k in self.settings.metrics.k if span.covers(at_ms) else ():
                within = diversity(slate, k)
                if within is not None:
                    units = math.floor(within * MILLION + Fraction(1, 2))
                    for segment in self.kept.segments(dims):
                        found[segment, k].append(units)
        for (segment, k), some in found.items():
            labels = {"window": span.label, "k": str(k), **dict(segment)}
            out.put("window_category_lists", labels, len(some))
            out.ratio("intra_list_diversity_ratio", labels, sum(some), len(some) * MILLION)

    def read_users(self, out: Sink, span: Span, longest: Span) -> None:
        """Users of the window among those of the longest one."""
        if "engagement" not in self.settings.metrics.families:
            return
        users: dict[tuple[str, Segment], set[tuple[int, str, Segment]]] = defaultdict(set)
        for row in self.joins.rows:
            event = row.event
            for which in (span, longest):
                if event.person is not None and which.reaches(event.event_ms):
                    for group in self.kept.groups(event.partition, event.dims):
                        user = (event.partition, event.who, group)
                        users[which.label, self.kept.folded(group)].add(user)
        of_longest = [segment for label, segment in users if label == longest.label]
        for segment in [each for each in of_longest if not self.kept.is_mixed(each)]:
            shown = users.get((span.label, segment), set())
            known = self.settings.items.users or len(users[longest.label, segment])
            labels = {"window": span.label, **dict(segment)}
            out.ratio("user_coverage_ratio", labels, len(shown), known)

    def read_people(self, out: Sink, span: Span, of_users: Span) -> None:
        """Of the people of a window, how many were shown what they had not reacted to; each is of
        an item by the last time that it was shown, and that feedback was given."""
        has_families = {"diversity", "engagement"} <= set(self.settings.metrics.families)
        if not has_families or span.label not in self.settings.item_windows:
            return
        shown: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
        given: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
        for event in self.events:
            if event.person is None:
                continue
            who = event.partition, event.person
            for one in event.shown:
                touch(shown[who], one.item_id, event.event_ms)
            if kind_of(event, self.settings) is not None:
                touch(given[who], event.of_item, event.event_ms)
        people = sum(any(map(of_users.reaches, last.values())) for last in shown.values())
        told = Counter(
            row.shown.item_id for row in self.joins.rows if span.covers(row.event.event_ms)
        )
        novelty = Fraction(0)
        for item, times in told.items():
            saw = sum(item in last and span.covers(last[item]) for last in shown.values())
            gave = sum(item in last and span.covers(last[item]) for last in given.values())
            if people > gave:
                novelty += times * (1 - min(Fraction(saw, people - gave), Fraction(1)))
        if people and told:
            labels = dict.fromkeys(self.settings.dimension_names, "all")
            labels["window"] = span.label
            out.ratio("people_novelty_ratio", labels, novelty, told.total())
        if self.settings.items.pairs:
            reacted = [
                {item for item, at_ms in last.items() if span.covers(at_ms)}
                for last in given.values()
            ]
            self.read_pairs(out, span, reacted)

    def read_pairs(self, out: Sink, span: Span, reacted: list[set[str]]) -> None:
        """How different the items of slates are by the items to which each person reacted."""
        labels = dict.fromkeys(self.settings.dimension_names, "all")
        slates = [s.members for s in self.slates if span.covers(s.event.event_ms)]
        for k in self.settings.metrics.k:
            cosines = [
                cosine(
                    [one in some for some in reacted],
                    [other in some for some in reacted],
                )
                for members in slates
                for one, other in combinations({member.item_id for member in members[:k]}, 2)
            ]
            if cosines:
                of_k = {"k": str(k), "window": span.label, **labels}
                mean = math.fsum(cosines) / len(cosines)
                out.put("co_occurrence_diversity_ratio", of_k, 1 - mean)
                out.put("co_occurrence_diversity_error", of_k, 0.0)


def is_among(shown: Shown, k: int | None) -> bool:
    """Whether an item is shown at a position up to k; None: at any, or none."""
    return k is None or (shown.position is not None and shown.position <= k)


def cosine(one: list[bool], other: list[bool]) -> float:
    """Of two vectors of 0 and 1; 0 where either is 0."""
    both, lengths = sum(map(and_, one, other)), sum(one) * sum(other)
    return both / math.sqrt(lengths) if lengths else 0.0


def gini(counts: list[int]) -> float:
    """Half the mean absolute difference of two counts, over the mean."""
    x = np.array(counts, np.float64)
    differences = np.abs(x[:, None] - x[None, :]).sum()
    return float(differences / (2 * len(x) * x.sum()))


def mean_cosine(lists: list[set[str]]) -> float:
    """Over all pairs of lists, each a unit vector of its items."""
    numbers = {item: i for i, item in enumerate(sorted(set().union(*lists)))}
    vectors = np.zeros((len(lists), len(numbers)))
    for row, some in enumerate(lists):
        vectors[row, [numbers[item] for item in some]] = 1 / math.sqrt(len(some))
    cosines = vectors @ vectors.T
    n = len(lists)
    return float((cosines.sum() - np.trace(cosines)) / (n * (n - 1)))
