"""Why a metric moved: the split of its change by segment, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from streamer.formatting import change, difference, value_text, whole_percent
from streamer.stats.alerting.explain import Contribution, Explanation
from streamer.stats.alerting.traffic import Traffic

_MOST = Fraction(1, 2)
"""A segment that gave so much of the change is named as where it comes from."""


class SegmentPart(Struct, frozen=True):
    """What a segment gave to a change: as ``explain.Contribution``, in units of the metric."""

    segment: str
    share_then: float
    share_now: float
    rate_then: float | None
    rate_now: float | None
    mix: float
    rate: float


class ChangeParts(Struct, frozen=True):
    """A change and its parts: as ``explain.Explanation``, in units of the metric."""

    then: float | None
    now: float | None
    change: float | None
    mix: float
    rate: float
    segments: Sequence[SegmentPart]


def change_parts(of: Explanation, unit: float) -> ChangeParts:
    """``unit``: what one of the numerator is worth."""

    def known(value: Fraction | None) -> float | None:
        return None if value is None else float(value) * unit

    segments = [
        SegmentPart(
            part.segment,
            float(part.share_then),
            float(part.share_now),
            known(part.rate_then),
            known(part.rate_now),
            float(part.mix) * unit,
            float(part.rate) * unit,
        )
        for part in of.parts
    ]
    then, now, change = map(known, (of.value_then, of.value_now, of.change))
    return ChangeParts(then, now, change, float(of.mix) * unit, float(of.rate) * unit, segments)


def sentences(
    of: Explanation, form: str, unit: float, chosen: str, traffic: Traffic | None
) -> Iterator[str]:
    """What the split says, the most important first. ``chosen``: the name of a segment that is
    asked about, or empty; ``traffic``: what is said of that of everything together.

    >>> from streamer.stats.alerting.explain import explain
    >>> then = {"women": (60, 10_000), "men": (90, 10_000)}
    >>> now = {"women": (0, 10_000), "men": (88, 10_000)}
    >>> for text in sentences(explain(now, then), "percent", 1.0, "women", None):
    ...     print(text)
    97% of the fall comes from women: 0.600% → 0%.
    All other segments together: −0.0100 points.
    Traffic did not cause it: shifts of traffic between segments account for 0 points.
    """
    if not of.change or not of.parts:
        return
    scale = Fraction(unit)
    parts = sorted(of.parts, key=lambda part: -part.total / of.change)  # type: ignore[operator]
    first = next((part for part in parts if part.segment == chosen), parts[0])
    fall = "fall" if of.change < 0 else "rise"
    named = [first] if first is parts[0] else [first, parts[0]]
    yield from (_of_part(part, of, form, unit, fall) for part in named)
    if len(of.parts) > len(named):
        rest = of.change - sum((part.total for part in named), Fraction(0))
        yield f"All other segments together: {difference(form, float(rest * scale))}."
    has_moved = traffic is not None and traffic.status.words.kind in ("bad", "warn")
    is_mix = has_moved or abs(of.mix) * 4 > abs(of.change)
    cause = "Shifts" if is_mix else "Traffic did not cause it: shifts"
    mix = difference(form, float(of.mix * scale))
    yield f"{cause} of traffic between segments account for {mix}."
    if traffic is not None and has_moved:
        yield f"Traffic itself has moved: {traffic.reason}."


def sides(words: Sequence[str], now: Sequence[int], then: Sequence[int]) -> Iterator[str]:
    """What numerator and denominator did by themselves; ``words``: what they are, of a ratio that
    the settings define; ``then``: of the mean of its baseline's windows.

    >>> list(sides(("sum of value of conversions", "clicks"), (90, 110), (100, 100)))
    ['The numerator, sum of value of conversions, moved by −10%; the denominator, clicks, by +10%.']
    """
    if len(words) == 2 and then[0] and then[1]:
        above, below = (change(new / old - 1) for new, old in zip(now, then, strict=True))
        yield (
            f"The numerator, {words[0]}, moved by {above}; the denominator, {words[1]}, by {below}."
        )


def _of_part(part: Contribution, of: Explanation, form: str, unit: float, fall: str) -> str:
    assert of.change is not None
    share = part.total / of.change
    if share > _MOST:
        size = whole_percent(min(1.0, float(share)))
        begin = f"{size} of the {fall} comes from {part.segment}"
        begin = f"More than the whole {fall} comes from {part.segment}" if share > 1 else begin
    elif share > 0:
        begin = f"{part.segment} accounts for {whole_percent(float(share))} of the {fall}"
    else:
        begin = f"{part.segment} contributes nothing to the {fall}"
    if abs(part.mix) > abs(part.rate):
        shares = f"{whole_percent(float(part.share_then))} → {whole_percent(float(part.share_now))}"
        return f"{begin}, by its share of the traffic: {shares}."
    values = (
        "–" if rate is None else value_text(form, float(rate) * unit)
        for rate in (part.rate_then, part.rate_now)
    )
    return f"{begin}: {' → '.join(values)}."
