"""Off-policy evaluation: the click-through rate that another policy would have had.

The impressions were logged under a policy that showed each item with a known probability
(`propensity`); for every target of ``[[policies]]`` they say with what probability it would have
shown the same item there. The weight w of an impression is the target's probability over that of
the logging policy, at most ``metrics.max_weight``: a whole number of 1e-6, rounded once. Squares
have the same unit; doubly robust values are whole numbers of 1e-9. With y = 1 where an impression
was clicked, r the clicks expected of the shown item and e those expected where the target chooses,

    IPS Σwy / n,    SNIPS Σwy / Σw,    doubly robust Σ(e + w (y - r)) / n.

Sources: D Dudík, Langford, Li, *Doubly Robust Policy Evaluation and Learning*, 2011;
S Swaminathan, Joachims, *The Self-Normalized Estimator for Counterfactual Learning*, 2015.

Two of three items were clicked. The target shows the first twice as often, the second half as
often, and the third never, so that clicks weigh 2 and 0:

    >>> from streamer.testing import value_of
    >>> weights = {"a": (0.25, 0.5, 0.2), "b": (0.5, 0.25, 0.1), "c": (0.5, 0.0, 0.4)}
    >>> shown = [
    ...     {"item_id": item, "propensity": p, "p_new": target, "reward_estimate": r, "q": 0.3}
    ...     for item, (p, target, r) in weights.items()
    ... ]
    >>> events = [{"type": "impression", "request_id": "r", "items": shown}]
    >>> events += [{"type": "click", "request_id": "r", "item_id": item} for item in "ac"]
    >>> settings = {"metrics": {"families": ["off_policy"]}}
    >>> settings |= {"policies": [{"name": "new", "propensity": "p_new", "estimate": "q"}]}
    >>> def read(name):
    ...     found = value_of(events, name, settings, policy="new", maturity="provisional")
    ...     return round(found, 6)
    >>> read("ips_ratio"), read("snips_ratio"), read("mean_weight_ratio")
    (0.666667, 0.8, 0.833333)

Doubly robust, 0.3 being expected of the target: 0.3 + 2 · 0.8, 0.3 - 0.5 · 0.1 and 0.3, over 3; and
2.5² / (2² + 0.5²):

    >>> read("doubly_robust_ratio"), read("effective_sample_size")
    (0.816667, 1.470588)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from streamer.encoding.arrays import I64
from streamer.metrics.definition import (
    Declarations,
    Declared,
    Family,
    Series,
    Variant,
    ratio,
)
from streamer.metrics.layout import Stat
from streamer.metrics.ratios import Ratio, RatioBy, declare, matured
from streamer.metrics.sums import UNITS, Sum, named
from streamer.settings.model import Settings

_HORIZON = "click_ms"
_LABELS = ("policy", "maturity")
_IMPRESSIONS = "impressions with a propensity and a probability of the policy"
_ESTIMATED = f"{_IMPRESSIONS} and a reward_estimate"


_DOUBLY_ROBUST = "doubly_robust"
_ADDED = (
    *("impressions", "clipped", "weight", "weight_square", "clicked_weight"),
    *("estimated", _DOUBLY_ROBUST),
)


def name_of(what: str, policy: str) -> str:
    """The name of a sum of a policy.

    >>> name_of("weight", "new")
    'off_policy.weight@new'
    """
    return named(f"off_policy.{what}", policy)


def _stats(settings: Settings) -> tuple[Stat, ...]:
    names = [name_of(what, policy.name) for policy in settings.policies for what in _ADDED]
    return tuple(Stat(name, _largest(name, settings.metrics.max_weight)) for name in names)


def _largest(name: str, most: float) -> int:
    base = name.partition("@")[0]
    if UNITS[base] == 1:
        return 1
    power = 2 if base.endswith("_square") else 1
    return round(most**power * UNITS[base])


@dataclass(frozen=True)
class ByPolicy(RatioBy):
    """A ratio for each of ``[[policies]]``; ``above``, ``below``: what is added up."""

    label: ClassVar[str] = "policy"
    setting: ClassVar[str] = "policies"
    above: str
    below: str

    @property
    def listed(self) -> str:
        """Those with an estimate alone have a doubly robust one."""
        return "policies with an estimate" if self.above == _DOUBLY_ROBUST else self.setting

    def variants(self, settings: Any) -> Iterator[tuple[dict[str, str], Ratio]]:
        for policy in settings.policies:
            if self.above == _DOUBLY_ROBUST and policy.estimate is None:
                continue
            yield {self.label: policy.name}, self.of(policy.name)

    def of(self, policy: str) -> Ratio:
        """The ratio for one policy."""
        name, title = (f"{text}@{policy}" for text in (self.name, self.title))
        is_signed = self.above == _DOUBLY_ROBUST
        above = Sum(name_of(self.above, policy), self.above, is_signed=is_signed)
        below = Sum(name_of(self.below, policy))
        return Ratio(
            *(name, title, above, below, self.doc, self.unit),
            horizon=_HORIZON,
            is_weighted=True,
        )


BY_POLICY = (
    ByPolicy(
        *("ips_ratio", "Click-through rate by IPS"),
        "Click-through rate that the policy would have had, by inverse propensity scoring. It "
        "is unbiased if no weight is clipped and the logging policy may show every item that "
        "this policy would show.",
        "sum of weights of clicked impressions / impressions",
        f"absent without {_IMPRESSIONS}",
        *("clicked_weight", "impressions"),
        source="D",
        support="window_off_policy_impressions",
    ),
    ByPolicy(
        *("snips_ratio", "Click-through rate by SNIPS"),
        "Click-through rate that the policy would have had, by self-normalised inverse "
        "propensity scoring: divided by the sum of weights instead of impressions. It varies "
        "less than ips_ratio, with a small bias in small samples.",
        "sum of weights of clicked impressions / sum of weights",
        "absent without a weight above 0",
        *("clicked_weight", "weight"),
        source="S",
    ),
    ByPolicy(
        *("doubly_robust_ratio", "Click-through rate, doubly robust"),
        "Click-through rate that the policy would have had, from the rewards that a model "
        "expects, corrected by the model's weighted errors. It is right if the propensities or "
        "the expectations are right. It may be below 0.",
        "sum of (expected + weight * (clicked - reward_estimate)) / impressions",
        f"absent without {_ESTIMATED}",
        *(_DOUBLY_ROBUST, "estimated"),
        source="D",
        support="window_doubly_robust_impressions",
    ),
    ByPolicy(
        *("mean_weight_ratio", "Mean weight"),
        "Mean weight, which should be 1 in the long run. Otherwise propensities are wrong, "
        "weights are clipped, or the policy shows items that the logging policy never shows.",
        "sum of weights / impressions",
        f"absent without {_IMPRESSIONS}",
        *("weight", "impressions"),
        unit="weight per impression",
        support="window_off_policy_impressions",
    ),
)
"""Means over impressions: they have intervals, and experiments and alerts compare them."""

metric = Declarations()
declare(metric, *BY_POLICY)


def _by_policy(*quantities: str) -> Callable[[Declared], Iterator[Variant]]:
    """What reads these of each policy: all, and the mature ones."""

    def variants(of: Declared) -> Iterator[Variant]:
        for policy in of.settings.policies:
            names = (name_of(each, policy.name) for each in quantities)
            for labels, reads in matured(_HORIZON, *names)(of):
                yield Variant({"policy": policy.name, **labels}, reads)

    return variants


@metric(
    "effective_sample_size",
    formula="(sum of weights)² / sum of weights²",
    unit="impressions",
    empty="absent where no weight is above 0.0007, as squares are rounded to 1e-6 each",
    labels=_LABELS,
    reads=_by_policy("weight", "weight_square"),
)
def effective_sample_size(weights: I64, squares: I64) -> Iterator[Series]:
    """Number of impressions of the policy itself that would be equally informative about its
    click-through rate. If it is far below the logged impressions, the estimates depend on few of
    them."""
    yield ratio(weights.astype(np.float64) ** 2 / UNITS["off_policy.weight"], squares)


_count = partial(metric.count, unit="impressions", labels=_LABELS)
_count(
    "window_off_policy_impressions",
    formula=_IMPRESSIONS,
    doc="Support of ips_ratio and mean_weight_ratio.",
    reads=_by_policy("impressions"),
)
_count(
    "window_doubly_robust_impressions",
    formula=_ESTIMATED,
    doc="Support of doubly_robust_ratio.",
    reads=_by_policy("estimated"),
)
_count(
    "window_clipped_impressions",
    formula="those whose weight is above metrics.max_weight",
    doc="Weights that were clipped; each lowers the estimates.",
    reads=_by_policy("clipped"),
)

FAMILY = Family("off_policy", tuple(metric.series), _stats)
FAMILY_OF = {each.name: FAMILY.name for each in BY_POLICY}
"""Metric → its family."""
