"""Intervals of rates and means, from sums by group of users, one thing after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import NormalDist, mean, stdev, variance

from scipy.stats import t as student

from streamer.settings.model import Settings

from . import items, off_policy, own_ratios, scores
from .alert_series import group_of
from .dimensions import Dims, Kept, Segment
from .shape import is_person
from .sink import Sink
from .span import Span
from .user_days import Fact
from .users import UNIT, Tally, kinds_of

GROUPS, LEAST = 16, 8
LEAST_OF_VALUES, LEAST_POSITIVE = 14, 30
Z = NormalDist().inv_cdf(0.975)
Ends = tuple[float, float]


@dataclass(frozen=True)
class Ratio:
    """A metric: numerator, denominator, units that are 1, whether it is a share."""

    lower: str
    upper: str
    above: str
    below: str
    unit: int = 1
    is_share: bool = False
    is_signed: bool = False


def named(text: str, above: str, below: str, unit: int = 1, is_share: bool = False) -> Ratio:
    """A ``*`` in the name stands for the end."""
    return Ratio(text.replace("*", "lower"), text.replace("*", "upper"), above, below, unit,
                 is_share)  # fmt: skip


RATIOS = (
    named("ctr_*_ratio", "clicks", "impressions", is_share=True),
    named("zero_results_*_ratio", "empty slates", "requests", is_share=True),
    named("cvr_*_ratio", "conversions", "clicks", is_share=True),
    named("conversion_value_per_click_*", "value", "clicks", 1_000_000),
    named("order_value_mean_*", "value", "conversions", 1_000_000),
    named("conversion_value_per_impression_*", "value", "impressions", 1_000_000),
    named("dwell_mean_*_seconds", "dwell", "viewings", 1000),
    named("bounce_rate_*_ratio", "bounces", "sessions", is_share=True),
    named("views_per_session_*", "views", "sessions"),
    named("session_length_mean_*_seconds", "length", "sessions", 1000),
)
CTR = named("ctr_attributed_*_ratio", "clicked", "impressions", is_share=True)
CVR = named("cvr_attributed_*_ratio", "converted", "clicked", is_share=True)


class Cell:
    """Sums of one segment by component and group."""

    def __init__(self) -> None:
        self.sums: defaultdict[str, Counter[int]] = defaultdict(Counter)

    def ends(self, ratio: Ratio) -> Ends | None:
        """Both ends, if enough groups have something."""
        x = [self.sums[ratio.above][g] for g in range(GROUPS)]
        y = [self.sums[ratio.below][g] for g in range(GROUPS)]
        if not are_enough(x, y, ratio.is_share):
            return None
        low, high = ends_of(x, y, ratio.is_share, ratio.is_signed)
        return low / ratio.unit, high / ratio.unit


def are_enough(x: list[int], y: list[int], is_share: bool) -> bool:
    """Enough groups for an interval."""
    is_broad = is_share or len([a for a in x if a]) >= LEAST_OF_VALUES
    return is_broad and len([b for b in y if b > 0]) >= LEAST


def ends_of(x: list[int], y: list[int], is_share: bool, is_signed: bool = False) -> Ends:
    """The interval of a ratio whose parts are known by group: that of a mean of its linearised
    values, one for each group that has something."""
    n = sum(y)
    value = sum(x) / n
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a or b]
    linearised = [value + len(pairs) * (a - value * b) / n for a, b in pairs]
    of_mean = variance(linearised) / len(pairs)
    t = float(student.ppf(0.975, len(pairs) - 1))
    if not is_share or not 0 <= value <= 1:
        if is_signed or min(x) < 0:
            return value - t * sqrt(of_mean), value + t * sqrt(of_mean)
        deviation = sqrt(of_mean) / value
        return exp(log(value) - t * deviation), exp(log(value) + t * deviation)
    effect = 1.0 if value in (0, 1) else max(of_mean / (value * (1 - value) / n), 1.0)
    return wilson(value, n / effect, t)


def wilson(share: float, n: float, quantile: float) -> Ends:
    """Wilson 1927, as it is printed."""
    middle = share + quantile**2 / (2 * n)
    reach = quantile * sqrt(share * (1 - share) / n + quantile**2 / (4 * n * n))
    below = 1 + quantile**2 / n
    return max((middle - reach) / below, 0.0), min((middle + reach) / below, 1.0)


class Intervals:
    """The intervals of one window."""

    def __init__(self, span: Span, stream_ms: int, kept: Kept, settings: Settings) -> None:
        self.span, self.stream_ms = span, stream_ms
        self.kept, self.settings = kept, settings

    def cells(self, facts: Iterable[Fact], is_wanted: Callable[[int], bool]) -> dict[Segment, Cell]:
        """Segments with what was in the window at wanted times."""
        found: dict[Segment, Cell] = defaultdict(Cell)
        for fact in facts:
            if self.span.covers(fact.event_ms) and is_wanted(fact.event_ms):
                for segment in self.segments(fact.dims):
                    found[segment].sums[fact.component][group_of(fact.user[1], self.kept.key)] += (
                        fact.amount
                    )
        return found

    def segments(self, dims: Dims) -> set[Segment]:
        return self.kept.segments(dims)

    def mature(self, horizon_ms: int) -> Callable[[int], bool]:
        wait_ms = horizon_ms + self.settings.time.max_lateness_ms
        return lambda event_ms: self.span.is_mature(event_ms, wait_ms, self.stream_ms)

    def read(self, out: Sink, facts: list[Fact], tallied: dict[Segment, Tally]) -> None:
        horizons = self.settings.attribution
        whole = self.cells(facts, lambda event_ms: True)
        for segment, cell in whole.items():
            self.put_lists(out, segment, cell)
            for ratio in RATIOS:
                self.put(out, ratio, segment, cell)
            self.put_ratios(out, segment, cell)
        for horizon_ms in {horizons.click_ms, horizons.conversion_ms}:
            ripe = self.cells(facts, self.mature(horizon_ms))
            for maturity, cells in (("provisional", whole), ("mature", ripe)):
                for segment, cell in cells.items():
                    if horizon_ms == horizons.click_ms:
                        self.put(out, CTR, segment, cell, maturity=maturity)
                        self.put_scores(out, segment, cell, maturity)
                        self.put_policies(out, segment, cell, maturity)
                    if horizon_ms == horizons.conversion_ms:
                        self.put(out, CVR, segment, cell, maturity=maturity)
        of_users = [fact for fact in facts if is_person(fact.user[1])]
        cells_of_users = self.cells(of_users, lambda event_ms: True)
        for segment, tally in tallied.items():
            self.read_users(out, segment, tally, cells_of_users.get(segment, Cell()))

    def put(self, out: Sink, of: Ratio, segment: Segment, cell: Cell, **labels: str) -> None:
        ends = cell.ends(of)
        if ends is not None:
            self.put_ends(out, (of.lower, of.upper), segment, ends, **labels)

    def put_scores(self, out: Sink, segment: Segment, cell: Cell, maturity: str) -> None:
        for metric, (above, below) in scores.shown_ratios(self.settings).items():
            name, _, threshold = metric.partition("@")
            text = name.replace("_ratio", "_*_ratio") if "_ratio" in name else f"{name}_*"
            is_share = name.startswith("classifier")
            ratio = named(text, above, below, scores.unit_of(metric), is_share)
            labels = {"maturity": maturity} | ({"threshold": threshold} if threshold else {})
            self.put(out, ratio, segment, cell, **labels)
            ends = cell.ends(ratio)
            if name == "mse" and ends is not None:
                low, high = map(sqrt, ends)
                self.put_ends(out, ("rmse_lower", "rmse_upper"), segment, (low, high), **labels)

    def put_policies(self, out: Sink, segment: Segment, cell: Cell, maturity: str) -> None:
        is_on = "off_policy" in self.settings.metrics.families
        for metric, (above, below) in off_policy.ratios(self.settings).items() if is_on else ():
            name, _, policy = metric.partition("@")
            text = name.replace("_ratio", "_*_ratio")
            ratio = named(text, above, below, off_policy.unit_of(metric))
            signed = replace(ratio, is_signed=name.startswith("doubly"))
            self.put(out, signed, segment, cell, maturity=maturity, policy=policy)

    def put_lists(self, out: Sink, segment: Segment, cell: Cell) -> None:
        for metric, (above, below) in items.ratios(self.settings).items():
            name, _, k = metric.partition("@")
            mean = named(name.replace("_ratio", "_*_ratio"), above, below, items.MILLION)
            ends = cell.ends(mean)
            if ends is not None:
                within = ends[0], min(ends[1], 1.0)
                self.put_ends(out, (mean.lower, mean.upper), segment, within, k=k)

    def put_ratios(self, out: Sink, segment: Segment, cell: Cell) -> None:
        for metric, (above, below) in own_ratios.ratios(self.settings).items():
            name = metric.partition("@")[2]
            if below != "1":
                unit = own_ratios.unit_of(self.settings, name)
                is_share = own_ratios.is_share(self.settings, name)
                is_signed = own_ratios.may_be_below_0(self.settings, name)
                ratio = named("ratio_*", above, below, unit, is_share)
                self.put(out, replace(ratio, is_signed=is_signed), segment, cell, ratio=name)

    def put_ends(
        self, out: Sink, names: tuple[str, str], segment: Segment, ends: Ends, **labels: str
    ) -> None:
        for name, value in zip(names, ends, strict=True):
            out.put(name, {"window": self.span.label, **labels, **dict(segment)}, value)

    def read_users(self, out: Sink, segment: Segment, tally: Tally, cell: Cell) -> None:
        names = ("user_hit_lower_ratio", "user_hit_upper_ratio")
        share = tally.hit_users / tally.users
        self.put_ends(out, names, segment, wilson(share, tally.users, Z))
        for kind in kinds_of(self.settings):
            positive = tally.positive_users[kind]
            for definition, users in (("docs", tally.users), ("gorse-0.5", positive)):
                if positive >= LEAST_POSITIVE:
                    ends = of_rates(tally.rates_of[kind], users)
                    names = ("positive_rate_lower_ratio", "positive_rate_upper_ratio")
                    labels = {"feedback": kind, "definition": definition}
                    self.put_ends(out, names, segment, ends, **labels)
        names = ("clicks_per_user_lower", "clicks_per_user_upper")
        self.put_per_user(out, names, segment, (cell, tally), "clicks", 1)
        for of in self.settings.ratios:
            if of.denominator is not None and of.denominator.kind == "people":
                unit = own_ratios.unit_of(self.settings, of.name)
                is_signed = own_ratios.may_be_below_0(self.settings, of.name)
                found = (out, ("ratio_lower", "ratio_upper"), segment, (cell, tally))
                component = own_ratios.components(of)[0]
                self.put_per_user(*found, component, unit, is_signed, ratio=of.name)

    def put_per_user(
        self,
        out: Sink,
        names: tuple[str, str],
        segment: Segment,
        of: tuple[Cell, Tally],
        component: str,
        unit: int,
        is_signed: bool = False,
        **labels: str,
    ) -> None:
        cell, tally = of
        sums = [GROUPS * cell.sums[component][g] for g in range(GROUPS)]
        users = [tally.users] * GROUPS
        if are_enough(sums, users, is_share=False):
            low, high = ends_of(sums, users, is_share=False, is_signed=is_signed)
            self.put_ends(out, names, segment, (low / unit, high / unit), **labels)


def of_rates(rates: list[int], users: int) -> Ends:
    """The interval of a mean over users, of whom those without a rate have 0."""
    every = [rate / UNIT for rate in rates] + [0.0] * (users - len(rates))
    reach = Z * stdev(every) / sqrt(users)
    return max(mean(every) - reach, 0.0), min(mean(every) + reach, 1.0)
