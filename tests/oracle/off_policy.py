"""Off-policy estimates, impression by impression: what each says of a policy, and what is shown."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from streamer.settings.model import Settings
from streamer.settings.own_metrics import Policy

from .dimensions import Kept, Segment
from .joining import Joins
from .ranking import rounded
from .shape import Row, Shown
from .sink import Sink
from .span import Span

MILLION, BILLION = 10**6, 10**9
Pair = tuple[str, str]
"""Components: numerator and denominator."""
PARTS = {
    "ips_ratio": ("weights clicked", "weighed"),
    "snips_ratio": ("weights clicked", "weights"),
    "doubly_robust_ratio": ("values", "estimated"),
    "mean_weight_ratio": ("weights", "weighed"),
}
UNITS = {"snips_ratio": 1, "doubly_robust_ratio": BILLION}
"""How many units of a numerator are 1, elsewhere a million."""


@dataclass(frozen=True)
class Weighed:
    """An impression with a weight for a policy."""

    weight: int
    is_clipped: bool
    expected: float | None
    """Clicks expected of the shown item, and where the policy chooses; None: not both are known."""
    estimate: float | None
    clicked: bool

    @property
    def value(self) -> int:
        """Doubly robust, in 1e-9."""
        if self.expected is None or self.estimate is None:
            return 0
        unclicked = rounded((self.estimate - self.weight / 1e6 * self.expected) * 1e9)
        return unclicked + self.clicked * self.weight * 1000

    def amount(self, component: str) -> int:
        of = {
            "weighed": 1,
            "weights": self.weight,
            "weights clicked": self.weight * self.clicked,
            "estimated": int(self.expected is not None),
            "values": self.value,
        }
        return of[component]

    @property
    def square(self) -> int:
        return math.floor(Fraction(self.weight**2, MILLION) + Fraction(1, 2))


def target_of(policy: Policy, shown: Shown) -> float | None:
    """How likely a policy shows the same item there."""
    if policy.propensity is not None:
        return shown.said.get(policy.propensity)
    if shown.position is None:
        return None
    return dict(enumerate(policy.positions, 1)).get(shown.position, 0.0)


def weigh(policy: Policy, shown: Shown, clicked: bool, most: float) -> Weighed | None:
    """None where the event does not say both probabilities."""
    target, propensity = target_of(policy, shown), shown.said.get("propensity")
    if target is None or propensity is None:
        return None
    ratio = Fraction(target) / Fraction(propensity)
    weight = rounded(most * 1e6 if ratio > most else target / propensity * 1e6)
    expected = shown.said.get("reward_estimate")
    estimate = None if policy.estimate is None else shown.said.get(policy.estimate)
    if expected is None or estimate is None:
        expected = estimate = None
    return Weighed(weight, target / propensity > most, expected, estimate, clicked)


def weighed_rows(joins: Joins, settings: Settings) -> Iterator[tuple[Row, str, Weighed]]:
    """(row, name of the policy, what the row says of it)."""
    for row in joins.rows if settings.policies else ():
        for policy in settings.policies:
            found = weigh(policy, row.shown, row.clicked, settings.metrics.max_weight)
            if found is not None:
                yield row, policy.name, found


# Ratios of sums -------------------------------------------------------------------------------


def ratios(settings: Settings) -> dict[str, Pair]:
    """Metric → its components, whatever the families."""
    return {
        f"{name}@{policy.name}": (f"{above} of {policy.name}", f"{below} of {policy.name}")
        for policy in settings.policies
        for name, (above, below) in PARTS.items()
        if name != "doubly_robust_ratio" or policy.estimate is not None
    }


def unit_of(metric: str) -> int:
    return UNITS.get(metric.partition("@")[0], MILLION)


def added(joins: Joins, settings: Settings) -> Iterator[tuple[Row, str, int]]:
    """(row, component, amount) of what intervals, experiments and alerts need."""
    components = {component for pair in PARTS.values() for component in pair}
    for row, policy, weighed in weighed_rows(joins, settings):
        for component in components:
            if units := weighed.amount(component):
                yield row, f"{component} of {policy}", units


# What is shown --------------------------------------------------------------------------------


@dataclass
class OffPolicyReadings:
    """What is shown of a log's policies."""

    joins: Joins
    kept: Kept
    settings: Settings

    def read(self, out: Sink, span: Span, stream_ms: int) -> None:
        """All series of a window."""
        if "off_policy" not in self.settings.metrics.families:
            return
        wait_ms = self.settings.attribution.click_ms + self.settings.time.max_lateness_ms
        found: dict[tuple[Segment, str, str], list[Weighed]] = defaultdict(list)
        for row, policy, weighed in weighed_rows(self.joins, self.settings):
            at_ms = row.event.event_ms
            if span.covers(at_ms):
                is_mature = span.is_mature(at_ms, wait_ms, stream_ms)
                for segment in self.kept.segments(row.event.dims):
                    found[segment, policy, "provisional"].append(weighed)
                    if is_mature:
                        found[segment, policy, "mature"].append(weighed)
        for (segment, policy, maturity), some in found.items():
            labels = {"window": span.label, "policy": policy, "maturity": maturity}
            read_policy(out, labels | dict(segment), some)


def read_policy(out: Sink, labels: dict[str, str], some: list[Weighed]) -> None:
    for name, pair in PARTS.items():
        top, bottom = (sum(w.amount(component) for w in some) for component in pair)
        out.ratio(name, labels, top, bottom * unit_of(name))
    out.support("window_off_policy_impressions", labels, len(some))
    estimated = sum(w.amount("estimated") for w in some)
    out.support("window_doubly_robust_impressions", labels, estimated)
    out.support("window_clipped_impressions", labels, sum(w.is_clipped for w in some))
    total, squares = sum(w.weight for w in some), sum(w.square for w in some)
    out.ratio("effective_sample_size", labels, Fraction(total**2, MILLION), squares)
