"""Which treatments of many experiments are discoveries, at a bounded rate of false ones.

An experiment alone ships a treatment without a lift with probability alpha at most. If a hundred
run at once and few treatments have a lift, many of those that are shipped have none. The *false
discovery rate* is the expected share of these among the discoveries, 0 if there is none. The e-BH
procedure bounds it (Wang and Ramdas 2022, "False discovery rate control with e-values", JRSS B 84,
arXiv 2009.02824): of K candidates with e-values E_i the discoveries are those with

    E_i ≥ K / (q k),    k the most for which k candidates are so.

The false discovery rate then is at most q times the share of candidates without a lift. *Whatever
the dependence*: experiments may share users. *At any time*: the expectation of each E_i is at most
1 at whatever look one stops, provided that no other experiment gives away its future (Wang,
Dandapanthula and Ramdas 2025, "Anytime-valid FDR control with the stopped e-BH procedure").

One look. For an experiment that is decided at its end, 1/p takes the place of E. If all candidates
are of this kind, this is the procedure of Benjamini and Hochberg (1995). It asks more of them: each
p must be independent of the other evidence, or depend on it positively (Benjamini and Yekutieli
2001). Arms that share a control do, and experiments that assign users independently of one another.

Candidates. Every treatment of every experiment counts in K, whatever became of it: without those
that look bad K would be too small. A treatment that may not be shipped for another reason (its
verdict, a guardrail, ``min_days``) is not *eligible*, and its evidence counts as 0, which is never
more than it was. So q bounds the share of false ones among those that are shipped. It would not if
some of the discoveries were left out afterwards.

The first decision. If the evidence of a discovery is kept as it was at that look, it stays a
discovery while K stays the same, and q still holds, for that experiment was stopped there. The
largest E that was ever seen is no e-value (Tavyrikov, Goeman and de Heide 2025, "Carefree multiple
testing with e-processes"). docs/experiments_statistics.md has measured these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from streamer.stats.experiments.anytime import LARGEST, e_value_above
from streamer.stats.experiments.converters import SHARE_OF_ALPHA, Converters
from streamer.stats.experiments.estimate import Estimate, Inference
from streamer.stats.experiments.plan import Plan, Rule
from streamer.stats.experiments.readout import Comparison
from streamer.stats.experiments.verdict import Outcome

EXACT_WEIGHT = SHARE_OF_ALPHA / (1 + SHARE_OF_ALPHA)
"""Weight of the exact test's e-value, beside 1 less it of the interval's: as their alphas are."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A treatment of an experiment. ``evidence`` that it is better: an e-value, or 1/p of a
    ``single_look``. ``is_eligible``: nothing else is in the way of shipping it."""

    experiment: str
    arm: str
    evidence: float
    single_look: bool = False
    is_eligible: bool = True

    @property
    def counted(self) -> float:
        """The evidence that counts."""
        return self.evidence if self.is_eligible else 0.0


@dataclass(frozen=True, slots=True)
class Discovery:
    """Whether a candidate is one: if it has the evidence that it ``needs``, the others being what
    they are."""

    candidate: Candidate
    needs: float

    @property
    def is_made(self) -> bool:
        """Whether it is a discovery."""
        return self.candidate.counted >= self.needs

    @property
    def words(self) -> str:
        """What it needs, and has.

        >>> Discovery(Candidate("ranker", "B", 120.4), 1000.0).words
        'needs an e-value of 1,000, has 120'
        >>> Discovery(Candidate("ranker", "B", 4000.0, single_look=True), 1000.0).words
        'needs a p-value of 0.001, has 0.00025'
        """
        has = self.candidate.evidence
        if self.candidate.single_look:
            p = 1 / has if has > 0 else 1.0
            return f"needs a p-value of {1 / self.needs:.2g}, has {p:.2g}"
        return f"needs an e-value of {_number(self.needs)}, has {_number(has)}"


def discoveries(candidates: Sequence[Candidate], q: float) -> list[Discovery]:
    """Of each candidate, in their order, at a false discovery rate of ``q``.

    >>> evidence = {"search": 900.0, "feed": 35.0, "mail": 31.0, "ads": 0.4}
    >>> made = discoveries([Candidate(name, "B", e) for name, e in evidence.items()], 0.1)
    >>> [each.candidate.experiment for each in made if each.is_made], round(made[0].needs, 1)
    (['search', 'feed', 'mail'], 13.3)
    >>> made[3].words
    'needs an e-value of 10, has 0.4'
    """
    ranked = sorted((each.counted for each in candidates), reverse=True)
    return [Discovery(each, _needed(ranked, each.counted, q)) for each in candidates]


def _needed(ranked: Sequence[float], own: float, q: float) -> float:
    """K / (q k) for the most k for which k - 1 of the others have it. ``ranked``: all evidence, the
    largest first, ``own`` among it."""
    others = list(ranked)
    others.remove(own)
    count = len(ranked)
    passed = (k for k, evidence in enumerate(others, 2) if evidence >= count / k / q)
    return count / max(passed, default=1) / q


def _number(evidence: float) -> str:
    return f"{evidence:,.0f}" if 100 <= evidence < 1e6 else f"{evidence:.3g}"


# The evidence ------------------------------------------------------------------------------------


def candidate(
    experiment: str, plan: Plan, rule: Rule, comparison: Comparison, *, is_eligible: bool
) -> Candidate:
    """A treatment as its experiment's primary metric finds it."""
    its = evidence(plan, rule, comparison)
    return Candidate(experiment, comparison.arm, its, plan.at_end, is_eligible)


def evidence(plan: Plan, rule: Rule, comparison: Comparison) -> float:
    """That a treatment is better by a metric, without a correction over the arms.

    It comes from the interval if there is one, and otherwise from who has any value. To take
    whichever of two e-values there is would be too much; a weighted mean of both is an e-value,
    and less than that is taken here. A metric without the exact test has the interval's alone.
    With a wrong split, and before the one look at the end, there is no evidence.
    """
    is_early = plan.at_end and not plan.is_over
    if is_early or comparison.verdict.outcome is Outcome.BROKEN_SPLIT:
        return 0.0
    who, lift = comparison.converters, comparison.absolute
    weight = 0.0 if who is None else EXACT_WEIGHT
    if (interval := lift.deciding(plan)) is not None:
        return (1 - weight) * _of_lift(plan, rule, comparison.users, lift, interval)
    if who is None:
        return 0.0
    return weight * _of_converters(plan, rule, comparison, who)


def _of_lift(plan: Plan, rule: Rule, users: int, lift: Estimate, interval: Inference) -> float:
    """One-sided: of the look at the end p / 2 is that of a gain if the lift is one."""
    assert lift.value is not None
    assert lift.stderr is not None
    gain = lift.value if rule.higher_is_better else -lift.value
    if not plan.is_final:
        return e_value_above(gain / lift.stderr, users, plan.rho2)
    return _inverse(interval.p_value / 2 if gain > 0 else 1 - interval.p_value / 2)


def _of_converters(plan: Plan, rule: Rule, comparison: Comparison, who: Converters) -> float:
    """The Bayes factor, where more have any than planned (or fewer, where lower is better).

    It is an e-value itself: of expectation 1 at any look. If the share of the treatment is another
    one on the bad side of the planned one, the Bayes factor against that share is, and the one
    against the planned share is less on the good side, for it grows with the distance from the
    observed share. So it is of expectation 1 at most without a gain (Wasserman, Ramdas and
    Balakrishnan 2020, "Universal inference"). A p of 1 is a Bayes factor of 1 or any less.
    """
    own, control = plan.shares[comparison.arm], plan.shares[plan.control]
    apart = who.treatment * control - who.control * own
    value = comparison.absolute.value
    if rule.is_amount and (value is None or (value > 0) != (apart > 0)):
        return 0.0
    is_gain = apart > 0 if rule.higher_is_better else apart < 0
    return _inverse(who.p_value) if is_gain and who.p_value < 1 else 0.0


def _inverse(p_value: float) -> float:
    return 1 / max(p_value, exp(-LARGEST))
