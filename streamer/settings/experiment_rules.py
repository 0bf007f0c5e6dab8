"""Rules of ``[[experiments]]`` that types cannot say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.durations import DAY_MS, date_of, day_of, duration_ms
from streamer.settings.event_fields import ALL_FIELDS, EXPOSURES, KINDS
from streamer.settings.experiments import (
    USER,
    USER_ID,
    Experiment,
    ExperimentMetric,
    Switchback,
    percentile_of,
)
from streamer.settings.labels import is_value, validate_dimension_name, validate_names
from streamer.settings.paths import path_of
from streamer.settings.schedules import shares_of
from streamer.settings.sources import several

if TYPE_CHECKING:
    from streamer.settings.model import Settings


_MOST_APART = 0.01
"""By how much the share of an arm in a schedule may differ from the split."""


def require(condition: bool, message: str) -> None:
    """SettingsError with this message where a condition does not hold."""
    if not condition:
        raise SettingsError(message)


def validate_experiments(s: Settings) -> None:
    """Raise SettingsError at the first experiment that cannot be run."""
    names = [e.name for e in s.experiments]
    validate_names("experiments", names, limits.MAX_EXPERIMENTS, limits.LABEL_PATTERN)
    units = [e.name if e.switchback else e.unit for e in s.experiments if e.unit_field is not None]
    require(
        len({*units}) <= limits.MAX_UNITS,
        f"experiments have {len({*units})} units besides the user, each switchback being one; at "
        f"most {limits.MAX_UNITS}",
    )
    _validate_defaults(s)
    for i, e in enumerate(s.experiments):
        at = f"at experiments[{i}]"
        _validate_words(e, at)
        if e.switchback is None:
            _validate_arm(s, e, at)
        _validate_unit(s, e, at)
        _validate_periods(e, at)
        _validate_loss(e, at)
        require(
            1 < len(e.shares) <= limits.MAX_ARMS and e.control in e.shares,
            f"split = {e.split}: 2 to {limits.MAX_ARMS} arms, control = {e.control!r} one of "
            f"them; {at}",
        )
        for arm, share in [its for period in e.periods for its in period.shares.items()]:
            require(
                is_value(arm) and 0 < share < math.inf,
                f"split.{arm} = {share}: a value of {s.says_arm(e)!r}, and a share above 0; {at}",
            )
        others = [name for name in s.dimension_names if name != e.dimension]
        require(
            set(e.explore) <= set(others),
            f"explore = {list(e.explore)}: dimensions besides {e.dimension!r}: {others}; {at}",
        )
        _validate_experiment_days(e, at)
        _validate_experiment_metrics(e, at)


def _validate_periods(e: Experiment, at: str) -> None:
    if isinstance(e.split, dict):
        return
    days = [period.days for period in e.periods]
    is_whole = bool(days) and days[0].start == e.days.start and all(map(len, days))
    require(
        is_whole and len(days) == len(e.split),
        f"split: each period has a from, the first of them start = {e.start}, then later days of "
        f"the experiment; {at}",
    )
    arms = {tuple(sorted(period.shares)) for period in e.periods}
    require(len(arms) == 1, f"split: every period has the same arms; {at}")
    is_plain = e.unit_field is None and e.outcomes == "exposed"
    percentiles = [metric.name for metric in e.metrics if percentile_of(metric.name)]
    require(
        is_plain and not percentiles and not e.explore,
        "split: an experiment with several periods is one on users, with outcomes = 'exposed' and "
        f"neither percentiles nor explore; {at}",
    )


def _reads_exposures(s: Settings) -> bool:
    """Whether a topic has events of exposures."""
    return any(EXPOSURES in log.kinds for log in s.logs.values())


def _validate_defaults(s: Settings) -> None:
    """What is said of experiments that are found."""
    d, at = s.experiments_defaults, "at experiments_defaults"
    for path in several(d.arm):
        path_of(path)
    rate = d.false_discovery_rate
    require(
        rate is None or 0 < rate < 1,
        f"false_discovery_rate = {rate}: above 0 and below 1, e.g. 0.1; {at}",
    )
    if not d.metrics:
        return
    require(
        bool(d.arm) or _reads_exposures(s),
        "metrics without arm, and no topic of exposures is read: say where events have their "
        f"experiments, as arm = 'experiments', or set kafka.topics.exposures; {at}",
    )
    require(
        1 <= d.max_found <= limits.MAX_FOUND_EXPERIMENTS,
        f"max_found = {d.max_found}: 1 to {limits.MAX_FOUND_EXPERIMENTS}; {at}",
    )
    require(
        1 <= d.silent_days <= limits.MAX_FOUND_DAYS,
        f"silent_days = {d.silent_days}: 1 to {limits.MAX_FOUND_DAYS}; {at}",
    )
    for arm, share in d.split.items():
        require(0 < share < math.inf, f"split.{arm} = {share}: a share above 0; {at}")
    found = d.experiment(name="found", control="A", split={"A": 1, "B": 1}, start=date_of(0))
    _validate_experiment_days(found, at)
    _validate_experiment_metrics(found, at)


def _validate_arm(s: Settings, e: Experiment, at: str) -> None:
    """What says the arm."""
    paths = s.arm_paths_of(e)
    require(
        not (e.dimension and e.paths),
        f"arm = {e.arm!r} and dimension = {e.dimension!r}: keep one of them; {at}",
    )
    if e.dimension:
        require(
            e.dimension in s.dimension_names,
            f"dimension = {e.dimension!r}; dimensions are {list(s.dimension_names)}; {at}",
        )
        return
    require(
        bool(paths) or _reads_exposures(s),
        f"experiment {e.name!r} has neither arm nor dimension, and no events of exposures are "
        f"read: say where events have its arm, as arm = 'experiments.{e.name}'; {at}",
    )
    require(
        e.outcomes == "exposed",
        f"outcomes = {e.outcomes!r}: only with dimension, whose values events carry, not with arm; "
        f"{at}",
    )
    require(
        len(e.key) <= limits.MAX_LABEL_CHARS,
        f"key of {len(e.key)} characters: at most {limits.MAX_LABEL_CHARS}; {at}",
    )
    for path in paths:
        _validate_path(s, path, at)
    require(
        len(s.arm_paths) <= limits.MAX_ARM_PATHS,
        f"{len(s.arm_paths)} paths say arms; at most {limits.MAX_ARM_PATHS}: use one that has the "
        f"arms of several experiments; {at}",
    )


def _validate_words(e: Experiment, at: str) -> None:
    """What pages say of an experiment."""
    for key, text in (("title", e.title), ("hypothesis", e.hypothesis), ("owner", e.owner)):
        require(
            len(text) <= limits.MAX_WORDS_CHARS and text.isprintable(),
            f"{key} of {len(text)} characters: at most {limits.MAX_WORDS_CHARS}, in one line; {at}",
        )
    require(
        not e.url or (e.url.startswith(("https://", "http://")) and e.url.isprintable()),
        f"url = {e.url[: limits.MAX_FOUND_CHARS]!r}: an address that begins with https://; {at}",
    )


def _validate_loss(e: Experiment, at: str) -> None:
    try:
        _ = e.loss_bound
    except ValueError:
        text = f"max_loss = {e.max_loss!r}: a number above 0, and what it is of: '50 conversions'"
        raise SettingsError(f"{text}; {at}") from None


def _validate_unit(s: Settings, e: Experiment, at: str) -> None:
    """What is put into arms, where that is not the user."""
    if e.unit_field is None:
        return
    if e.switchback is not None:
        _validate_switchback(e, e.switchback, at)
    if e.unit_field and e.unit_field not in (USER_ID, *s.dimension_names):
        require(
            e.unit_field not in ALL_FIELDS,
            f"{e.unit_field!r} is a field of events with a meaning of its own, and no unit: name "
            f"the field that has the id; {at}",
        )
        validate_dimension_name(e.unit_field, at)
    for key, said, why in (
        ("outcomes", e.outcomes == "attributed", "events count for their unit"),
        ("explore", bool(e.explore), "only users are told apart by dimensions"),
        ("layer", bool(e.layer), "layers and holdouts are of users"),
        ("holdout", e.holdout, "layers and holdouts are of users"),
    ):
        require(not said, f"{key} with another unit than the user: {why}; remove it; {at}")


def _validate_switchback(e: Experiment, of: Switchback, at: str) -> None:
    """Slots of time, and their arms."""
    at = f"{at}.switchback"
    for key, said in (("arm", e.arm), ("dimension", e.dimension), ("key", e.key)):
        require(
            not said,
            f"{key} = {said!r}: the schedule says the arm of a switchback; remove it; {at}",
        )
    require(
        e.unit == USER,
        f"unit = {e.unit!r}: the unit of a switchback is the slot; name {e.unit!r} as "
        f"switchback.by; {at}",
    )
    require(
        e.covariate_days == 0,
        f"covariate_days = {e.covariate_days}: slots have no days before it; remove it; {at}",
    )
    require(
        limits.MIN_SLOT_MS <= of.slot_ms <= DAY_MS and DAY_MS % of.slot_ms == 0,
        f"slot = {of.slot!r}: a minute to a day, and a whole number of them a day; {at}",
    )
    require(
        of.washout_ms < of.slot_ms,
        f"washout = {of.washout!r}: shorter than slot = {of.slot!r}; {at}",
    )
    require(bool(of.schedule), f"schedule: say the arms of the slots; {at}")
    require(
        bool(of.by) or isinstance(of.schedule, tuple),
        f"schedule: a list, as there is no `by` whose values it could name; {at}",
    )
    for value, arms in of.by_value.items():
        wrong = ", ".join(map(repr, sorted(set(arms) - set(e.shares))))
        require(not wrong, f"schedule of {value!r}: {wrong}: arms are {list(e.arms)}; {at}")
        require(
            len(arms) <= limits.MAX_SCHEDULE_SLOTS and len(set(arms)) > 1,
            f"schedule of {value!r} with {len(arms)} slots: 2 to {limits.MAX_SCHEDULE_SLOTS}, of "
            f"several arms; {at}",
        )
    shares, total = shares_of(of.by_value), sum(e.shares.values())
    apart = max(abs(shares.get(arm, 0.0) - its / total) for arm, its in e.shares.items())
    named = ", ".join(f"{arm} = {share:.3g}" for arm, share in shares.items())
    require(
        apart <= _MOST_APART,
        f"split = {e.split}: the schedule gives the arms other shares of the slots: write "
        f"split = {{ {named} }}; {at}",
    )


def _validate_path(s: Settings, path: str, at: str) -> None:
    """Each field of events in our own shape is one thing."""
    first = str(path_of(path)[0])
    require(
        path not in s.dimension_names,
        f"arm = {path!r} is a dimension: write dimension = {path!r}; {at}",
    )
    if s.reads_sources:
        return
    theirs = {s.events.fields.get(ours, ours): ours for ours in (*s.dimension_names, *ALL_FIELDS)}
    of_ratios = {name: "one of a ratio" for kind in KINDS for name in s.own_fields[kind]}
    known = {**of_ratios, **theirs}
    require(
        first not in known,
        f"arm = {path!r}: {first} is a field of events, {known.get(first)}: name one that says "
        f"arms alone; {at}",
    )


def _validate_experiment_days(e: Experiment, at: str) -> None:
    require(
        len(e.days) > 0 and e.days.stop * DAY_MS <= limits.MAX_EVENT_MS,
        f"start = {e.start} and end = {e.end}: must be at least a day apart, and before 2100; {at}",
    )
    require(
        0 <= e.covariate_days <= limits.MAX_COVARIATE_DAYS and e.covariates.start >= 0,
        f"covariate_days = {e.covariate_days} before {e.start}: must be 0 to "
        f"{limits.MAX_COVARIATE_DAYS}, and not reach back before 1970; {at}",
    )
    require(0 < e.alpha < 1, f"alpha = {e.alpha}: above 0 and below 1; {at}")
    require(
        e.outcomes in ("exposed", "attributed"),
        f"outcomes = {e.outcomes!r}: 'exposed' or 'attributed'; {at}",
    )
    require(
        e.decide in ("any_time", "at_end"),
        f"decide = {e.decide!r}: 'any_time' or 'at_end'; {at}",
    )
    require(
        e.decide == "any_time" or e.end is not None,
        f"decide = 'at_end' without an end: set end, the last day, before the start; {at}",
    )
    require(
        e.planned_users is None or (e.decide == "at_end" and e.planned_users > 0),
        f"planned_users = {e.planned_users}: above 0, and only with decide = 'at_end'; {at}",
    )
    outside = [f"{day}" for day in e.exclude if day_of(day) not in e.days]
    require(not outside, f"exclude = {', '.join(outside)}: not from start to end; {at}")
    require(e.expected_users > 0, f"expected_users = {e.expected_users}: above 0; {at}")
    require(
        e.min_users >= limits.MIN_USERS,
        f"min_users = {e.min_users}: at least {limits.MIN_USERS}, for with fewer users in an arm "
        f"no interval holds at any time; {at}",
    )
    require(
        1 <= e.min_days <= limits.MAX_MIN_DAYS,
        f"min_days = {e.min_days}: 1 to {limits.MAX_MIN_DAYS}; {at}",
    )
    require(0.5 <= e.power < 1, f"power = {e.power}: 0.5 to below 1; {at}")
    require(
        e.min_lift is None or 0 < e.min_lift < 1,
        f"min_lift = {e.min_lift}: above 0 and below 1, e.g. 0.02 for 2 %; {at}",
    )


def _validate_window(e: Experiment, metric: ExperimentMetric, at: str) -> None:
    if metric.within is None:
        require(not metric.mature, f"{metric.name}: mature = true without within; {at}")
        return
    ms = duration_ms(metric.within, at)
    require(
        0 < ms <= limits.MAX_COVARIATE_DAYS * DAY_MS and ms % DAY_MS == 0,
        f"{metric.name}: within = {metric.within!r}: whole days, at most "
        f"{limits.MAX_COVARIATE_DAYS}; {at}",
    )
    is_single = e.unit_field is None and not metric.name.startswith("composite")
    require(
        is_single and e.outcomes == "exposed",
        f"{metric.name}: within is of single metrics of users, with outcomes = 'exposed'; {at}",
    )


def _validate_experiment_metrics(e: Experiment, at: str) -> None:
    names = [metric.name for metric in e.metrics]
    require(
        0 < len(names) <= limits.MAX_EXPERIMENT_METRICS and len(set(names)) == len(names),
        f"metrics {names}: 1 to {limits.MAX_EXPERIMENT_METRICS}, each once; {at}",
    )
    named = [metric.name for metric in e.metrics if metric.primary]
    require(len(named) < 2, f"primary = true of {' and '.join(named)}: one metric decides; {at}")
    for metric in e.metrics:
        require(
            not (metric.primary and metric.is_guardrail),
            f"{metric.name}: primary = true and a margin: a metric with a margin is a guardrail, "
            f"which forbids a harm but decides nothing; remove one of them; {at}",
        )
        validate_direction(metric.direction, f"{metric.name}: ", at)
        _validate_window(e, metric, at)
        require(
            metric.margin is None or 0 < metric.margin < 1,
            f"{metric.name}: margin = {metric.margin}: above 0 and below 1, e.g. 0.02 for 2 %; an "
            f"amount is a margin_absolute; {at}",
        )
        require(
            metric.margin_absolute is None or 0 < metric.margin_absolute < math.inf,
            f"{metric.name}: margin_absolute = {metric.margin_absolute}: above 0, in the unit of "
            f"the metric; {at}",
        )
        require(
            metric.margin is None or metric.margin_absolute is None,
            f"{metric.name}: margin and margin_absolute: a guardrail has one of them; {at}",
        )
        require(
            metric.cap is None or 0 <= metric.cap <= limits.MAX_VALUE,
            f"{metric.name}: cap = {metric.cap}: a quantile below 1, an amount from 1 to "
            f"{limits.MAX_VALUE:g}, or 0; {at}",
        )
        require(
            metric.cap is None or not metric.name.startswith("composite@"),
            f"{metric.name}: cap = {metric.cap}: a composite cannot be capped; remove it; {at}",
        )
        require(
            metric.cap is None or percentile_of(metric.name) is None,
            f"{metric.name}: cap = {metric.cap}: the heaviest users do not move a percentile, so "
            f"that it has no cap; remove it; {at}",
        )


def validate_direction(direction: str, whose: str, at: str) -> None:
    """SettingsError where it is none; ``whose`` and ``at`` say where it stands."""
    known = direction in ("higher", "lower")
    require(known, f"{whose}direction = {direction!r}: 'higher' or 'lower'; {at}")
