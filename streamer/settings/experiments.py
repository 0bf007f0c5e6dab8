"""Settings of experiments: who is compared with whom, since when, by which metrics."""

from __future__ import annotations

import datetime
import re
from functools import cached_property

import msgspec

from streamer.settings import limits
from streamer.settings.durations import DAY_MS, day_of, duration_ms, in_ms
from streamer.settings.section import Section
from streamer.settings.sources import several

DEFAULT_RATIO_CAP = 0.99
"""Quantile of denominators at which ratios are capped where the settings do not say."""

_PERCENTILE = re.compile(r"(custom_per_user@.+|(?!custom_)\w+_per_user)@p(\d+(?:\.\d+)?)")


def percentile_of(name: str) -> tuple[str, str] | None:
    """The metric per user and the percent that a name such as `clicks_per_user@p90` stands for;
    None of others.

    >>> percentile_of("custom_per_user@latency@p99.9"), percentile_of("ndcg_ratio@10")
    (('custom_per_user@latency', '99.9'), None)
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
    """Whether the experiment is decided by it; where no metric says so, the first without a margin
    is the primary one."""
    margin: float | None = None
    """Makes it a guardrail: the relative harm that would be tolerated, e.g. `0.02`."""
    margin_absolute: float | None = None
    """The same in the unit of the metric, for one that may be 0 or negative; not both."""
    cap: float | None = None
    """What a user counts for at most: 1 or more is an amount, below 1 a quantile over the users of
    all arms who have any, 0: everybody counts whole. Of a metric per user it is of the value
    (default 0), a quantile rounded up to two significant digits. Of a ratio it is of the
    denominator (default `0.99`), rounded up to 10, 13, 16, 20, 25, 32, 40, 50, 63, 79, 100, …:
    users beyond it count with less weight, so that no crawler decides."""

    @property
    def is_guardrail(self) -> bool:
        """Whether a harm is tolerated up to a margin."""
        return self.margin is not None or self.margin_absolute is not None


class ExperimentDefaults(Section, frozen=True):
    """[experiments_defaults]: where arms stand, and how experiments are read that events name and
    `[[experiments]]` does not."""

    arm: str | tuple[str, ...] = ()
    """`arm` of experiments that have neither `arm` nor `dimension`."""
    metrics: tuple[ExperimentMetric, ...] = ()
    """Metrics of experiments that are found in `arm`, or in events of exposures. Without it none
    are looked for."""
    max_found: int = 100
    """How many may be found; of more those with the smallest hashes of their keys stay."""
    silent_days: int = 14
    """Days after which one is retired that no event names any more."""
    controls: tuple[str, ...] = (
        *("control", "A", "a", "off", "false", "0", "baseline", "default", "original", "old"),
    )
    """What controls are called: the first of these that is an arm is compared with, else the first
    arm in the order of the alphabet."""
    split: dict[str, float] = msgspec.field(default_factory=dict)
    """Arm = expected share of the users, in any unit; arms that are not here have 1."""
    false_discovery_rate: float | None = None
    """Of all experiments, declared or found: the expected share of treatments without an effect
    among those that are to be shipped, e.g. `0.1`. A treatment is shipped only if it is a
    discovery among all; without it each experiment is decided for itself."""
    alpha: float = 0.05
    """As of `[[experiments]]`."""
    power: float = 0.8
    """Likewise."""
    min_lift: float | None = None
    """Likewise."""
    min_users: int = limits.MIN_USERS
    """Likewise."""
    min_days: int = 7
    """Likewise."""
    expected_users: int = 5000
    """Likewise."""


USER = "user"
"""The unit of an experiment where the settings name no other."""


class Switchback(Section, frozen=True):
    """[experiments.switchback]: arms that change with time, for a test that users would share, such
    as one of prices or of couriers. The unit is a slot of time, of one value of `by`."""

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


class Experiment(Section, frozen=True, kw_only=True):
    """[[experiments]]: an A/B test (or A/B/C/…), whose arms events say."""

    name: str
    """Its name in commands, pages and labels."""
    arm: str | tuple[str, ...] = ()
    """Where events of any kind say the arm of their user: a path, such as `experiments.ranker`, or
    several. What stands there is the arm, or the arms of several experiments by `key`: an object,
    a list of assignments, or a text `ranker:new,layout:wide`. From the first event on that says
    it, all that the user does counts towards the arm."""
    key: str = ""
    """What events of exposures call the experiment, and values that say the arms of several; its
    name by default."""
    dimension: str = ""
    """In place of `arm`: the dimension whose values are the arms, for a test that windows show,
    too. Its impressions expose their users."""
    control: str
    """The arm that the others are compared with."""
    split: dict[str, float]
    """Arm = expected share of the users, in any unit: `{ A = 1, B = 1 }`."""
    start: datetime.date
    """First day, as `2026-11-02` (without quotes); days are those of UTC."""
    end: datetime.date | None = None
    """Last day, included; without it the experiment goes on."""
    metrics: tuple[ExperimentMetric, ...] = (ExperimentMetric(name="ctr_ratio"),)
    """By what the arms are compared; without it `ctr_ratio`."""
    unit: str = USER
    """What is put into an arm: `user`, or another field of events that has an id, such as `store`
    or `account_id`. All that happens under an id counts together, whoever the user is, from the day
    on whose events say its arm."""
    switchback: Switchback | None = None
    """In place of `arm`: the arm follows from the time."""
    layer: str = ""
    """Experiments of one layer exclude each other: users in two of them are a problem."""
    holdout: bool = False
    """Whether its control is kept out of all other experiments: its lift is that of everything that
    was shipped since its start, and it is never to be shipped itself."""
    alpha: float = 0.05
    """Largest share of experiments without an effect in which one is claimed."""
    power: float = 0.8
    """Probability with which forecasts want a lift to be found."""
    min_lift: float | None = None
    """Least relative lift of the primary metric that is worth shipping, e.g. `0.02`. With it the
    recommendation may be to stop for want of an effect, and forecasts are about this lift."""
    min_users: int = limits.MIN_USERS
    """Users in each arm below which there is no interval at any time."""
    min_days: int = 7
    """Whole days with users that must be over before the recommendation is to ship, or to stop for
    want of an effect: weekdays differ."""
    decide: str = "any_time"
    """`any_time`: by intervals that hold at every look. `at_end`: by one look after the last day
    (`end`), which takes about half the users; until then only harm is said."""
    planned_users: int | None = None
    """With `decide = "at_end"`: how many users of all arms it was planned with; the readout has
    them beside those that there are."""
    covariate_days: int = 0
    """Days before the start in which users' own behaviour is measured: to adjust the lift for it
    (CUPED), and for `streamer plan` before the start; 0: none."""
    outcomes: str = "exposed"
    """Which events count towards an arm. `exposed`: everything a user does from the first exposure
    on. `attributed`, with `dimension`: events that carry the arm's value, or whose impression
    does."""
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
        return (self.control, *(arm for arm in self.split if arm != self.control))

    @cached_property
    def days(self) -> range:
        """The days that count, since 1970-01-01."""
        last = limits.MAX_EVENT_MS // DAY_MS - 1
        return range(day_of(self.start), (last if self.end is None else day_of(self.end)) + 1)

    @cached_property
    def covariates(self) -> range:
        """The days of the covariates."""
        return range(self.days.start - self.covariate_days, self.days.start)
