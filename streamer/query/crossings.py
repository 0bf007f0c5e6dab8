"""In which values of all dimensions together an alert's metric moved since the window before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamer.encoding.arrays import I64
from streamer.encoding.limbs import VALUE_BITS
from streamer.encoding.packed import ring_and_pane, row_and_place
from streamer.metrics.alert_series import PANES
from streamer.metrics.compared_metrics import AlertMeasures
from streamer.metrics.crossings import ABOVE, BELOW, HIGH, VALUES, WHO, Crossings
from streamer.query.segment_index import values_shown
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.labels import OTHER
from streamer.settings.model import Settings
from streamer.state.snapshot import SeriesView, View
from streamer.stats.alerting.crossings import Crossed, Found, search
from streamer.stats.random_groups import GROUPS

MAX_ROWS = 60_000
"""Rows that are searched, of all partitions: beyond it half of the users, and half of those."""


@dataclass(frozen=True)
class _Rows:
    """Rows of panes. ``who``: as rows have it; ``pane``: of which each is; ``bits``: the users who
    are in all of the panes have so many leading zero bits."""

    pane: I64
    who: I64
    x: I64
    y: I64
    values: I64
    bits: int

    @property
    def level(self) -> I64:
        """Leading zero bits of the users of each row."""
        return self.who // GROUPS

    def events(self, bits: int, first: int, unit: float) -> Crossed:
        """Those of users in a sample; ``first``: the first pane of the window now; ``unit``: what
        one of x is worth."""
        rows = self.level >= bits
        who, sums = self.who[rows], (self.x[rows], self.y[rows])
        now = self.pane[rows] >= first
        x, y = (part.astype(np.float64) for part in sums)
        return Crossed(self.values[rows], now, who % GROUPS, x * unit, y)


def crossings_document(
    settings: Settings, alert: Alert, measures: AlertMeasures, views: Sequence[View], at_ms: int
) -> dict[str, object] | None:
    """For JSON; None where the alert keeps no crossings. ``excess``: how much more (fewer below 0)
    of the numerator there was than if the values had moved as all else did, of all users."""
    if not alert.crossings:
        return None
    declared, unit = measures.crossings_of(alert), 1 / measures.ratios[alert.metric].unit
    held = [view for view in views if declared.shape in view.series]
    newest = (at_ms - declared.lag_ms) // declared.pane_ms
    first = newest + 1 - limits.PANES_OF_ALERTS
    begin = first - limits.PANES_OF_ALERTS
    since_ms = max((view.series[declared.shape].since_ms for view in held), default=0)
    if not held or begin * declared.pane_ms < since_ms:
        return {"problem": "not kept for two windows yet", "found": []}
    texts: list[dict[str, int]] = [{} for _ in declared.dimensions]
    rows = _rows(settings, declared, held, range(begin, newest + 1), texts)
    bits = rows.bits
    while (rows.level >= bits).sum() > MAX_ROWS:
        bits += 1
    found = search(rows.events(bits, first, unit))
    names = [list(of) for of in texts]
    of_all = 2.0 ** (bits + 1)  # half of the users confirm
    return {
        "problem": None,
        "at_ms": at_ms,
        "users_share": 2.0**-bits,
        "looked_at": found.looked_at,
        "found": [_shown(declared, names, cell, of_all) for cell in found.found],
    }


def _shown(
    declared: Crossings, names: Sequence[Sequence[str]], its: Found, of_all: float
) -> dict[str, object]:
    amounts = {"excess": its.excess, "low": its.low, "high": its.high}
    return {
        "values": {declared.dimensions[place]: names[place][value] for place, value in its.cell},
        "share_then": float(its.share_then),
        "share_now": float(its.share_now),
        "rate_then": float(its.rate_then),
        "rate_now": float(its.rate_now),
        **{name: float(amount) * of_all for name, amount in amounts.items()},
    }


def _rows(
    settings: Settings,
    declared: Crossings,
    views: Sequence[View],
    panes: range,
    texts: Sequence[dict[str, int]],
) -> _Rows:
    """Of all partitions; ``texts`` get the values of each dimension with their numbers."""
    shown, tables, bits = values_shown(settings, views), [], 0
    for view in views:
        table, its_bits = _table(view.series[declared.shape], declared, panes)
        bits = max(bits, its_bits)
        for place, numbers in enumerate(texts):
            of_code = [
                numbers.setdefault(text if text in shown[place] else OTHER, len(numbers))
                for text in view.header.values[place]
            ]
            column = 1 + VALUES + place
            table[:, column] = np.array(of_code, np.int64)[table[:, column] - 1]
        tables.append(table)
    pane, *of_rows = np.concatenate(tables).T
    x = of_rows[ABOVE] + (of_rows[HIGH] << VALUE_BITS)
    values = np.stack(of_rows[VALUES:], axis=1)
    return _Rows(pane, of_rows[WHO] - 1, x, of_rows[BELOW], values, bits)


def _table(series: SeriesView, declared: Crossings, panes: range) -> tuple[I64, int]:
    """Pane and places of every row of some panes, and the most sample bits of these."""
    width, tables, bits = VALUES + len(declared.dimensions), [], 0
    for number, (codes, values) in series.panes.items():
        ring, pane = ring_and_pane(number)
        if ring != PANES or pane not in panes:
            continue
        row, place = row_and_place(codes)
        bits = max(bits, int(values[row == 0].sum()))
        is_sum = row > 0
        table = np.zeros((int(row.max(initial=0)), 1 + width), np.int64)
        table[:, 0] = pane
        table[row[is_sum] - 1, 1 + place[is_sum]] = values[is_sum]
        tables.append(table)
    return np.concatenate([np.zeros((0, 1 + width), np.int64), *tables]), bits
