"""Lifts as every face shows them."""

from __future__ import annotations

from math import isclose

import msgspec

from streamer.query.pills import OPEN, verdict_pill
from streamer.stats.experiments.estimate import Estimate, Inference
from streamer.stats.experiments.readout import Comparison, MetricComparisons
from streamer.stats.experiments.verdict import Outcome, Scale


class UnadjustedLift(msgspec.Struct, frozen=True):
    """The lift of the arms' values as they are, where the one that is judged is another;
    ``adjusted_for``: why it is."""

    value: float | None
    text: str
    adjusted_for: str


class ShownLift(msgspec.Struct, frozen=True):
    """The lift that is judged, and the ends of the range that decides; None where they are not
    known. ``text`` and ``range`` say the same. ``kind``: that of the verdict (``Pill``);
    ``limit``: the relative lift that a guardrail tolerates."""

    scale: Scale
    text: str
    range: str
    kind: str = OPEN
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    unadjusted: UnadjustedLift | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether it has a place on a scale: only relative lifts share one."""
        return self.scale is Scale.RELATIVE and self.low is not None

    @property
    def words(self) -> str:
        """Both within a sentence."""
        return self.text if self.value is None else f"{self.text} ({self.range})"


def lift_of(
    lift: Estimate, interval: Inference | None, scale: Scale, form: str, kind: str = OPEN
) -> ShownLift:
    """A lift with one of its intervals."""
    if lift.value is None:
        return ShownLift(scale, "–", "not defined", kind)
    write = scale.writer(form)
    text = write(lift.value)
    if interval is None:
        return ShownLift(scale, text, "no range yet", kind, lift.value)
    low, high = interval.low, interval.high
    return ShownLift(scale, text, f"{write(low)} to {write(high)}", kind, lift.value, low, high)


def shown_lift(
    metric: MetricComparisons, comparison: Comparison, form: str, limit: float | None = None
) -> ShownLift:
    """The one of a comparison that is judged."""
    scale, outcome = comparison.verdict.scale, comparison.verdict.outcome
    kind = OPEN if outcome is Outcome.BROKEN_SPLIT else verdict_pill(outcome).kind
    return msgspec.structs.replace(
        lift_of(comparison.shown, comparison.interval, scale, form, kind),
        limit=limit if scale is Scale.RELATIVE else None,
        unadjusted=_unadjusted(metric, comparison, form),
    )


def _unadjusted(
    metric: MetricComparisons, comparison: Comparison, form: str
) -> UnadjustedLift | None:
    arms = metric.arms
    scale, adjustment = comparison.verdict.scale, comparison.adjustment
    is_relative = scale is Scale.RELATIVE
    if adjustment is not None and adjustment.explained is not None:
        plain = adjustment.unadjusted
        value = (plain.relative if is_relative else plain.absolute).value
        why = "what users did before"
    elif any(arm.value and not isclose(arm.shown or 0, arm.value, rel_tol=1e-3) for arm in arms):
        values = {arm.name: arm.shown or 0.0 for arm in arms}
        then, now = values[metric.control], values[comparison.arm]
        value = now - then if not is_relative else now / then - 1 if then else None
        why = "steps between whole numbers"
    else:
        return None
    return UnadjustedLift(value, "–" if value is None else scale.writer(form)(value), why)
