"""Sample-ratio mismatch: whether users are split over the arms as planned.

If they are not, something assigns, loses or doubles users of one arm, and the arms cannot be
compared (Fabijan et al. 2019, "Diagnosing sample ratio mismatch in online controlled experiments",
KDD).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, lgamma, log

from streamer.experiments.distributions import chi2_upper

CONCENTRATION = 10_000.0
"""Weight of the prior around the planned split, in users: that of Lindon and Malek's package."""


@dataclass(frozen=True, slots=True)
class Split:
    """Users by arm, ``expected`` their planned shares, and how likely that is.

    ``p_value`` is valid at any number of looks, ``p_value_fixed`` (Pearson) at one alone.
    """

    users: dict[str, int]
    expected: dict[str, float]
    p_value: float
    p_value_fixed: float


def split(users: Mapping[str, int], shares: Mapping[str, float]) -> Split:
    """Users by arm against their planned shares, which add up to 1."""
    counts, planned = list(users.values()), [shares[arm] for arm in users]
    return Split(dict(users), dict(shares), sequential(counts, planned), pearson(counts, planned))


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


def sequential(counts: Sequence[int], shares: Sequence[float]) -> float:
    """p that holds whenever one looks: 1 / BF, the Bayes factor of any split against the planned.

    Lindon and Malek 2022, "Anytime-valid inference for multinomial count data" (arXiv 2011.03567):
    with a Dirichlet(a) prior, a_i = 10,000 s_i, and A = Σ a_i,

        BF = Γ(A) / Γ(A + n) · Π Γ(a_i + n_i) / Γ(a_i) / Π s_i^n_i

    is a martingale with mean 1 while users are split as planned: it ever reaches 1/p with
    probability p at most. Users of an experiment only become more, so that every look is one at
    that martingale, and this p holds at whichever look one stops. It is that of the current counts
    alone and may rise again; the least p that was ever seen is valid, too.

    >>> sequential([50, 50], [0.5, 0.5])
    1.0
    >>> round(sequential([5200, 4800], [0.5, 0.5]), 6)
    0.02589
    """
    n = sum(counts)
    terms = [lgamma(CONCENTRATION), -lgamma(CONCENTRATION + n)]
    for count, share in zip(counts, shares, strict=True):
        prior = CONCENTRATION * share
        terms += [lgamma(prior + count), -lgamma(prior), -count * log(share)]
    return exp(min(0.0, -fsum(terms)))
