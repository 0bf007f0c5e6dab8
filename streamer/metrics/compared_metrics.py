"""What is added up for each user, from which experiments compare arms: metrics that are a ratio of
two sums over a user's events or slates (``metrics.sums``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from streamer.errors import SettingsError
from streamer.metrics import diversity, off_policy, own_ratios, ranking, score_ratios, scoring
from streamer.metrics.alert_series import AlertSeries
from streamer.metrics.definition import Form
from streamer.metrics.ratios import PER_USER, RATIOS, PerUser, Ratio, RatioBy
from streamer.metrics.slate_metrics import SlateFamily, SlateMetric
from streamer.metrics.sums import (
    CONVERSIONS,
    DERIVED,
    IMPRESSIONS,
    OF_SESSIONS,
    OUTCOMES,
    Sum,
    named,
)
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.experiments import (
    DEFAULT_RATIO_CAP,
    Experiment,
    ExperimentMetric,
    percentile_of,
)
from streamer.settings.model import Settings
from streamer.settings.names import nearest
from streamer.settings.own_metrics import words_of
from streamer.stats.experiments.caps import ANY, Cap, Denominator, Quantile
from streamer.stats.experiments.composite import UNIT
from streamer.stats.experiments.trials import (
    AGES,
    CompiledExperiment,
    Exposure,
    Measure,
    Slots,
    Unit,
)

MILLIONTH = 1_000_000
"""Units of a slate's value that is 1."""


@dataclass(frozen=True)
class ComparedRatio:
    """A metric of experiments: numerator / denominator (None: users), names of sums;
    ``unit``: how many units of the numerator are 1; ``high``, ``below_high``: their high limbs."""

    name: str
    title: str
    form: Form
    above: str
    below: str | None
    unit: int = 1
    high: str | None = None
    horizon: str | None = None
    """The setting of [attribution] that it waits for; None: nothing, or feedback to slates."""
    is_share: bool = False
    """Whether a user with any of the numerator counts as 1."""
    counted: str = "users"
    """What the denominator counts, in words."""
    is_signed: bool = False
    """Whether it may be below 0."""
    parts: tuple[WeightedRatio, ...] = ()
    """Of a composite, which has numerator and denominator of its first part for support."""
    noun: str = ""
    """What the numerator counts, in words: `clicks`; empty: it is an amount, such as a time."""
    percentile: Fraction | None = None
    """The share of users at which the numerator is read, in place of the mean: 0.9 of p90."""
    below_high: str | None = None
    below_unit: int = 1
    """How many units of the denominator are 1."""
    words: tuple[str, ...] = ()
    """Of ``[[ratios]]``: numerator and denominator, in words."""

    @property
    def definition(self) -> str:
        """These in a line; empty for metrics that are not of ``[[ratios]]``."""
        return " / ".join(self.words)

    @property
    def factors(self) -> list[Fraction]:
        """Of a composite what the ratio of each part is multiplied by, in units of the parts."""
        return [Fraction(part.factor) / part.ratio.unit for part in self.parts]

    @property
    def sums(self) -> list[str]:
        """Names of the sums by user: numerator, denominator, high limb; of a composite those of all
        its parts."""
        own = [self] if not self.parts else [part.ratio for part in self.parts]
        of = [(each.above, each.below, each.high, each.below_high) for each in own]
        names = [name for each in of for name in each]
        return [name for name in names if name is not None]


@dataclass(frozen=True)
class WeightedRatio:
    """A part of a composite: ``factor`` is what its value is multiplied by."""

    ratio: ComparedRatio
    factor: float


DECLARED: tuple[Ratio, ...] = (*RATIOS, *score_ratios.RATIOS)
"""Every declared ratio over events."""


def _of_ratio(of: Ratio) -> ComparedRatio:
    parts = (of.above.name, of.below.name, of.units, of.above.high, of.horizon)
    signed, noun = of.above.is_signed, _noun(of.above)
    return ComparedRatio(
        *(of.name, of.title, of.form, *parts),
        counted=of.over,
        is_signed=signed,
        noun=noun,
        below_high=of.below.high,
        below_unit=of.below.unit,
    )


def _of_mean(of: PerUser) -> ComparedRatio:
    form: Form = "percent" if of.is_share else of.form
    parts = (of.above.name, None, of.above.unit, of.above.high)
    signed, noun = of.above.is_signed, "" if of.is_share else _noun(of.above)
    return ComparedRatio(
        *(of.name, of.title, form, *parts), is_share=of.is_share, is_signed=signed, noun=noun
    )


def _noun(of: Sum) -> str:
    """What a sum counts; nothing where it is an amount."""
    return "" if of.is_large or of.unit != 1 else of.text


_RATIOS = {ratio.name: ratio for ratio in (*map(_of_ratio, DECLARED), *map(_of_mean, PER_USER))}
_DERIVED = tuple(each.name for each in DERIVED)
SLATE_FAMILIES: dict[str, SlateFamily] = {
    "ranking": ranking.slate_metric,
    "scoring": scoring.slate_metric,
}
BY_LABEL: dict[str, RatioBy] = {
    each.name: each
    for each in (
        *score_ratios.BY_THRESHOLD,
        *off_policy.BY_POLICY,
        *diversity.BY_CUTOFF,
        own_ratios.OWN_RATIOS,
    )
}
_SIGNED = ("kendall_tau", "spearman_rho", "margin_loss")
"""Metrics of slates that may be below 0."""
_POSITIVE = "positive_rate_ratio"
_COMPOSITE = "composite"


@dataclass(frozen=True)
class _SlateSum:
    """Sums over slates of a value, in millionths."""

    metric: SlateMetric
    k: int
    convention: str


def known_names() -> list[str]:
    """The metrics that experiments can be compared by, without cut-offs and options."""
    slates = [metric.name for family in SLATE_FAMILIES.values() for metric in family.values]
    return [*_RATIOS, *BY_LABEL, _POSITIVE, *slates, _COMPOSITE]


class ComparedMetrics:
    """What metrics need to be added up for each user. ``metrics``: (name, who asks for it);
    SettingsError for a name that there is not under these settings."""

    always: ClassVar[tuple[str, ...]] = (IMPRESSIONS.name,)
    """The first sums, whatever the metrics."""

    def __init__(self, settings: Settings, metrics: Iterable[tuple[str, str]]) -> None:
        self.settings = settings
        self.slate_sums: dict[str, _SlateSum] = {}
        self.ratios = {name: self._parsed(name, f"{who}, metric {name!r}") for name, who in metrics}
        """The metrics by name."""
        wanted = [name for ratio in self.ratios.values() for name in _summed(ratio)]
        self.sums = tuple(dict.fromkeys([*self.always, *wanted] if self.ratios else []))
        self._at = {name: i for i, name in enumerate((*self.sums, *_DERIVED))}

    def measure(self, ratio: ComparedRatio) -> Measure:
        """The places of a metric's sums."""
        below = None if ratio.below is None else self._at[ratio.below]
        high = None if ratio.high is None else self._at[ratio.high]
        parts = tuple(self.measure(part.ratio) for part in ratio.parts)
        above = self._at[ratio.above]
        below_high = None if ratio.below_high is None else self._at[ratio.below_high]
        places = (ratio.name, above, below, high)
        percentile = ratio.percentile
        return Measure(*places, parts=parts, percentile=percentile, below_high=below_high)

    # Names ---------------------------------------------------------------------------------------

    def _parsed(self, name: str, at: str) -> ComparedRatio:
        """The ratio that a name stands for: ``base[@k][.option…]``, or ``base@p90``."""
        if (found := percentile_of(name)) is not None:
            return self._percentile(*found, at)
        base, _, rest = name.partition("@")
        if base == _COMPOSITE:
            return self._composite(rest, at)
        if base == own_ratios.NAME:
            return self._own_ratio(rest, at)
        if base in BY_LABEL:
            return self._by_label(BY_LABEL[base], rest, at)
        k, *options = rest.split(".") if rest else ["0", *base.split(".")[1:]]
        base = base.split(".")[0]
        if base in _RATIOS and base == name:
            return _RATIOS[base]
        if base == _POSITIVE and not rest:
            return self._positive(name, options or ["click"], at)
        for family_name, family in SLATE_FAMILIES.items():
            for metric in family.values:
                if metric.name == base:
                    is_on = family_name in self.settings.metrics.families
                    self._require(is_on, at, f"needs {family_name!r} in metrics.families")
                    return self._of_slates(name, metric, k, options, at)
        known = known_names()
        close = nearest(name.partition("@")[0].partition(".")[0], known)
        meant = f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"
        raise SettingsError(f"{at}: no such metric: {meant} (as base[@k][.option])")

    def _require(self, condition: bool, at: str, message: str) -> None:
        if not condition:
            raise SettingsError(f"{at}: {message}")

    def _percentile(self, name: str, percent: str, at: str) -> ComparedRatio:
        of, share = self._parsed(name, at), Fraction(percent) / 100
        self._require(0 < share < 1, at, f"@p{percent} is above 0 and below 100")
        self._require(of.below is None, at, "percentiles are of a metric by user")
        title = f"{of.title}, percentile {percent}"
        return replace(of, name=f"{name}@p{percent}", title=title, percentile=share)

    def _by_label(self, of: RatioBy, value: str, at: str) -> ComparedRatio:
        known = {labels[of.label]: ratio for labels, ratio in of.variants(self.settings)}
        self._require_value(of.label, of.listed, value, known, at)
        return _of_ratio(known[value])

    def _own_ratio(self, name: str, at: str) -> ComparedRatio:
        known = {each.name: each for each in self.settings.ratios}
        self._require_value(own_ratios.NAME, own_ratios.FAMILY_NAME, name, known, at)
        of = known[name]
        ratio = own_ratios.ratio_of(of, self.settings)
        if ratio is None or own_ratios.is_per_user(of):
            found = _of_mean(own_ratios.per_user(of, self.settings))
        else:
            found = _of_ratio(ratio)
        return replace(found, words=words_of(of))

    def _require_value(
        self, label: str, setting: str, value: str, known: Iterable[str], at: str
    ) -> None:
        there = ", ".join(known) or "none"
        self._require(value in known, at, f"@{label} is one of {setting}: {there}")

    def _composite(self, name: str, at: str) -> ComparedRatio:
        known = {composite.name: composite for composite in self.settings.composites}
        self._require_value(_COMPOSITE, "composites", name, known, at)
        parts = []
        for i, part in enumerate(known[name].parts):
            where = f"{at}, parts[{i}] {part.metric!r}"
            self._require(
                part.against != "day_before",
                where,
                "is against the day before; alerts compare with past days by themselves, and arms "
                "of experiments with each other: make a composite of values and targets",
            )
            ratio = self._parsed(part.metric, where)
            self._require(ratio.below is not None, where, "is a mean over users")
            factor = known[name].shares[i] / (part.target or 1.0)
            parts.append(WeightedRatio(ratio, factor))
        first = parts[0].ratio
        return ComparedRatio(
            *(f"{_COMPOSITE}@{name}", f"Composite {name}", "number", first.above, first.below),
            *(UNIT, first.high),
            below_high=first.below_high,
            is_signed=True,
            parts=tuple(parts),
        )

    def _positive(self, name: str, options: list[str], at: str) -> ComparedRatio:
        kinds = self.settings.user_feedback_kinds
        self._require(
            len(options) == 1 and options[0] in kinds,
            at,
            f"one kind of feedback after the dot: {', '.join(kinds)}",
        )
        title = "Positive rate" if options == ["click"] else f"Positive rate, {options[0]}"
        is_conversion = options[0] == "conversion"
        kind = CONVERSIONS.name if is_conversion else named("feedback", options[0])
        return ComparedRatio(
            name, title, "percent", kind, IMPRESSIONS.name, counted=IMPRESSIONS.text
        )

    def _of_slates(
        self,
        name: str,
        metric: SlateMetric,
        k: str,
        options: list[str],
        at: str,
    ) -> ComparedRatio:
        cuts = self.settings.metrics.cutoffs if metric.by_k else {"0": 0}
        rule = f"@k is one of metrics.k: {', '.join(cuts)}" if metric.by_k else "has no cut-off @k"
        self._require(k in cuts, at, rule)
        over, convention = metric.over[:1] or (metric.population.name,), ""
        for option in options:
            if option in metric.over:
                over = (option,)
            elif option in metric.conventions:
                convention = option
            else:
                known = [*metric.over, *metric.conventions]
                raise SettingsError(f"{at}: option {option!r}; it has {', '.join(known) or 'none'}")
        value = _SlateSum(metric, cuts[k], convention)
        above = f"{metric.name}@{k}.{convention}"
        self.slate_sums[above] = value
        title = ", ".join([metric.title + (f"@{k}" if metric.by_k else ""), *options])
        return ComparedRatio(
            *(name, title, metric.form, above, named("slates", over[0]), MILLIONTH),
            counted="slates",
            is_signed=metric.name in _SIGNED,
        )


def _summed(ratio: ComparedRatio) -> list[str]:
    """The sums of a metric over events."""
    return [name for name in ratio.sums if name not in _DERIVED]


def found_experiment(
    settings: Settings, key: str, arms: Sequence[str], first_day: int, name: str = ""
) -> Experiment:
    """An experiment that events name and settings do not."""
    defaults = settings.experiments_defaults
    controls = [arm for arm in defaults.controls if arm in arms]
    return defaults.experiment(
        name=name or key,
        key=key,
        control=controls[0] if controls else min(arms),
        split={arm: defaults.split.get(arm, 1.0) for arm in sorted(arms)},
        start=date_of(first_day),
    )


def exposure_of(settings: Settings, experiment: Experiment) -> Exposure:
    """What exposes users to an experiment."""
    paths = settings.arm_paths_of(experiment)
    return Exposure(
        arms=tuple(sorted(experiment.arms)),
        first_day=experiment.days.start,
        dimension=experiment.dimension,
        paths=paths,
        key=experiment.called,
        is_attributed=experiment.outcomes == "attributed",
        unit=_unit_of(experiment),
    )


def _unit_of(experiment: Experiment) -> Unit | None:
    """What is put into its arms; None: users."""
    if experiment.unit_field is None:
        return None
    of = experiment.switchback
    if of is None:
        return Unit(experiment.unit_field)
    named = {value: arms for value, arms in of.by_value.items() if value != "*"}
    start_ms, others = experiment.days.start * DAY_MS, of.by_value.get("*", ())
    times = (start_ms, of.slot_ms, of.washout_ms)
    schedule = tuple(sorted(named.items()))
    return Unit(of.by, Slots(experiment.name, *times, schedule, others))


class ExperimentMeasures(ComparedMetrics):
    """What the experiments of the settings need."""

    always = (IMPRESSIONS.name, OUTCOMES)

    def __init__(self, settings: Settings) -> None:
        named = [
            (m.name, f"experiment {e.name!r}") for e in settings.experiments for m in e.metrics
        ]
        defaults = settings.experiments_defaults
        named += [(m.name, "experiments_defaults") for m in defaults.metrics]
        super().__init__(settings, named)
        self.trials = tuple(
            CompiledExperiment(
                experiment.name,
                experiment.arms,
                experiment.days,
                experiment.covariates,
                tuple(self._measures(experiment)),
                exposure_of(settings, experiment),
            )
            for experiment in settings.experiments
        )
        for experiment in settings.experiments:
            self._require_loss(experiment)
        slots = range(defaults.max_found) if settings.finds_experiments else ()
        self.slots = tuple(self._slot(settings, slot) for slot in slots)
        """Of experiments that are found: their arms have numbers for names."""
        self.periods = {
            trial.name: tuple(replace(trial, days=period.days) for period in experiment.periods)
            for trial, experiment in zip(self.trials, settings.experiments, strict=True)
            if len(experiment.periods) > 1
        }
        """Of experiments with a ramp its periods, as experiments of their own."""
        periods = (period for its in self.periods.values() for period in its)
        self.of_users = (*(trial for trial in self.trials if trial.unit is None), *periods)
        """Those whose unit is the user, and periods."""
        self.by_unit: dict[Unit, list[CompiledExperiment]] = {}
        """Unit → those of another one."""
        for trial in self.trials:
            if trial.unit is not None:
                self.by_unit.setdefault(trial.unit, []).append(trial)

    def _require_loss(self, experiment: Experiment) -> None:
        """SettingsError where a bound of losses is of nothing that a metric per user counts."""
        bound = experiment.loss_bound
        ratios = [self.ratios[each.name] for each in experiment.metrics]
        nouns = dict.fromkeys(each.noun for each in ratios if each.below is None and each.noun)
        if bound is not None and bound[1] not in nouns:
            known = ", ".join(nouns) or "nothing: add one, such as conversions_per_user"
            raise SettingsError(
                f"experiment {experiment.name!r}: max_loss is of {bound[1]!r}, and its metrics per "
                f"user count {known}"
            )

    def _slot(self, settings: Settings, slot: int) -> CompiledExperiment:
        arms = tuple(str(arm) for arm in range(1, limits.MAX_ARMS + 1))
        days = range(limits.MAX_EVENT_MS // DAY_MS)
        exposure = Exposure("", arms, days.start, paths=(f"slot {slot}",))
        measures = tuple(self._measures(found_experiment(settings, "slot", arms, days.start)))
        return CompiledExperiment(f"slot {slot}", arms, days, range(0), measures, exposure)

    def compiled(self, experiment: Experiment) -> CompiledExperiment:
        """An experiment that was found, as it is counted."""
        exposure = exposure_of(self.settings, experiment)
        measures = tuple(self._measures(experiment))
        return CompiledExperiment(
            experiment.name, experiment.arms, experiment.days, range(0), measures, exposure
        )

    @property
    def counted(self) -> tuple[CompiledExperiment, ...]:
        """All that is counted of users: experiments of the settings, and slots."""
        return (*self.of_users, *self.slots)

    def _measures(self, experiment: Experiment) -> Iterator[Measure]:
        """Those of the metrics, and of the primary one for each age of users."""
        for metric in experiment.metrics:
            measure = self._capped(metric)
            yield replace(measure, within=metric.within_days, is_mature=metric.mature)
            has_ages = not measure.parts and experiment.switchback is None and not metric.mature
            if metric == experiment.primary and has_ages:
                yield from (replace(measure, age=age) for age in AGES)

    def _capped(self, metric: ExperimentMetric) -> Measure:
        ratio, cap = self.ratios[metric.name], metric.cap
        if ratio.percentile is not None:
            return self.measure(ratio)
        if ratio.parts:
            return self.measure(ratio)
        if ratio.below is not None:
            cap = DEFAULT_RATIO_CAP if cap is None else cap
            quantile, amount = (cap, None) if 0 < cap < 1 else (None, round(cap) or None)
            return replace(self.measure(ratio), cap=Denominator(quantile, amount))
        if ratio.is_share:
            return replace(self.measure(ratio), cap=ANY)
        found: Cap = None
        if cap:
            found = Quantile(cap) if cap < 1 else round(cap * ratio.unit)
        return replace(self.measure(ratio), cap=found)

    def needs(self, trial: CompiledExperiment) -> list[str]:
        """What an experiment needs to be counted: sums, and the exposure to it."""
        names = [n for m in trial.measures if not m.age for n in _summed(self.ratios[m.name])]
        units = () if trial.unit is None else (trial.unit.name,)
        return list(dict.fromkeys([*self.always, *names, trial.exposure.name, *units]))


class AlertMeasures(ComparedMetrics):
    """What the alerts of the settings need."""

    def __init__(self, settings: Settings) -> None:
        named = [(alert.metric, f"alert {alert.name!r}") for alert in settings.alerts]
        super().__init__(settings, named)
        of_sessions = {each.name for each in OF_SESSIONS}
        for alert in settings.alerts:
            if self.ratios[alert.metric].below is None:
                raise SettingsError(
                    f"alert {alert.name!r}: {alert.metric!r} is a mean over users, which panes do "
                    "not add up to; use one over events or slates"
                )
            if of_sessions.intersection(self.ratios[alert.metric].sums):
                raise SettingsError(
                    f"alert {alert.name!r}: {alert.metric!r} is of sessions, which count at an end "
                    "that may still move; use one over events or slates"
                )
        every = [each for alert in settings.alerts for each in self.series_of(alert)]
        self.series = tuple(dict.fromkeys(t for each in every for t in (each, weeks_of(each))))
        panes = sum(ring.panes for series in self.series for ring in series.rings)
        if panes > limits.MAX_ALERT_PANES:
            raise SettingsError(
                f"alerts: {len(self.series) // 2} different ones have {panes} panes, at most "
                f"{limits.MAX_ALERT_PANES}: use longer windows, or fewer of them"
            )

    def series_of(self, alert: Alert) -> list[AlertSeries]:
        """Where an alert's metric is kept by groups of users; of a composite each part."""
        segments = tuple(n for n in self.settings.dimension_names if n in alert.segments)
        ratio = self.ratios[alert.metric]
        parts = [part.ratio for part in ratio.parts] or [ratio]
        lag_ms = max(map(self._lag_ms, parts))
        return [AlertSeries(self.measure(p), alert.window_ms, segments, lag_ms) for p in parts]

    def _lag_ms(self, ratio: ComparedRatio) -> int:
        """How long after a moment its values can still change by feedback that is to come."""
        settings = self.settings
        if ratio.above in self.slate_sums:
            horizon_ms = settings.feedback_horizon_ms
        elif ratio.horizon is None:
            return 0
        else:
            horizon_ms = getattr(settings.attribution, ratio.horizon)
        return horizon_ms + settings.time.max_lateness_ms


def weeks_of(series: AlertSeries) -> AlertSeries:
    """Where the totals of four weeks of what a series has by groups are kept."""
    return replace(series, is_by_time=True)
