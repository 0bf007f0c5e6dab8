"""Where lifts stand in a picture: one scale for all bars of a table, and the course of a lift."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from streamer.formatting import MINUS, difference
from streamer.query.scorecard import DailyLift
from streamer.query.shown_lift import ShownLift

_STEPS = (1, 2, 2.5, 5, 10)
_ROOM = 0.04
"""Share of a scale that stays free at either end."""
_LEAST = 0.005
"""What is free at least, so that a scale of nothing but 0 has a length."""
_FURTHER = 1.5
"""How many times the span of all lifts the ends of other intervals may add."""


@dataclass(frozen=True)
class ScaleTick:
    """A mark of a scale, at a share of its length in percent."""

    at: float
    text: str
    is_zero: bool = False


@dataclass(frozen=True)
class LiftBar:
    """The interval of a lift, in percent of the scale; ``is_cut_low`` and ``is_cut_high``: it goes
    on beyond the end."""

    dot: float
    left: float
    width: float
    limit: float | None
    is_cut_low: bool
    is_cut_high: bool


@dataclass(frozen=True)
class LiftScale:
    """From ``low`` to ``high``, with 0 in it."""

    low: float
    high: float

    @staticmethod
    def of(lifts: Sequence[ShownLift], whole: Sequence[ShownLift] = ()) -> LiftScale:
        """Holds every relative lift with a range, each tolerated change, and ``whole`` with all of
        its ranges. Of others it holds as much as does not flatten the rest.

        >>> from streamer.stats.experiments.verdict import Scale
        >>> ends = ((0.5, -4, 5), (0.1, 0, 0.2))
        >>> lifts = [ShownLift(Scale.RELATIVE, "", "", "", *its) for its in ends]
        >>> LiftScale.of(lifts).high < 2
        True
        """
        drawn = [lift for lift in lifts if lift.is_drawn]
        points = [0.0, *(lift.value or 0.0 for lift in drawn)]
        points += [lift.limit for lift in drawn if lift.limit is not None]
        points += [end for lift in whole if lift.is_drawn for end in _ends(lift)]
        low, high = min(points), max(points)
        more = _FURTHER * max(high - low, 0.01)
        ends = [end for lift in drawn for end in _ends(lift)]
        low = max(min([low, *ends]), low - more)
        high = min(max([high, *ends]), high + more)
        room = _ROOM * (high - low) + _LEAST
        return LiftScale(low - room, high + room)

    def at(self, value: float) -> float:
        """The place of a value, in percent of the length; beyond the ends it is that of the end."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def ticks(self, most: int = 5) -> list[ScaleTick]:
        """Round changes, 0 among them.

        >>> [tick.text for tick in LiftScale(-0.9, 1.75).ticks()]
        ['−50%', '0%', '+50%', '+100%', '+150%']
        """
        return [
            ScaleTick(self.at(value), _whole(value), is_zero=value == 0)
            for value in _round(self.low, self.high, most)
        ]

    def bar(self, lift: ShownLift) -> LiftBar | None:
        """The picture of a lift; None where it has no range, or is no relative one."""
        if not lift.is_drawn or lift.value is None or lift.low is None or lift.high is None:
            return None
        left, right = self.at(lift.low), self.at(lift.high)
        return LiftBar(
            self.at(lift.value),
            left,
            round(max(0.5, right - left), 2),
            None if lift.limit is None else self.at(lift.limit),
            lift.low < self.low,
            lift.high > self.high,
        )


@dataclass(frozen=True)
class CourseDrawing:
    """A lift day by day, in a picture 1,000 wide and ``height`` high: lines as lists of points."""

    height: int
    ticks: Sequence[ScaleTick]
    days: Sequence[ScaleTick]
    band: str
    line: str
    early: str
    """The lift while it has no interval."""
    last: tuple[float, float, str]
    """Of the last day: place in percent, height, and the lift in words."""


def course(
    points: Sequence[DailyLift], form: str | None, height: int = 220
) -> CourseDrawing | None:
    """``form``: of a metric whose lift is no share of the control's value; None: it is one. None
    with less than two days."""
    if len(points) < 2:
        return None
    held = [
        0.0,
        *(p.lift.value or 0.0 for p in points),
        *(e for p in points for e in _ends(p.lift)),
    ]
    low, high = min(held), max(held)
    room = max(high - low, 1e-6) * _ROOM
    scale = LiftScale(low - room, high + room)

    def y(value: float) -> float:
        share = (value - scale.low) / (scale.high - scale.low)
        return round(height * (1 - share), 1)

    def x(place: int) -> float:
        return round(1000 * (place + 0.5) / len(points), 1)

    def write(value: float) -> str:
        return _whole(value) if form is None else difference(form, value)

    known = [(x(i), p.lift) for i, p in enumerate(points) if p.lift.low is not None]
    first = next((i for i, p in enumerate(points) if p.lift.low is not None), len(points) - 1)
    ends = [(at, y(lift.high or 0.0)) for at, lift in known]
    ends += [(at, y(lift.low or 0.0)) for at, lift in reversed(known)]
    values = [(x(i), y(p.lift.value or 0.0)) for i, p in enumerate(points)]
    every = max(1, ceil(len(points) / 7))
    return CourseDrawing(
        height,
        [ScaleTick(y(v), write(v), is_zero=v == 0) for v in _round(scale.low, scale.high, 5)],
        [
            ScaleTick(x(i) / 10, f"{p.day.day} {p.day:%b}")
            for i, p in enumerate(points)
            if (len(points) - 1 - i) % every == 0
        ],
        _points(ends),
        _points(values[first:]),
        _points(values[: first + 1]),
        (values[-1][0] / 10, values[-1][1], points[-1].lift.text),
    )


def spark(values: Sequence[float], width: int = 100, height: int = 24) -> str:
    """A line of values with 0 in view, as points of a picture; empty with less than two.

    >>> spark([1.0, 0.5], 10, 10)
    '0,1 10,5'
    """
    if len(values) < 2:
        return ""
    low, high = min(0.0, *values), max(0.0, *values)
    size = max(high - low, _LEAST)
    step = width / (len(values) - 1)
    heights = (height - 1 - (height - 2) * (value - low) / size for value in values)
    return _points((round(i * step, 1), round(y, 1)) for i, y in enumerate(heights))


def _ends(lift: ShownLift) -> Iterable[float]:
    return (end for end in (lift.low, lift.high) if end is not None)


def _points(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in pairs)


def _round(low: float, high: float, most: int) -> list[float]:
    """At most so many round values between two, evenly spaced, with 0.

    >>> _round(-0.09, 0.3, 5)
    [0.0, 0.1, 0.2, 0.3]
    """
    rough = (high - low) / most
    size = 10.0 ** floor(log10(rough))
    for step in (size * each for each in _STEPS):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last - first < most:
            return [round(i * step, 12) for i in range(first, last + 1)]
    return [0.0]


def _whole(value: float) -> str:
    """A round change on an axis, in percent.

    >>> _whole(2.5), _whole(-0.005), _whole(0)
    ('+250%', '−0.5%', '0%')
    """
    text = f"{abs(100 * value):,.6g}%"
    return text if not value else f"{'+' if value > 0 else MINUS}{text}"
