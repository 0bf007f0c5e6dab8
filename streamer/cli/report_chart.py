"""Intervals and their history as SVG, drawn into a page: colours are the page's, by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite

Write = Callable[[float], str]
_WIDE, _HIGH = 220, 24
"""Of one interval."""
_PLOT_WIDE, _PLOT_HIGH, _LEFT, _TOP, _BELOW = 560, 120, 78, 8, 20
"""Of a history, and the room around it."""
_LINE = 13
"""Height of a line of text."""


@dataclass(frozen=True, slots=True)
class ChartRange:
    """A lift and its interval; None where they are not defined."""

    value: float | None
    low: float | None
    high: float | None

    @property
    def known(self) -> list[float]:
        """The numbers that there are."""
        return [x for x in (self.value, self.low, self.high) if x is not None and isfinite(x)]


@dataclass(frozen=True, slots=True)
class _Scale:
    """From numbers to places: ``low`` is at ``start``, ``high`` at ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, x: float) -> str:
        share = (min(max(x, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{self.start + share * (self.end - self.start):.1f}"


def extent(spans: Sequence[ChartRange], margin: float | None = None) -> tuple[float, float]:
    """The numbers that a picture of them reaches from and to: 0 is among them.

    >>> extent([ChartRange(0.1, -0.1, 0.3)])
    (-0.12000000000000001, 0.32)
    """
    known = [x for span in spans for x in span.known] + [0.0, margin or 0.0]
    low, high = min(known), max(known)
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def interval(span: ChartRange, ends: tuple[float, float], margin: float | None) -> str:
    """One interval on a scale: a bar, a dot for the lift, a line at 0 and one at the margin."""
    at, middle = _Scale(*ends, 4, _WIDE - 4), _HIGH / 2
    parts = [_upright("zero", at(0), 2, _HIGH - 2)]
    if margin is not None:
        parts.append(_upright("margin", at(margin), 2, _HIGH - 2))
    if span.low is not None and span.high is not None:
        x, width = at(span.low), float(at(span.high)) - float(at(span.low))
        parts.append(
            f'<rect class="bar" x="{x}" y="{middle - 4}" width="{width:.1f}" height="8" rx="2"/>'
        )
    if span.value is not None:
        parts.append(f'<circle class="dot" cx="{at(span.value)}" cy="{middle}" r="3.5"/>')
    return _svg(_WIDE, _HIGH, "interval", parts)


def history(
    title: str, days: Sequence[str], spans: Sequence[ChartRange], write: Write, margin: float | None
) -> str:
    """A lift and its interval by day; days without an interval are gaps."""
    ends = extent(spans, margin)
    right, bottom = _LEFT + _PLOT_WIDE, _TOP + _PLOT_HIGH
    y = _Scale(*ends, bottom, _TOP)
    x = _Scale(-0.5, len(days) - 0.5, _LEFT, right)
    parts = [f"<title>{escape(title)}</title>", _level("zero", y(0), right)]
    if margin is not None:
        parts.append(_level("margin", y(margin), right))
    half = 0.4 * _PLOT_WIDE / len(days)
    for i, span in enumerate(spans):
        if span.low is not None and span.high is not None:
            top, height = y(span.high), float(y(span.low)) - float(y(span.high))
            left = float(x(i)) - min(half, 12)
            parts.append(
                f'<rect class="band" x="{left:.1f}" y="{top}" width="{2 * min(half, 12):.1f}" '
                f'height="{height:.1f}"/>'
            )
        if span.value is not None:
            parts.append(f'<circle class="dot" cx="{x(i)}" cy="{y(span.value)}" r="2.5"/>')
    parts.append(_text(_LEFT - 6, float(y(0.0)) + 4, "end", "0"))
    for end in ends:
        if abs(float(y(end)) - float(y(0.0))) > _LINE:
            parts.append(_text(_LEFT - 6, float(y(end)) + 4, "end", write(end)))
    parts.append(_text(_LEFT, bottom + 15, "start", days[0]))
    if len(days) > 1:
        parts.append(_text(right, bottom + 15, "end", days[-1]))
    return _svg(right + 8, bottom + _BELOW, "history", parts)


def _svg(wide: float, high: float, kind: str, parts: Sequence[str]) -> str:
    inside = "".join(parts)
    return (
        f'<svg class="{kind}" role="img" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" '
        f'height="{high:g}">{inside}</svg>'
    )


def _upright(kind: str, x: str, top: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'


def _level(kind: str, y: str, right: float) -> str:
    return f'<line class="{kind}" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'


def _text(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:g}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
