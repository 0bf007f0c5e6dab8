"""Sample-ratio mismatch: whether users are split over the arms as planned.

If they are not, something assigns, loses or doubles users of one arm, and the arms cannot be
compared (Fabijan et al. 2019, "Diagnosing sample ratio mismatch in online controlled experiments",
KDD).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, lgamma, log

from streamer.stats.distributions import chi2_upper

CONCENTRATION = 1_000.0
"""Weight of the prior around the planned split, in users. Lindon and Malek's package has 10,000,
with which a split of 60 : 40 takes two to three times as many users to be found."""
ALPHA = 0.001
"""p of the sequential test below which the split is wrong."""
ALPHA_FIXED = 1e-6
"""p of Pearson's test below which the split is wrong, too: so small that looking again and again
adds next to nothing to the false alarms (docs/experiments_statistics.md has measured both)."""
MIN_EXPECTED = 10.0
"""Users that Pearson's test must expect in every arm: with fewer its p is far too small."""


@dataclass(frozen=True, slots=True)
class Split:
    """Users by arm, ``expected`` their planned shares, and how likely that is.

    ``p_value`` is valid at any number of looks, ``p_value_fixed`` (Pearson) at one alone.
    ``is_wrong``: the arms cannot be compared.
    """

    users: dict[str, int]
    expected: dict[str, float]
    p_value: float
    p_value_fixed: float
    is_wrong: bool


def split(users: Mapping[str, int], shares: Mapping[str, float]) -> Split:
    """Users by arm against their planned shares, which add up to 1.

    >>> split({"A": 420, "B": 180}, {"A": 0.5, "B": 0.5}).is_wrong
    True
    """
    counts, planned = list(users.values()), [shares[arm] for arm in users]
    p_value, fixed = sequential(counts, planned), pearson(counts, planned)
    is_asked = sum(counts) * min(planned) >= MIN_EXPECTED
    is_wrong = p_value < ALPHA or (is_asked and fixed < ALPHA_FIXED)
    return Split(dict(users), dict(shares), p_value, fixed, is_wrong)


def pearson(counts: Sequence[int], shares: Sequence[float]) -> float:
    """p of Σ (n_i - n s_i)² / (n s_i) with k - 1 degrees of freedom; 1 without users.

    ``shares`` are above 0 and add up to 1.

    >>> round(pearson([5200, 4800], [0.5, 0.5]), 9)
    6.3342e-05
    """
    n = sum(counts)
    if n == 0:
        return 1.0
    terms = ((count - n * s) ** 2 / (n * s) for count, s in zip(counts, shares, strict=True))
    return chi2_upper(fsum(terms), len(counts) - 1)


def sequential(
    counts: Sequence[int], shares: Sequence[float], weight: float = CONCENTRATION
) -> float:
    """p that holds whenever one looks: 1 / BF, the Bayes factor of any split against the planned.

    Lindon and Malek 2022, "Anytime-valid inference for multinomial count data" (arXiv 2011.03567):
    with a Dirichlet(a) prior, a_i = ``weight`` · s_i, and A = Σ a_i,

        BF = Γ(A) / Γ(A + n) · Π Γ(a_i + n_i) / Γ(a_i) / Π s_i^n_i

    is a martingale with mean 1 while users are split as planned: it ever reaches 1/p with
    probability p at most. Users of an experiment only become more, so that every look is one at
    that martingale, and this p holds at whichever look one stops. It is that of the current counts
    alone and may rise again; the least p that was ever seen is valid, too.

    >>> sequential([50, 50], [0.5, 0.5])
    1.0
    >>> round(sequential([5200, 4800], [0.5, 0.5]), 6)
    0.002298
    """
    n = sum(counts)
    terms = [lgamma(weight), -lgamma(weight + n)]
    for count, share in zip(counts, shares, strict=True):
        prior = weight * share
        terms += [lgamma(prior + count), -lgamma(prior), -count * log(share)]
    return exp(min(0.0, -fsum(terms)))
