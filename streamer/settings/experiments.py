"""Settings of experiments: who is compared with whom, since when, by which metrics."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from streamer.settings import limits
from streamer.settings.durations import DAY_MS, day_of, duration_ms, in_ms
from streamer.settings.section import Section
from streamer.settings.sources import several

DEFAULT_RATIO_CAP = 0.99
"""Quantile of denominators at which ratios are capped where the settings do not say."""

_PERCENTILE = re.compile(r"(ratio@.+|\w+_per_user)@p(\d+(?:\.\d+)?)")


def percentile_of(name: str) -> tuple[str, str] | None:
    """The metric per user and the percent that a name such as `clicks_per_user@p90` stands for;
    None of others.

    >>> percentile_of("ratio@latency@p99.9"), percentile_of("ndcg_ratio@10")
    (('ratio@latency', '99.9'), None)
    """
    found = _PERCENTILE.fullmatch(name)
    return None if found is None else (found[1], found[2])


class ExperimentMetric(Section, frozen=True):
    """[[experiments.metrics]]: a metric by which arms are compared."""

    name: str
    """A metric that is a ratio of two sums over the events or slates of users: `ctr_ratio`,
    `clicks_per_user`, `ndcg_ratio@10`, …, or a percentile of one per user
    (`clicks_per_user@p90`); docs/experiments.md lists them."""
    direction: str = "higher"
    """`higher` or `lower`: which is better."""
    primary: bool = False
    """Whether this metric decides the experiment. If no metric is marked, the first without a
    margin decides."""
    margin: float | None = None
    """Makes the metric a guardrail: the tolerated relative harm, e.g. `0.02`."""
    margin_absolute: float | None = None
    """The tolerated harm in the unit of the metric, if it may be 0 or negative; not both."""
    cap: float | None = None
    """Largest amount that one user counts for. 1 or more is an amount; below 1 a quantile over the
    users of all arms with a value; 0: no limit. In a metric per user it limits the value (default
    0); a quantile is rounded up to two significant digits. In a ratio it limits the denominator
    (default `0.99`), rounded up to 10, 13, 16, 20, 25, 32, 40, 50, 63, 79, 100, …: users beyond it
    count with less weight, so that no crawler decides."""

    within: str | None = None
    """Whole days from a user's first that count, such as `7d`: what comes later does not. Without
    it all counts, and arms are compared before those whose outcomes come late have them."""
    mature: bool = False
    """With `within`: users count once they have had all these days."""

    @cached_property
    def within_days(self) -> int | None:
        """Days."""
        if self.within is None:
            return None
        return duration_ms(self.within, "experiments.metrics.within") // DAY_MS

    @property
    def is_guardrail(self) -> bool:
        """Whether a harm is tolerated up to a margin."""
        return self.margin is not None or self.margin_absolute is not None


class ExperimentDefaults(Section, frozen=True):
    """[experiments_defaults]: the field of arms, and settings of experiments that events name and
    `[[experiments]]` does not."""

    arm: str | tuple[str, ...] = ()
    """`arm` of experiments that have neither `arm` nor `dimension`."""
    metrics: tuple[ExperimentMetric, ...] = ()
    """Metrics of experiments that are found in `arm` or in exposure events. Without it, streamer
    looks for none."""
    max_found: int = 100
    """Largest number of found experiments; of more, those stay whose people include the one with
    the smallest hash, so that a robot who invents names puts out few true ones."""
    silent_days: int = 14
    """Days without an event after which a found experiment is retired."""
    controls: tuple[str, ...] = (
        *("control", "A", "a", "off", "false", "0", "baseline", "default", "original", "old"),
    )
    """Names of controls. The control is the first of these names that is an arm, else the first arm
    in the alphabet."""
    split: dict[str, float] = msgspec.field(default_factory=dict)
    """Arm = expected share of the users, in any unit; other arms have 1."""
    false_discovery_rate: float | None = None
    """Expected share of treatments without an effect among those to be shipped, over all
    experiments, e.g. `0.1`. A treatment is shipped only if it is a discovery among all. Without it,
    each experiment is decided for itself."""
    alpha: float = 0.05
    """As of `[[experiments]]`."""
    min_lift: float | None = None
    """Likewise."""
    min_days: int = 7
    """Likewise."""

    def experiment(self, **own: Any) -> Experiment:
        """An experiment with what these say, and its ``own`` keys."""
        shared = Experiment.__struct_fields__
        said = {key: getattr(self, key) for key in self.__struct_fields__ if key in shared}
        return Experiment(**said | own)


USER, USER_ID = "user", "user_id"
"""The unit of an experiment where the settings name no other."""


class Switchback(Section, frozen=True):
    """[experiments.switchback]: arms that change with time, for things that users share, such as
    prices or couriers. The unit is a slot of time, with `by` of one value."""

    by: str = ""
    """A field of events, such as `region`, whose values change arms each for itself; without it all
    traffic does together."""
    slot: str = "1h"
    """Length of a slot; the first begins at midnight UTC of `start`."""
    washout: str | None = None
    """Of each slot so much from its beginning counts for nothing, as what the slot before did is
    still at work: `10m`."""
    schedule: tuple[str, ...] | dict[str, tuple[str, ...]] = ()
    """The arms of the slots, over and over: `["off", "on", "on", "off"]`; or a table, value of `by`
    = such a list, in which `"*"` stands for all other values."""

    slot_ms = in_ms("slot", "experiments.switchback")

    @cached_property
    def washout_ms(self) -> int:
        """Milliseconds."""
        at = "experiments.switchback.washout"
        return 0 if self.washout is None else duration_ms(self.washout, at)

    @cached_property
    def by_value(self) -> dict[str, tuple[str, ...]]:
        """Value of ``by`` → its arms; ``*``: of all others."""
        return self.schedule if isinstance(self.schedule, dict) else {"*": self.schedule}


@dataclass(frozen=True)
class SplitPeriod:
    """Days with the same split."""

    days: range
    shares: dict[str, float]


class Experiment(Section, frozen=True, kw_only=True):
    """[[experiments]]: an A/B test (or A/B/C/…), whose arms are in events."""

    name: str
    """Its name in commands, pages and labels."""
    title: str = ""
    """What pages and reports call it; its name by default."""
    hypothesis: str = ""
    """What is expected to happen, and why, in a sentence."""
    owner: str = ""
    """Whom to ask about it."""
    url: str = ""
    """Where more is written about it, `https://…`."""
    arm: str | tuple[str, ...] = ()
    """Path of the field with the user's arm in events of any kind, such as `experiments.ranker`, or
    several paths. The field holds the arm, or the arms of several experiments by `key`: an object,
    a list of assignments, or a text `ranker:new,layout:wide`. From the first event with an arm,
    everything the user does counts towards it."""
    key: str = ""
    """Name of the experiment in exposure events, and in fields with the arms of several
    experiments. Default: its `name`."""
    dimension: str = ""
    """Instead of `arm`: the dimension whose values are the arms, for a test that windows show, too.
    Its impressions expose their users."""
    control: str
    """The arm that the others are compared with."""
    split: dict[str, float] | tuple[dict[str, float | datetime.date], ...]
    """Arm = expected share of the users, in any unit: `{ A = 1, B = 1 }`. For a ramp a list of
    periods, each until the next: `[{ from = 2026-11-02, A = 99, B = 1 }, { from = 2026-11-05, A =
    1, B = 1 }]`."""
    start: datetime.date
    """First day, as `2026-11-02` (without quotes), in UTC."""
    end: datetime.date | None = None
    """Last day, included; without it the experiment goes on."""
    metrics: tuple[ExperimentMetric, ...] = (ExperimentMetric(name="ctr_ratio"),)
    """By what the arms are compared; without it `ctr_ratio`."""
    unit: str = USER
    """The unit that is put into an arm: `user`, which is the person that events name by `join_id`
    or else `user_id`; or a field with an id, such as `store`, `account_id`, or `user_id` where
    events have both. Everything under one id counts together, from the day of the first event with
    its arm."""
    switchback: Switchback | None = None
    """Instead of `arm`: the arm follows from the time."""
    layer: str = ""
    """Experiments of one layer exclude each other: users in two of them are a problem."""
    holdout: bool = False
    """Whether the control is kept out of all other experiments. The lift then measures everything
    shipped since the start, and the experiment itself is never shipped."""
    alpha: float = 0.05
    """Largest share of experiments without an effect that claim one."""
    power: float = 0.8
    """Probability of finding a lift that forecasts aim at."""
    min_lift: float | None = None
    """Least relative lift of the primary metric that is worth shipping, e.g. `0.02`. With it, the
    recommendation may be to stop without an effect, and forecasts are about this lift."""
    min_users: int = limits.MIN_USERS
    """Users in each arm that an interval at any time needs."""
    min_days: int = 7
    """Whole days with users before the recommendation may be to ship, or to stop without an effect,
    because weekdays differ."""
    whole_weeks: bool = True
    """Whether to ship, and to stop without an effect, is decided over whole weeks alone; `false` if
    you know that weekdays and weekends are alike."""
    exclude: tuple[datetime.date, ...] = ()
    """Days whose outcomes do not count, such as one whose log is broken, nor, in the split, users
    who came first on them. A decision has to hold with these days, too."""
    decide: str = "any_time"
    """`any_time`: intervals that hold at every look decide. `at_end`: one look after the last day
    (`end`) decides, which takes about half the users; before that only harm is reported."""
    planned_users: int | None = None
    """With `decide = "at_end"`: the planned number of users of all arms. With fewer at the end, the
    interval that holds at every look decides."""
    covariate_days: int = 0
    """Days before the start in which users' own behaviour is measured. It adjusts the lift (CUPED),
    and `streamer plan` uses it before the start; 0: none."""
    outcomes: str = "exposed"
    """Events that count towards an arm. `exposed`: everything a user does from the first exposure.
    `attributed`, with `dimension`: events with the arm's value, or with an impression that has
    it."""
    max_loss: str | None = None
    """How much a treatment may cost, as `50 conversions`: what a metric per user of the experiment
    counts. Beyond it, and where it is excluded at 0.001 that nothing is lost, `streamer act` tells
    of a `loss`, however few users there are."""
    explore: tuple[str, ...] = ()
    """Other dimensions by which `streamer readout --by` and the page explore; each adds rows of
    users."""
    expected_users: int = 5000
    """Number of users at which the interval at any time is at its narrowest."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Where events say the arm, as far as the experiment says it itself."""
        return several(self.arm)

    @property
    def unit_field(self) -> str | None:
        """The field of events by whose values units are told apart; None: the unit is the user;
        empty: time alone tells them apart."""
        if self.switchback is not None:
            return self.switchback.by
        return None if self.unit == USER else self.unit

    @property
    def loss_bound(self) -> tuple[float, str] | None:
        """How much of what may be lost; ValueError where it is not said so."""
        if self.max_loss is None:
            return None
        most, _, noun = self.max_loss.partition(" ")
        if not noun or float(most) <= 0:
            raise ValueError(self.max_loss)
        return float(most), noun

    @property
    def called(self) -> str:
        """Its key: what events call it."""
        return self.key or self.name

    @cached_property
    def primary(self) -> ExperimentMetric:
        """The metric that the experiment is decided by."""
        named = [metric for metric in self.metrics if metric.primary]
        free = [metric for metric in self.metrics if not metric.is_guardrail]
        return (named or free or self.metrics)[0]

    @cached_property
    def guardrails(self) -> tuple[ExperimentMetric, ...]:
        """The metrics that must not be harmed."""
        return tuple(m for m in self.metrics if m.is_guardrail and m != self.primary)

    @cached_property
    def secondary(self) -> tuple[ExperimentMetric, ...]:
        """All others: they share alpha."""
        return tuple(m for m in self.metrics if m not in (self.primary, *self.guardrails))

    def role_of(self, metric: ExperimentMetric) -> str:
        """`primary`, `guardrail` or `secondary`."""
        if metric == self.primary:
            return "primary"
        return "guardrail" if metric in self.guardrails else "secondary"

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """The control first."""
        return (self.control, *(arm for arm in self.shares if arm != self.control))

    @cached_property
    def periods(self) -> tuple[SplitPeriod, ...]:
        """Those of a ramp, or one."""
        if isinstance(self.split, dict):
            return (SplitPeriod(self.days, self.split),)
        dates = [each.get("from") for each in self.split]
        firsts = [day_of(date) for date in dates if isinstance(date, datetime.date)]
        shares = [
            {arm: n for arm, n in each.items() if isinstance(n, int | float)} for each in self.split
        ]
        ends = zip(firsts, [*firsts[1:], self.days.stop], shares, strict=False)
        return tuple(SplitPeriod(range(*days), its) for *days, its in ends)

    @property
    def shares(self) -> dict[str, float]:
        """The split, of several that of the last period."""
        return self.periods[-1].shares if self.periods else {}

    @cached_property
    def days(self) -> range:
        """The days that count, since 1970-01-01."""
        last = limits.MAX_EVENT_MS // DAY_MS - 1
        return range(day_of(self.start), (last if self.end is None else day_of(self.end)) + 1)

    @cached_property
    def covariates(self) -> range:
        """The days of the covariates."""
        return range(self.days.start - self.covariate_days, self.days.start)
