"""How much traffic there is against what is usual: by how much the days themselves differ.

Events come in bursts and every day is another: the noise of a count is not Poisson, and it is
learned from past windows only. On the scale of logarithms (0 counts as one half), past windows of
one weekday differ from their mean by e; without four weeks, all past days are taken for one
weekday. The tails of each are left out of the mean, and count as the next values for the standard
deviation s (past.py). The present window is usual where its logarithm is within

    t · s · sqrt(1 + 1 / h)

of the mean, h being the values that the mean is of, and t Student's with the differences that are
left as degrees of freedom. s is never below what counts of so many users vary by. Nothing is
said where they are too few, or the usual itself is (of a weekday on which a shop is closed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

from streamer.formatting import change, counted, share, whole_percent
from streamer.settings.alerts import LEVEL
from streamer.stats.alerting.baseline import KINDS, LEAST_DAYS, Status
from streamer.stats.alerting.past import trimmed
from streamer.stats.random_groups import critical

LEAST_ARRIVALS = 10
"""Independent arrivals in a usual window, and usual events, below which a count says nothing."""


@dataclass(frozen=True, slots=True)
class TrafficRule:
    """What is tolerated: a relative ``drop`` (0.5: half) and ``rise`` (1: twice as much); 0 where
    nothing is to be said of it. ``level`` is that of each end of the interval; ``support_unit``
    integers are one event."""

    drop: float = 0.5
    rise: float = 1.0
    level: float = LEVEL
    support_unit: int = 1


@dataclass(frozen=True, slots=True)
class Traffic:
    """Events of a window, how many are ``usual`` (None: unknown), and the relative change with its
    interval, as of how ``windows`` past ones differ."""

    events: int
    usual: float | None
    windows: int
    compared: str
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    status: Status = Status.NO_BASELINE
    reason: str = ""


def judge_traffic(
    events: int,
    weekdays: Sequence[Sequence[int]],
    arrivals: float,
    rule: TrafficRule,
    is_new_kind: bool = False,
) -> Traffic:
    """A window's events against those of past ``weekdays``, the present one first, or of all past
    days as one. ``arrivals``: independent ones in a usual window (streamer.stats.alerting.past).
    ``is_new_kind``: whether the day is of a kind of which hardly any is known.

    >>> week = [9000, 10000, 11000, 10500, 9500, 10200, 0]
    >>> judge_traffic(1000, [week], 500, TrafficRule()).reason
    '1,000 events are 90% below the usual 9,825 (7 days): by at least 85%, beyond 50%'
    >>> judge_traffic(200_000, [week], 500, TrafficRule()).status.value
    'risen'
    >>> judge_traffic(8000, [week], 500, TrafficRule()).status.value
    'within the tolerance'
    """
    own = weekdays[0] if weekdays else ()
    compared = "weeks" if len(weekdays) > 1 else "days"
    found = Traffic(round(events / rule.support_unit), None, len(own), compared)
    if len(own) < LEAST_DAYS:
        return replace(
            found, reason=f"{len(own)} past windows are known, and at least {LEAST_DAYS} are needed"
        )
    if not any(own):
        return replace(found, reason="nothing was counted in the past windows")
    inner = trimmed([_log(n) for n in own])
    center, kept = inner.mean, len(inner.kept)
    found = replace(found, usual=exp(center) / rule.support_unit)
    if arrivals < LEAST_ARRIVALS:
        why = f"usually only {arrivals:.1f} independent users, and a change needs {LEAST_ARRIVALS}"
        return replace(found, status=Status.TOO_LITTLE, reason=why)
    if exp(center) < LEAST_ARRIVALS:
        events_then = f"usually only {exp(center):.1f} events at this time"
        why = f"{events_then}, and a change needs {LEAST_ARRIVALS}"
        return replace(found, status=Status.TOO_LITTLE, reason=why)
    spread, df = _spread(weekdays)
    least = 1 / min(arrivals, exp(center))
    reach = critical(rule.level, df) * sqrt(max(spread, least) * (1 + 1 / kept))
    reach -= log(1 - KINDS) if is_new_kind else 0.0
    moved = _log(events) - center
    found = replace(
        found,
        change=events / exp(center) - 1,
        change_low=exp(moved - reach) - 1 if events else -1.0,
        change_high=_grown(moved + reach),
    )
    status = _status(found, rule, reach)
    return replace(found, status=status, reason=_reason(status, found, rule))


def _log(events: int) -> float:
    return log(events or 0.5)


def _grown(logarithm: float) -> float:
    """The relative change of a logarithm, as large as numbers go."""
    return exp(min(logarithm, 700.0)) - 1


def _spread(weekdays: Sequence[Sequence[int]]) -> tuple[float, int]:
    """The variance of logarithms within weekdays, and its degrees of freedom."""
    residuals: list[float] = []
    for weekday in weekdays:
        logs = sorted(_log(n) for n in weekday)
        middle = logs[1:-1] if len(weekdays) > 1 else logs
        mean = sum(middle) / len(middle)
        residuals += [value - mean for value in logs]
    found = trimmed(residuals)
    df = len(residuals) - len(weekdays) - found.changed
    return found.squares / (len(residuals) - len(weekdays)), max(1, df)


def _status(found: Traffic, rule: TrafficRule, reach: float) -> Status:
    assert found.change is not None
    assert found.change_low is not None
    assert found.change_high is not None
    if rule.drop and found.change_high < -rule.drop:
        return Status.DROPPED
    if rule.rise and found.change_low > rule.rise:
        return Status.RISEN
    may_drop = rule.drop and found.change_low < -rule.drop
    may_rise = rule.rise and found.change_high > rule.rise
    if not may_drop and not may_rise:
        return Status.WITHIN
    is_down = found.change_high < 0 or (found.change < -rule.drop and reach < -log(1 - rule.drop))
    is_up = found.change_low > 0 or (found.change > rule.rise and reach < log(1 + rule.rise))
    if (may_drop and is_down) or (may_rise and is_up):
        return Status.PERHAPS
    return Status.DAYS_DIFFER


def _reason(status: Status, found: Traffic, rule: TrafficRule) -> str:
    assert found.change is not None
    assert found.change_low is not None
    assert found.change_high is not None
    side = "below" if found.change < 0 else "above"
    past = f"{found.windows} days"
    if found.compared == "weeks":
        past = f"the same weekday, {found.windows} weeks"
    text = (
        f"{counted(found.events, 'event')} {'is' if found.events == 1 else 'are'} "
        f"{whole_percent(abs(found.change))} {side} the usual {found.usual:,.0f} ({past})"
    )
    if status is Status.DROPPED:
        return f"{text}: by at least {whole_percent(-found.change_high)}, beyond {share(rule.drop)}"
    if status is Status.RISEN:
        return f"{text}: by at least {whole_percent(found.change_low)}, beyond {share(rule.rise)}"
    text += f", between {change(found.change_low)} and {change(found.change_high)}"
    if status is Status.WITHIN:
        return text
    if status is Status.PERHAPS:
        tolerated = rule.drop if found.change < 0 else rule.rise
        return f"{text}: not proved beyond the tolerated {share(tolerated)}"
    return f"{text}: past days differ too much to tell whether it is within the tolerance"
