"""What a treatment has cost so far, and whether it has cost anything: by who has a value at all.

Of K users with a value, k are of the treatment. If it changes nothing, each is of it with the
planned probability q (converters.py). Had it the control's rate, it would have (K - k) q / (1 - q)
of them: the difference is lost. That nothing is lost is excluded by the same Bayes factor against
shares below q alone. With m, the part of the prior below q,

    BF = m BF(below) + (1 - m) BF(above), and BF(above) <= 1 where k / K < q,

as the likelihood falls from k / K on: BF(below) >= (BF - 1 + m) / m, whose inverse is a p-value at
any number of looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from streamer.stats.distributions import beta_cdf
from streamer.stats.experiments.converters import PRIORS, Converters

ALPHA = 0.001
"""At which it is excluded that nothing is lost, over all looks and treatments."""


@dataclass(frozen=True, slots=True)
class Loss:
    """So many of what the metric counts; ``low`` and ``high`` hold at every look. ``p_value``: of
    no loss."""

    value: float
    low: float
    high: float
    p_value: float


def loss_of(who: Converters, q: float, each: float) -> Loss:
    """``q``: the planned share of the treatment among its users and the control's; ``each``: what a
    user of the control who has any has on average.

    >>> from streamer.stats.experiments.converters import converters
    >>> from streamer.stats.experiments.plan import Plan
    >>> from streamer.stats.experiments.sums import ArmSums
    >>> some = [ArmSums(5000, y=5000, yy=5000, nonzero=n) for n in (49, 101)]
    >>> (who,) = converters(Plan("A", {"A": 1, "B": 1}), [("B", *some)])
    >>> found = loss_of(who, 0.5, 1.0)
    >>> round(found.value), round(found.low), round(found.high), found.p_value < 0.001
    (52, 6, 91, True)
    """
    odds, total = q / (1 - q), who.treatment + who.control

    def lost(share: float) -> float:
        return each * total * ((1 - share) * odds - share)

    def share_at(change: float | None) -> float:
        its = odds * (1 + (change if change is not None else 1e9))
        return its / (1 + its)

    if not total:
        return Loss(0.0, 0.0, 0.0, 1.0)
    observed = who.treatment / total
    ends = (lost(share_at(who.high)), lost(share_at(who.low)))
    return Loss(lost(observed), *ends, _p_value(who, q) if observed < q else 1.0)


def _p_value(who: Converters, q: float) -> float:
    below = sum(beta_cdf(a * q, a * (1 - q), q) for a in _strengths(q)) / len(PRIORS)
    bayes_factor = exp(min(700.0, who.log_bayes_factor))
    return min(1.0, below / max(1e-300, bayes_factor - 1 + below))


def _strengths(q: float) -> list[float]:
    return [width / min(q, 1 - q) for width in PRIORS]
