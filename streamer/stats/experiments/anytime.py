"""Intervals and p-values that hold at every look: asymptotic confidence sequences.

Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform central limit theory and
asymptotic confidence sequences" (Annals of Statistics; arXiv 2103.06476), theorem 2.2: for a mean
of N observations with standard deviation σ

    mean ± σ √( 2 (N ρ² + 1) / (N² ρ²) · ln( √(N ρ² + 1) / α ) )

covers at all N at once with probability 1 - α, asymptotically.

Two arms. Users arrive one after the other, each assigned at random with probability π_t or π_c.
The difference of means is, to first order, the true one and the mean over all N = n_t + n_c users
of (x - R_t) / π_t for who was treated and -(x - R_c) / π_c for who was not: independent terms of
variance σ² = σ_t² / π_t + σ_c² / π_c (section 3 of the paper, on average treatment effects). With
the observed shares n_t / N and n_c / N this is σ² = N · stderr². So the theorem holds with
σ = √N · stderr, for lifts of linearised ratios (lift.py) too, and N cancels but for z = N ρ²:

    lift ± stderr √( (1 + 1/z) (ln(1 + z) + 2 ln(1/α)) ).

The same boundary is where Robbins' mixture of likelihood ratios over normal effects,

    E = (1 + z)^(-1/2) exp( z / (1 + z) · T² / 2 ),  T = lift / stderr,

reaches 1/α. Without a lift E has expectation 1 at any stopping time, so that p = min(1, 1/E) is a
p-value whenever one looks (Ville's inequality). It is a function of the current sums: it may rise
again, and the least p that was ever seen is valid, too.

What N counts are users. While more users come this is the theorem; what the same users do later
sharpens the lift at the same N, which the theorem does not speak of. docs/experiments_statistics.md
has measured it.
"""

from __future__ import annotations

from math import erfc, exp, inf, log, log1p, sqrt

LARGEST = 700.0
"""ln of the largest e-value: what is beyond it is said to be that, so that it is a number."""


def rho_squared(alpha: float, tuned_users: float) -> float:
    """ρ² for which the interval at ``tuned_users`` users of both arms is the narrowest.

    z = N ρ² solves z = ln(1 + z) + 2 ln(1/α), that is z = -W₋₁(-α²/e) - 1 with Lambert's W; the
    paper's appendix on optimising ρ. By Newton's method from the right of the root.

    >>> round(rho_squared(0.05, 1), 6)
    8.211968
    """
    need = -2 * log(alpha)
    z = need + 2 * sqrt(need) + 1
    while True:
        step = (z - log1p(z) - need) * (1 + z) / z
        z -= step
        if step <= 1e-14 * z:
            return z / tuned_users


def critical(alpha: float, users: float, rho2: float) -> float:
    """How many standard errors the interval reaches to both sides, with ``users`` in both arms."""
    z = users * rho2
    return sqrt((1 + 1 / z) * (log1p(z) - 2 * log(alpha))) if z > 0 else inf


def log_e_value(t: float, users: float, rho2: float) -> float:
    """ln E of a lift of ``t`` standard errors, with ``users`` in both arms."""
    z = users * rho2
    return z / (1 + z) * t * t / 2 - log1p(z) / 2


def e_value(t: float, users: float, rho2: float) -> float:
    """E: evidence of a lift to either side, of expectation 1 without one, whenever one looks.

    >>> rho2 = rho_squared(0.05, 5000)
    >>> round(e_value(critical(0.05, 800, rho2), 800, rho2), 9)
    20.0
    """
    return exp(min(LARGEST, log_e_value(t, users, rho2)))


def e_value_above(t: float, users: float, rho2: float) -> float:
    """Evidence of a lift above 0: its expectation is at most 1 if there is none, or a loss.

    The same mixture over the effects above 0 alone, doubled: E times 2 Φ(t √(z / (1 + z))), of the
    effects' distribution given the data. Each likelihood ratio of an effect above 0 against none
    falls in expectation where the true one is below 0. With a lift it is E to twice E, so that E
    where ``t`` is above 0, and 0 elsewhere, would be valid too, and less.

    >>> e_value_above(0.0, 800, 0.002) == e_value(0.0, 800, 0.002)
    True
    >>> round(e_value_above(4.0, 800, 0.002) / e_value(4.0, 800, 0.002), 3)
    1.998
    """
    z = users * rho2
    return e_value(t, users, rho2) * erfc(-t * sqrt(z / (1 + z) / 2))


def p_value(t: float, users: float, rho2: float) -> float:
    """p = min(1, 1/E) of a lift of ``t`` standard errors: at most α exactly where the interval
    excludes 0.

    >>> rho2 = rho_squared(0.05, 5000)
    >>> round(p_value(critical(0.05, 800, rho2), 800, rho2), 12)
    0.05
    """
    return min(1.0, exp(-log_e_value(t, users, rho2)))
