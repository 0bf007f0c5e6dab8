"""Composites, from the values of their parts; their intervals, by moving one group at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from scipy.stats import t as student

from streamer.settings.model import Settings
from streamer.settings.own_metrics import Composite, CompositePart

from . import items, off_policy, own_ratios, scores
from .dimensions import Kept, Segment
from .intervals import CTR, CVR, GROUPS, LEAST, RATIOS, Cell, Intervals, Ratio
from .shape import Labels, Readings
from .sink import Sink
from .span import Span
from .user_days import Fact

DAY_MS = 86_400_000
STEP = Fraction(1, 10**7)
"""How far a group is moved, as a share of itself."""
MATURITIES = ("provisional", "mature")


def day_before(span: Span) -> Span:
    shift = DAY_MS // span.pane_ms
    return replace(span, first=span.first - shift, last=span.last - shift)


def series_of(part: CompositePart) -> tuple[str, dict[str, str]]:
    """The name of a part's series, and what labels it has beside window, segment and maturity."""
    name, _, rest = part.metric.partition("@")
    if name in off_policy.PARTS:
        return name, {"policy": rest}
    if name.startswith("classifier"):
        return name, {"threshold": rest}
    if name == "ratio":
        return name, {"ratio": rest}
    if name == "intra_list_diversity_ratio":
        return name, {"k": rest}
    if rest:
        k, _, option = rest.partition(".")
        return name, {"k": k, "over": option or "all"}
    return name, {}


def values_of(readings: Readings, part: CompositePart, maturity: str) -> dict[Labels, float]:
    """Window and segment → the value of a metric."""
    name, wanted = series_of(part)
    found = {}
    for (key, labels), value in readings.items():
        if key != f"streamer_{name}":
            continue
        own = dict(labels)
        if own.pop("maturity", maturity) != maturity:
            continue
        if all(own.pop(label, None) == text for label, text in wanted.items()):
            found[frozenset(own.items())] = float(value)
    return found


def read_composites(out: Sink, past: Readings, settings: Settings, label: str) -> None:
    """The values of a window; ``past``: what the same one showed a day before."""
    now = {key: x for key, x in out.readings.items() if ("window", label) in key[1]}
    for composite in settings.composites:
        total = sum(abs(part.weight) for part in composite.parts)
        for maturity in MATURITIES:
            terms = []
            for part in composite.parts:
                values = values_of(now, part, maturity)
                if part.against == "day_before":
                    then = values_of(past, part, maturity)
                    values = {s: x / then[s] for s, x in values.items() if then.get(s)}
                scale = part.weight / total / (part.target or 1)
                terms.append({segment: scale * x for segment, x in values.items()})
            for segment in set.intersection(*map(set, terms)):
                labels = dict(segment) | {"composite": composite.name, "maturity": maturity}
                out.put("composite", labels, sum(term[segment] for term in terms))


# Intervals ------------------------------------------------------------------------------------


def ratio_of(metric: str, settings: Settings) -> tuple[Ratio, int | None] | None:
    """What is summed by group for a metric, and the time that it waits; None for metrics of
    slates."""
    horizons = settings.attribution
    declared: list[tuple[Ratio, int | None]] = [(r, None) for r in RATIOS]
    declared += [(CTR, horizons.click_ms), (CVR, horizons.conversion_ms)]
    for ratio, horizon_ms in declared:
        if ratio.lower.replace("_lower", "") == metric:
            return ratio, horizon_ms
    if metric in own_ratios.ratios(settings):
        unit = own_ratios.unit_of(settings, metric.partition("@")[2])
        return Ratio("", "", *own_ratios.ratios(settings)[metric], unit), None
    if metric in items.ratios(settings):
        return Ratio("", "", *items.ratios(settings)[metric], items.MILLION), None
    of_events = scores.ratios(settings) | off_policy.ratios(settings)
    if metric not in of_events:
        return None
    unit = (scores if metric in scores.ratios(settings) else off_policy).unit_of(metric)
    return Ratio("", "", *of_events[metric], unit), horizons.click_ms


@dataclass
class Sides:
    """Sums by group of one part: x and y now, and where it is compared, a day before."""

    part: CompositePart
    unit: int
    sums: list[list[list[int]]]

    @property
    def is_known(self) -> bool:
        are_enough = all(sum(n > 0 for n in y) >= LEAST for _, y in self.sums)
        return are_enough and all(sum(x) for x, _ in self.sums[1:])

    @property
    def occupied(self) -> int:
        return min(sum(1 for a, b in zip(x, y, strict=True) if a or b) for x, y in self.sums)

    def value(self, group: int, step: Fraction) -> Fraction:
        """Its value where there is by ``step`` more of one group."""
        rates = []
        for x, y in self.sums:
            a, b = (sum(these) + step * these[group] for these in (x, y))
            rates.append(Fraction(a) / Fraction(b))
        if len(rates) > 1:
            return rates[0] / rates[1]
        return rates[0] / self.unit / Fraction(self.part.target or 1)


def may_be_below_0(metric: str, settings: Settings) -> bool:
    base, _, name = metric.partition("@")
    is_own = base == "ratio" and own_ratios.may_be_below_0(settings, name)
    return is_own or base.startswith("doubly")


def ends(
    composite: Composite, sides: list[Sides], settings: Settings
) -> tuple[float, float] | None:
    if not all(side.is_known for side in sides):
        return None
    weights = [Fraction(part.weight) for part in composite.parts]
    total = sum(map(abs, weights))

    def value(group: int, step: Fraction) -> Fraction:
        pairs = zip(weights, sides, strict=True)
        return sum((w * s.value(group, step) for w, s in pairs), Fraction(0)) / total

    squares = Fraction(0)
    for group in range(GROUPS):
        moved = (value(group, STEP) - value(group, -STEP)) / (2 * STEP)
        squares += moved**2
    k = min(side.occupied for side in sides)
    reach = float(student.ppf(0.975, k - 1)) * sqrt(k / (k - 1) * squares)
    middle = float(value(0, Fraction(0)))
    signed = any(p.weight < 0 or may_be_below_0(p.metric, settings) for p in composite.parts)
    return middle - reach if signed else max(middle - reach, 0.0), middle + reach


Cells = dict[Segment, Cell]


class CompositeIntervals:
    """Those of one window at S, and of the same one a day before."""

    def __init__(self, span: Span, stream_ms: int, kept: Kept, settings: Settings) -> None:
        self.settings = settings
        self.days = [
            Intervals(span, stream_ms, kept, settings),
            Intervals(day_before(span), stream_ms - DAY_MS, kept, settings),
        ]
        self.label = span.label

    def read(self, out: Sink, facts: Iterable[Fact], has_past: bool) -> None:
        if "intervals" not in self.settings.metrics.families or not self.settings.composites:
            return
        facts = list(facts)
        known: dict[tuple[int, int | None], Cells] = {}
        for composite in self.settings.composites:
            found = [ratio_of(part.metric, self.settings) for part in composite.parts]
            ratios = [pair for pair in found if pair is not None]
            if len(ratios) < len(found):
                continue
            for maturity in MATURITIES:
                parts = []
                for part, (ratio, horizon_ms) in zip(composite.parts, ratios, strict=True):
                    wait = horizon_ms if maturity == "mature" else None
                    days = range(2 if part.against == "day_before" else 1)
                    for day in days:
                        if (day, wait) not in known:
                            known[day, wait] = self.cells(day, wait, facts, has_past)
                    parts.append((part, ratio, [known[day, wait] for day in days]))
                self.put(out, composite, maturity, parts)

    def cells(self, day: int, wait: int | None, facts: list[Fact], has_past: bool) -> Cells:
        of = self.days[day]
        if day and not has_past:
            return {}
        return of.cells(facts, (lambda ms: True) if wait is None else of.mature(wait))

    def put(
        self,
        out: Sink,
        composite: Composite,
        maturity: str,
        parts: list[tuple[CompositePart, Ratio, list[Cells]]],
    ) -> None:
        segments = set.intersection(*(set(days[0]) for _, _, days in parts))
        for segment in segments:
            sides = []
            for part, ratio, days in parts:
                cells = [cells.get(segment, Cell()) for cells in days]
                sums = [
                    [
                        [c.sums[name][g] for g in range(GROUPS)]
                        for name in (ratio.above, ratio.below)
                    ]
                    for c in cells
                ]
                sides.append(Sides(part, ratio.unit, sums))
            both = ends(composite, sides, self.settings)
            if both is not None:
                labels = {"window": self.label, "composite": composite.name, "maturity": maturity}
                for name, value in zip(("composite_lower", "composite_upper"), both, strict=True):
                    out.put(name, labels | dict(segment), value)
