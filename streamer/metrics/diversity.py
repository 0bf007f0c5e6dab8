"""Diversity: how different lists are, within and among each other, and how novel what they show is.

With c_i the impressions of an item in the window, C_i those in the longest window, N their sum, and
m the click of an impression:

    novelty       Σ c_i u_i / Σ c_i, where u_i = -log2(C_i / N) / log2(items of the catalogue)
    serendipity   Σ m u_i over impressions / impressions
    exposure Gini Σ (2 rank_i - n - 1) c_i / (n Σ c_i), over the catalogue, ranks ascending

A list is a slate, cut off at k, as a unit vector of its items; over pairs of lists the mean cosine
follows from the sum S of the vectors: of N lists it is (|S|² - N) / (N (N - 1)). Sources: P the
recommender-evaluation primer, J Jurity's metric page. Counts of items: see ``metrics.coverage``.

Two lists of two items share one; the second has items of one category:

    >>> from streamer.testing import value_of
    >>> category = {"a": "x", "b": "y", "c": "y"}
    >>> def shown(user, items):
    ...     items = [{"item_id": i, "item_category": category[i]} for i in items]
    ...     return {"type": "impression", "user_id": user, "items": items}
    >>> events = [shown("u", "ab"), shown("v", "bc")]
    >>> settings = {"metrics": {"families": ["diversity"]}}
    >>> def read(name, **labels):
    ...     return round(value_of(events, name, settings, **labels), 6)
    >>> read("inter_list_diversity_ratio", k="10"), read("intra_list_diversity_ratio", k="10")
    (0.5, 0.5)

One impression in four shows a category of its own: two of them differ with 2 · 1/4 · 3/4. Items a
and c have two bits, b has one, and log2(3) are 1.585; the counts are 1, 1 and 2:

    >>> read("diversity_loss"), read("novelty_ratio"), read("exposure_gini")
    (-0.375, 0.946395, 0.166667)

By people, user v clicks c. Nobody else was left to be shown b and c; one of two was shown a:

    >>> events.append({"type": "click", "user_id": "v", "item_id": "c"})
    >>> settings["metrics"]["families"].append("engagement")
    >>> read("people_novelty_ratio")
    0.125

User v clicks b, too, and user u only b: of those who clicked both, or either, there is one in √(1 ·
2). Nobody clicked a. One of the two lists holds each of these pairs:

    >>> for user in "uv":
    ...     events.append({"type": "click", "user_id": user, "item_id": "b"})
    >>> settings["items"] = {"pairs": True}
    >>> read("co_occurrence_diversity_ratio", k="10")
    0.646447
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamer._core import PAIR_ITEM_BITS
from streamer.encoding.arrays import F64, I64
from streamer.encoding.packed import ITEM_BITS
from streamer.metrics.coverage import Tables, catalog_size, of_items
from streamer.metrics.definition import (
    Declarations,
    Declared,
    Family,
    Series,
    Variant,
    count,
)
from streamer.metrics.item_counts import (
    CATEGORY,
    CLICKED,
    SHOWN,
    WEIGHT_UNIT,
    ItemTable,
    item_counts,
)
from streamer.metrics.layout import Layout, Stat
from streamer.metrics.ratios import Ratio, RatioBy, declare, maturities
from streamer.metrics.reads import (
    AllItems,
    Given,
    OfItems,
    Part,
    Rows,
    Sums,
    Users,
    UserSampleRatio,
)
from streamer.metrics.sums import Sum, named
from streamer.metrics.users import USERS
from streamer.settings.model import Settings

metric = Declarations()
_HORIZON = "click_ms"
_SAMPLED = "where items are a sample"
_WITHOUT = f"absent without impressions, and {_SAMPLED}"
_BELOW_TWO = f"absent without impressions, below two items in the catalogue, and {_SAMPLED}"


@dataclass(frozen=True)
class ByCutoff(RatioBy):
    """A mean over lists for each of ``metrics.k``."""

    label: ClassVar[str] = "k"
    setting: ClassVar[str] = "metrics.k"
    has_maturity: ClassVar[bool] = False

    def variants(self, settings: Any) -> Iterator[tuple[dict[str, str], Ratio]]:
        for k in settings.metrics.k:
            yield {self.label: str(k)}, self.at(k)

    def at(self, k: int) -> Ratio:
        """The mean at one cut-off."""
        below = Sum(named("lists.lists", str(k)), "lists with two items that have a category")
        above = Sum(named("lists.diversity", str(k)), "their diversities")
        name, title = (f"{text}@{k}" for text in (self.name, self.title))
        return Ratio(name, title, above, below, self.doc, is_weighted=True, most=1.0)


INTRA_LIST = ByCutoff(
    *("intra_list_diversity_ratio", "Diversity within lists"),
    "Mean over slates of the share of the pairs of their first k items whose categories differ."
    " Items without a category are left out.",
    "mean over slates of pairs of different categories / pairs",
    "absent without slates that have two items with a category",
    source="P",
)
BY_CUTOFF = (INTRA_LIST,)
FAMILY_OF = {INTRA_LIST.name: "diversity"}
"""Metric → its family."""

declare(metric, INTRA_LIST)


def has_lists(settings: Settings) -> bool:
    """Whether sums over lists are counted."""
    return FAMILY_OF[INTRA_LIST.name] in settings.metrics.families


def has_people(settings: Settings) -> bool:
    """Whether the people of items are counted, which takes those who are known."""
    return has_lists(settings) and "engagement" in settings.metrics.families


def _stats(settings: Settings) -> tuple[Stat, ...]:
    ratios = (ratio for _, ratio in INTRA_LIST.variants(settings))
    return tuple(
        Stat(of.name, largest=of.unit) for ratio in ratios for of in (ratio.below, ratio.above)
    )


USER_COVERAGE, PEOPLE_NOVELTY = "user_coverage_ratio", "people_novelty_ratio"
_CO_OCCURRENCE, _CO_OCCURRENCE_ERROR = (
    f"co_occurrence_diversity_{end}" for end in ("ratio", "error")
)


def _lists(of: Declared) -> Iterator[Variant]:
    """What reads the lists of each cut-off."""
    declared = item_counts(of.settings)
    if declared is None:
        return
    for k in declared.cutoffs:
        places = declared.weight(k), declared.excess(k)
        yield Variant({"k": str(k)}, (Rows(), OfItems(places), *map(Given, places)))


def _first_lists(of: Declared) -> Iterator[Variant]:
    """What reads the lists of the first cut-off: as many as of any other."""
    declared = item_counts(of.settings)
    if declared is not None:
        place = declared.weight(declared.cutoffs[0])
        yield Variant({}, (Rows(), OfItems((place,)), Given(place)))


def difference_of_lists(table: ItemTable, place: int, excess_at: int) -> float | None:
    """1 - mean cosine over all pairs of lists, from the weights of items at ``place`` and the
    excess of all lists; None below two lists, and of a sample of the items."""
    lists = int(table.every[place])
    if lists < 2 or not table.is_whole:
        return None
    parts = table.of(place) / WEIGHT_UNIT
    squares = lists + int(table.every[excess_at]) / WEIGHT_UNIT**2
    cosines = float(parts @ parts) - squares
    return min(1.0, max(0.0, 1.0 - cosines / (lists * (lists - 1))))


metric.row(
    *("inter_list_diversity_ratio", "ratio", "1 - mean cosine over all pairs of lists"),
    "Difference between slates, by their first k items. Vectors are rounded, with an error of at"
    " most 2e-7. It has no interval.",
    of_items(difference_of_lists),
    empty=f"absent without two slates, and {_SAMPLED}",
    source="J",
    labels=("k",),
    reads=_lists,
)
metric.count(
    *("window_lists", "slates", "slates with an item"),
    "Support of inter_list_diversity_ratio.",
    *(_first_lists, of_items(lambda table, place: int(table.every[place]) or None)),
)


def _lists_below(of: Ratio, above: I64, below: I64) -> Iterator[Series]:
    yield count(below)


metric.count(
    "window_category_lists",
    "slates",
    "slates with two items that have a category, among the first k",
    "Support of intra_list_diversity_ratio.",
    *(INTRA_LIST.reads, _lists_below),
    labels=("k",),
)


def mean_surprise(table: ItemTable, place: int, known: ItemTable, size: float) -> float | None:
    """Sum over impressions (clicked ones, as ``place`` says) of the item's self-information, over
    impressions. It is that of the item's share of the impressions ``known``, 1 for an item of the
    catalogue of ``size`` items that is shown as often as the others; None where there is no other,
    and where a sample of the items is held: the most frequent ones decide, and may not be in it."""
    if size < 2 or not known.every[SHOWN]:
        return None
    shown = table.of(SHOWN)
    if not shown.any() or not (table.is_whole and known.is_whole):
        return None
    popular = np.maximum(known.at(table.items, SHOWN), 1)
    surprise = np.log2(known.every[SHOWN] / popular) / np.log2(size)
    return float(table.of(place) @ surprise) / float(shown.sum())


def _of_impressions(of: Declared) -> Iterator[Variant]:
    """What reads all items, and those of each segment: all, and those of mature panes."""
    size = catalog_size(of.settings)
    for labels, horizon_ms in maturities(of.settings, _HORIZON):
        yield Variant(labels, (Rows(), OfItems((SHOWN, CLICKED), horizon_ms), AllItems(), size))


def gini(table: ItemTable, size: float) -> float | None:
    """Gini coefficient of impressions over a catalogue of ``size`` items; None without impressions,
    and of a sample of the items."""
    shown = np.sort(table.of(SHOWN)[table.of(SHOWN) > 0]).astype(np.float64)
    if not len(shown) or not table.is_whole:
        return None
    n = max(round(size), len(shown))
    ranks = np.arange(n - len(shown) + 1, n + 1)
    return float((2 * ranks - n - 1) @ shown / (n * shown.sum()))


def _loss(table: ItemTable) -> float | None:
    total = float(table.every[CATEGORY])
    if not total:
        return None
    shares = table.of(CATEGORY) / total
    return min(0.0, float(shares @ shares) / table.category_ratio - 1.0)


metric.row(
    *("novelty_ratio", "ratio"),
    "mean over impressions of -log2(item's share of impressions in the longest window) /"
    " log2(items of the catalogue)",
    "Mean self-information of the shown items: 0 if one item gets all impressions, 1 if all get"
    " the same number, above 1 if the shown items are rarer. It has no interval.",
    of_items(lambda table, known, size: mean_surprise(table, SHOWN, known, size)),
    empty=_BELOW_TWO,
    reads=lambda of: [
        Variant({}, (Rows(), OfItems((SHOWN,)), AllItems(), catalog_size(of.settings)))
    ],
)
metric.row(
    *("serendipity_ratio", "ratio"),
    "sum over clicked impressions of the item's self-information, as in novelty_ratio /"
    " impressions",
    "Mean over impressions of relevance (clicked) times unexpectedness (self-information). It has"
    " no interval.",
    of_items(lambda table, known, size: mean_surprise(table, CLICKED, known, size)),
    empty=_BELOW_TWO,
    source="P",
    labels=("maturity",),
    support="window_ctr_attributed_impressions",
    reads=_of_impressions,
)
metric.row(
    *("exposure_gini", "Gini coefficient"),
    "Gini coefficient of impressions over the items of the catalogue",
    "Unevenness of impressions over items: 0 if all items have the same number, near 1 if a few"
    " have them all. Items of the catalogue that are not shown count with 0. It has no interval.",
    of_items(gini),
    empty=_WITHOUT,
    reads=lambda of: [Variant({}, (Rows(), OfItems((SHOWN,)), catalog_size(of.settings)))],
)
metric.row(
    *("diversity_loss", "probability, negated"),
    "-sum over pairs of different categories of the product of their shares",
    "Minus the probability that two impressions, drawn with replacement, have different"
    " categories: the primer's loss with a dissimilarity of 1 between categories. It has no"
    " interval.",
    of_items(_loss),
    empty="absent without impressions that have a category",
    source="P",
    reads=(Rows(), OfItems((CATEGORY,))),
)


def _people(of: Declared) -> Iterator[Variant]:
    """What reads the people of items, and all people, of the total only: a person who is shown an
    item in several segments is one."""
    declared = item_counts(of.settings)
    if declared is not None and has_people(of.settings):
        places = declared.people
        items = OfItems((SHOWN, *places), is_of_total=True)
        yield Variant({}, (Rows(), items, Given(places), Users(USERS), UserSampleRatio()))


@metric(
    PEOPLE_NOVELTY,
    formula="mean over impressions of 1 - people who were shown the item / people who gave it no"
    " feedback, at least 0",
    unit="ratio",
    empty="absent without impressions of people, and where items or people are a sample",
    source="P",
    doc="How many of those who have not reacted to the shown items were not shown them, either."
    " People are those with an impression in the window; one counts for an item by the last"
    " impression of it, and by the last feedback in `metrics.feedback`. For the total only. It has"
    " no interval.",
    reads=_people,
)
def people_novelty(
    rows: int, tables: Tables, places: tuple[int, int], people: I64, sample_ratio: float
) -> Iterator[Series]:
    found = np.full(rows, np.nan)
    for row, table in tables.items():
        shown, (saw, gave) = table.of(SHOWN), map(table.of, places)
        if people[row] and shown.any() and table.is_whole and sample_ratio == 1:
            others = np.maximum(people[row] - gave, 0)
            share = np.where(others > 0, np.minimum(saw / np.maximum(others, 1), 1.0), 1.0)
            found[row] = shown @ (1 - share) / shown.sum()
    present = ~np.isnan(found)
    yield Series({}, np.where(present, found, 0.0), present)


def _co_occurring(of: Declared) -> Iterator[Variant]:
    """What reads the pairs of items in lists of each cut-off, of the total only."""
    declared = item_counts(of.settings)
    if declared is None or not declared.has_pairs:
        return
    for k in declared.cutoffs:
        places = declared.people[1], declared.top(k)
        items = OfItems((*places, declared.pairs), is_of_total=True)
        yield Variant({"k": str(k)}, (Rows(), _Pairs(items, places)))


@dataclass(frozen=True)
class _Pairs:
    """Row → the pairs of its segment; nothing where people are a sample. ``places``: as of
    ``cosines_of``."""

    items: OfItems
    places: tuple[int, int]

    def parts(self, layout: Layout) -> Iterator[Part]:
        for read in (self.items, UserSampleRatio()):
            yield from read.parts(layout)

    def of(self, sums: Sums) -> Mapping[int, _Cosines]:
        tables = self.items.of(sums) if sums.user_sample_ratio == 1 else None
        pairs = ((row, cosines_of(table, self.places)) for row, table in (tables or {}).items())
        return {row: cosines for row, cosines in pairs if cosines is not None}


@dataclass(frozen=True)
class _Cosines:
    """Pairs of items that stand in lists: the places of both items among those that are held, how
    many lists hold them, and the cosine of their people."""

    items: tuple[I64, I64]
    lists: I64
    cosines: F64
    sample_ratio: float

    @property
    def mean(self) -> float:
        """Over all pairs in all lists."""
        return math.fsum(self.lists * self.cosines) / int(self.lists.sum())  # in any order

    @property
    def stderr(self) -> float:
        """Of the mean, as items are sampled: the jackknife over items."""
        if self.sample_ratio == 1:
            return 0.0
        both, n = np.concatenate(self.items), max(map(np.max, self.items)) + 1
        lists, cosines = (
            np.bincount(both, np.tile(weights, 2), n)
            for weights in (self.lists, self.lists * self.cosines)
        )
        seen = lists > 0
        rest = self.lists.sum() - lists[seen]
        if seen.sum() < 3 or not rest.all():
            return float("nan")
        without = (self.lists @ self.cosines - cosines[seen]) / rest
        spread = float(np.square(without - without.mean()).sum())
        share = 1 - 1 / seen.sum()
        return math.sqrt(spread * share * (1 - self.sample_ratio))


def cosines_of(table: ItemTable, places: tuple[int, int]) -> _Cosines | None:
    """The pairs in lists, where any are held; ``places``: of people and of lists. Items whose
    hashes begin alike are left out."""
    people_at, lists_at = places
    pairs = table.pairs
    if pairs is None:
        return None
    begin = table.items >> (ITEM_BITS - PAIR_ITEM_BITS)
    known, first, times = np.unique(begin, return_index=True, return_counts=True)
    known, first = known[times == 1], first[times == 1]
    lists = pairs.counts[:, lists_at]
    is_held = (lists > 0) & np.isin(pairs.items[0], known) & np.isin(pairs.items[1], known)
    if not is_held.any():
        return None
    one, other = (np.searchsorted(known, each[is_held]) for each in pairs.items)
    people = table.of(people_at)[first]
    either = np.sqrt(people[one] * people[other])
    both = pairs.counts[is_held, people_at]
    cosines = np.divide(both, either, out=np.zeros(len(both)), where=either > 0)
    return _Cosines((one, other), lists[is_held], cosines, pairs.sample_ratio)


_WITHOUT_PAIRS = (
    "absent without `items.pairs`, without two items in a slate, and where people are a sample"
)
metric.row(
    *(_CO_OCCURRENCE, "ratio"),
    "1 - mean over pairs of items in slates of people who gave feedback to both / sqrt(people of"
    " one · people of the other)",
    "Difference within slates, by their first k items: the mean distance of two different items,"
    " 1 - the cosine of the people who gave them feedback in the window (0 without any). It needs"
    " `items.pairs`. Pairs beyond `limits.items` are those of a sample of the items, with an error"
    " of `co_occurrence_diversity_error`. For the total only.",
    of_items(lambda of: 1 - of.mean),
    empty=_WITHOUT_PAIRS,
    source="P",
    labels=("k",),
    reads=_co_occurring,
)
metric.row(
    *(_CO_OCCURRENCE_ERROR, "as co_occurrence_diversity_ratio"),
    "jackknife over the items of the sample · sqrt(1 - their share)",
    "Standard error of co_occurrence_diversity_ratio by the sample of items; 0 where all are held.",
    of_items(lambda of: of.stderr),
    empty=_WITHOUT_PAIRS,
    labels=("k",),
    reads=_co_occurring,
)


@metric(
    USER_COVERAGE,
    formula="users with an impression / users with an impression in the longest window",
    unit="ratio",
    empty="absent without users in the longest window",
    reads=lambda of: [
        Variant(
            {}, (Users(USERS), Users(USERS, is_of_longest=True), Given(of.settings.items.users))
        )
    ],
)
def user_coverage(users: I64, of_longest: I64, known: int) -> Iterator[Series]:
    """Share of the known users with an impression; the number of known users is `items.users`, if
    it is set."""
    every = np.full(len(of_longest), known) if known else of_longest
    present = of_longest > 0
    share = np.divide(users, every, out=np.zeros(len(every)), where=present)
    yield Series({}, share, present)


OF_USERS = (USER_COVERAGE, PEOPLE_NOVELTY, _CO_OCCURRENCE, _CO_OCCURRENCE_ERROR)
"""Metrics that count users."""
FAMILY = Family("diversity", tuple(metric.series), _stats)
