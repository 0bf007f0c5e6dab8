"""Composites as alerts compare them: sums of groups whose ratio is the composite, and varies as it
does.

With c what the ratio X_p / Y_p of a part is multiplied by, and y and Y = Σ y_g of the first part,
group g of users has

    x_g = Σ c (X_p y_g / Y_p + (x_pg - X_p y_pg / Y_p) Y / Y_p),

so that Σ x_g / Σ y_g is the composite, and the residual of each group is by how much it moves it
(``metrics.composites``). Each term is a whole number of 1e-18, rounded once. Support is that of the
first part; there is none where any part is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from streamer.metrics.alert_series import AlertSeries
from streamer.metrics.compared_metrics import AlertMeasures, weeks_of
from streamer.query.alert_panes import (
    AlertPanes,
    Panes,
    RawTotals,
    Sums,
    WindowPanes,
    above,
    below,
    chosen_of,
    group_sums,
)
from streamer.query.segment_index import Segment
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings
from streamer.state.snapshot import View
from streamer.stats.alerting.explain import Explanation, explain_sum
from streamer.stats.alerting.past import Totals
from streamer.stats.experiments.composite import UNIT
from streamer.stats.random_groups import GroupSums


def panes_of(
    settings: Settings, alert: Alert, measures: AlertMeasures, views: Sequence[View]
) -> Panes:
    """What is stored of an alert's metric."""
    parts = [
        AlertPanes(settings, series, weeks_of(series), views)
        for series in measures.series_of(alert)
    ]
    factors = measures.ratios[alert.metric].factors
    return CompositePanes(parts, factors) if factors else parts[0]


class CompositeWindows:
    """Windows of a composite, from those of its parts."""

    def __init__(self, parts: Sequence[WindowPanes], factors: Sequence[Fraction]) -> None:
        self._of_parts, self._factors = parts, factors

    @property
    def series(self) -> AlertSeries:
        """How it is kept: that of the first part."""
        return self._of_parts[0].series

    @property
    def since_ms(self) -> int:
        """From when on every partition counts all parts."""
        return max(part.since_ms for part in self._of_parts)

    @property
    def first_day(self) -> int | None:
        """The first day on which all parts were counted as a whole; None if there is none."""
        days = [part.first_day for part in self._of_parts]
        known = [day for day in days if day is not None]
        return max(known) if len(known) == len(days) else None

    def window(self, last: int) -> Sums:
        """The window whose last pane is ``last``, a row for each part."""
        return _side_by_side([part.window(last) for part in self._of_parts])

    def totals(self, last: int) -> Mapping[Segment, RawTotals]:
        """Σx and Σy of each part in the window whose last pane is ``last``."""
        found = [part.totals(last) for part in self._of_parts]
        segments = dict.fromkeys(segment for of in found for segment in of)
        return {
            segment: tuple(n for of in found for n in of.get(segment, (0, 0)))
            for segment in segments
        }

    def grouped(self, window: Sums, segment: Segment) -> GroupSums:
        """The composite of one segment, or of all where it is everything."""
        chosen = chosen_of(window, segment)
        if not chosen:
            return GroupSums()
        return composite_of([group_sums(row) for row in np.sum(chosen, axis=0)], self._factors)

    def total_of(self, window: Mapping[Segment, RawTotals], segment: Segment) -> Totals:
        """The same of totals."""
        none = (0,) * (2 * len(self._of_parts))
        flat = [sum(part) for part in zip(none, *chosen_of(window, segment), strict=True)]
        x, y = flat[::2], [max(0, n) for n in flat[1::2]]
        if not all(y):
            return 0, 0
        terms = zip(self._factors, x, y, strict=True)
        return sum(_rounded(c * of_part * y[0] / n) for c, of_part, n in terms), y[0]


class CompositePanes(CompositeWindows):
    """What is stored of the parts of a composite."""

    def __init__(self, parts: Sequence[AlertPanes], factors: Sequence[Fraction]) -> None:
        super().__init__(parts, [UNIT * factor for factor in factors])
        self._parts = parts
        self.shown = parts[0].shown

    @property
    def has_lost_days(self) -> bool:
        """Whether days before the first one of a part may not be kept any more."""
        return any(part.has_lost_days for part in self._parts)

    def day(self, day: int) -> Sums:
        """The sums of one UTC day, a row for each part."""
        return _side_by_side([part.day(day) for part in self._parts])

    def of_segments(self, segments: Sequence[Segment]) -> Mapping[Segment, CompositeWindows]:
        """Windows of some segments, made for reading hundreds of them."""
        found = [part.of_segments(segments) for part in self._parts]
        return {s: CompositeWindows([its[s] for its in found], self._factors) for s in segments}

    def explained(self, now: Mapping[str, RawTotals], then: Mapping[str, RawTotals]) -> Explanation:
        """The change between totals by segment, the sum of what each part gave to it."""
        return explain_sum(
            [(c, _part(now, i), _part(then, i)) for i, c in enumerate(self._factors)]
        )


def composite_of(parts: Sequence[GroupSums], factors: Sequence[Fraction]) -> GroupSums:
    """Sums by group whose ratio is Σ c X / Y of the parts; nothing where one is empty.

    >>> clicks, sold = GroupSums.of([(0, 1, 4), (1, 3, 4)]), GroupSums.of([(0, 2, 2), (1, 0, 2)])
    >>> found = composite_of([clicks, sold], [Fraction(1000), Fraction(-500)])
    >>> found.value  # 1000 · 4 / 8 - 500 · 2 / 4
    Fraction(250, 1)
    >>> found.x[:2], found.y[:2]  # 1000 · (2 - 1) - 500 · (2 + 2)
    ((-1000, 3000), (4, 4))
    """
    if not all(part.support for part in parts):
        return GroupSums()
    first = parts[0]
    x = [0] * len(first.x)
    for part, factor in zip(parts, factors, strict=True):
        total, n = sum(part.x), part.support
        over = factor.denominator * n * n
        for group, (its_x, its_y) in enumerate(zip(part.x, part.y, strict=True)):
            moved = first.support * (its_x * n - total * its_y)
            amount = factor.numerator * (total * n * first.y[group] + moved)
            x[group] += (2 * amount + over) // (2 * over)
    return GroupSums(tuple(x), first.y)


def totals_of(window: Sums) -> dict[Segment, RawTotals]:
    """Sums of a window without groups."""
    found = {}
    for segment, sums in window.items():
        rows = sums.reshape(-1, sums.shape[-1])
        both = [(sum(above(row)), sum(below(row))) for row in rows]
        found[segment] = tuple(n for pair in both for n in pair)
    return found


def _part(side: Mapping[str, RawTotals], place: int) -> dict[str, Totals]:
    """Σx and Σy of one part."""
    return {name: (n[2 * place], n[2 * place + 1]) for name, n in side.items()}


def _side_by_side(windows: Sequence[Sums]) -> Sums:
    rows = next((len(sums) for window in windows for sums in window.values()), 0)
    none = np.zeros(rows, np.int64)
    segments = dict.fromkeys(segment for window in windows for segment in window)
    return {s: np.array([window.get(s, none) for window in windows]) for s in segments}


def _rounded(value: Fraction) -> int:
    """Halves go up."""
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)
