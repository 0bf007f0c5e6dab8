"""Where readings are collected, and the arithmetic that several of them share."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from .shape import Readings

QUANTILES = {"0.5": Fraction(1, 2), "0.9": Fraction(9, 10), "0.99": Fraction(99, 100)}


class Sink:
    """Collects readings; a series that comes twice is a mistake of the oracle."""

    def __init__(self) -> None:
        self.readings: Readings = {}

    def put(self, name: str, labels: dict[str, str], value: int | float) -> None:
        key = (f"streamer_{name}", frozenset(labels.items()))
        assert key not in self.readings, key
        self.readings[key] = value

    def support(self, name: str, labels: dict[str, str], value: int | float) -> None:
        """A count; absent when 0."""
        if value:
            self.put(name, labels, value)

    def ratio(
        self, name: str, labels: dict[str, str], top: int | Fraction, bottom: int | Fraction
    ) -> None:
        """A ratio, rounded once; absent when the denominator is 0."""
        if bottom:
            self.put(name, labels, float(Fraction(top) / Fraction(bottom)))

    def histogram(
        self, name: str, labels: dict[str, str], bounds_seconds: Iterable[int], values_ms: list[int]
    ) -> None:
        """A Prometheus histogram of times."""
        for bound in bounds_seconds:
            n = sum(ms <= 1000 * bound for ms in values_ms)
            self.put(f"{name}_bucket", {"le": f"{bound}.0", **labels}, n)
        self.put(f"{name}_bucket", {"le": "+Inf", **labels}, len(values_ms))
        self.put(f"{name}_count", labels, len(values_ms))
        self.put(f"{name}_sum", labels, sum(values_ms) / 1000)

    def quantiles(self, name: str, labels: dict[str, str], values_ms: list[int]) -> None:
        """Quantile q of n values is the one at rank ceil(q n), in seconds; absent without any."""
        ranked = sorted(values_ms)
        for text, q in QUANTILES.items() if ranked else ():
            rank = max(1, -(-q.numerator * len(ranked) // q.denominator))
            self.put(name, {"quantile": text, **labels}, ranked[rank - 1] / 1000)
