"""What an alert looks at. Each check says once what it is called, how it judges, its gauges and the
rules that fire; the API, the page, Grafana and the rules of Prometheus go through the list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamer.metrics.compared_metrics import AlertMeasures
from streamer.query.alerts import AlertEvaluation, Began
from streamer.query.segment_index import Segment
from streamer.query.verdicts import Verdicts
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings
from streamer.state.snapshot import View
from streamer.stats.alerting.baseline import MetricChange, Status
from streamer.stats.alerting.traffic import Traffic

_METRIC, _EVENTS, _RATIO = "as the metric", "events or slates", "ratio"
_EMPTY = "absent where it is not defined, or has no bound"
_AT_0 = "shown at 0"
_TOO_LITTLE_FOR = "2h"


@dataclass(frozen=True)
class AlertVerdict:
    """One segment of an alert (``all`` outside of what it is watched by), and what each check says
    of it, by name; a check that is switched off says nothing."""

    alert: Alert
    segment: Segment
    checks: Mapping[str, MetricChange | Traffic]
    began: Began | None = None
    """When the change of a metric that is bad began."""

    @property
    def metric(self) -> MetricChange:
        """What is said of the metric itself."""
        found = self.checks[CHECKS[0].name]
        assert isinstance(found, MetricChange)
        return found

    @property
    def traffic(self) -> Traffic | None:
        """What is said of its traffic."""
        found = self.checks.get(TrafficCheck.name)
        return found if isinstance(found, Traffic) else None


@dataclass(frozen=True)
class Gauge:
    """A value of a check as a series ``streamer_alert_NAME``; ``value``: its name in the change or
    the traffic; ``column``: its heading in tables of Grafana, where it has one."""

    name: str
    value: str
    doc: str
    formula: str
    unit: str = _RATIO
    empty: str = _EMPTY
    column: str = ""


@dataclass(frozen=True)
class AlertRule:
    """When Prometheus fires: a gauge, the condition, for how long (empty: as the alert says).

    Texts name gauges in brackets, ``[change_ratio]``, and after a bar the text for a gauge that is
    absent: ``[change_upper_ratio|no bound]``. ``[size of NAME]`` is a change in whole percent
    without its sign, ``[least size of NAME]`` the same rounded down.
    ``[metric]`` is its title, ``[segment]`` " of app" (empty: everything together), and ``[since]``
    the time at which the change began, or else at which the condition began to hold.
    """

    name: str
    gauge: str
    condition: str
    summary: str
    description: str
    severity: str = "warning"
    lasting: str = ""
    status: str = ""
    """Which status the gauge is of."""
    fold: str = "max"
    """Of several exporters: both have to say so."""
    over: tuple[str, str, str] | None = None
    """Fold, gauge and condition: once it fires, it goes on until this holds, and where nothing
    comes. None: until its own condition does not hold."""
    unless: str = ""
    """The rule that says so already, while it fires."""


class Check:
    """One thing that an alert looks at."""

    name: str
    title: str
    """What the page calls it."""
    gauges: tuple[Gauge, ...]
    status_gauge: str
    status_doc: str
    is_of_present_pane: bool = True
    """Whether a window that ends now is judged; else the last complete pane is the end."""

    def judge(self, windows: AlertEvaluation, segment: Segment) -> MetricChange | Traffic | None:
        """What is to be said now; None where the alert has no such check."""
        raise NotImplementedError

    def status_at(self, windows: Verdicts, segment: Segment) -> Status | None:
        """The status at another time; None where it is not computed again."""
        raise NotImplementedError

    def rules(self, alert: Alert) -> Iterator[AlertRule]:
        """Its rules for an alert."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Beyond:
    """A direction of a change, the gauge of the end of its interval that decides, and words."""

    verb: str
    way: str
    gauge: str
    condition: str
    fold: str
    between: str
    tolerated: str
    over: tuple[str, str, str]


def _beyond(prefix: str, drop: float, rise: float) -> Iterator[_Beyond]:
    """Changes whose whole interval is beyond; 0: never. ``prefix``: of the gauges."""
    low, high = f"{prefix}change_lower_ratio", f"{prefix}change_upper_ratio"
    between = f"between [{low}] and [{high}|no bound]"
    if drop:
        condition, tolerated = f"< {-drop:g}", f"{100 * drop:g} %"
        over = ("min", low, f"> {-drop:g}")
        yield _Beyond("fell", "down", high, condition, "max", between, tolerated, over)
    if rise:
        condition, tolerated = f"> {rise:g}", f"{100 * rise:g} %"
        over = ("max", high, f"< {rise:g}")
        yield _Beyond("rose", "up", low, condition, "min", between, tolerated, over)


def _moved(what: str, worse: _Beyond, prefix: str, before: str, now: str) -> str:
    """The summary of a change: how large, from where to where, how large at least, since when."""
    return (
        f"{what} {worse.way} [size of {prefix}change_ratio] ([{before}] → [{now}]), at least"
        f" [least size of {worse.gauge}], since [since]"
    )


def _for_the_worse(alert: Alert, change: float, prefix: str = "") -> _Beyond:
    """The direction that an alert is about."""
    is_drop = alert.direction == "higher"
    drop, rise = (change, 0.0) if is_drop else (0.0, change)
    return next(_beyond(prefix, drop, rise))


class MetricCheck(Check):
    """The metric against its baseline."""

    name, title = "metric", "Metric"
    status_gauge = "status"
    status_doc = (
        "Status of a watched segment: within the tolerance, perhaps beyond the tolerance, dropped, "
        "risen, too little data, days differ, no traffic, no baseline."
    )
    gauges = (
        Gauge(
            *("value", "value"),
            "Current value of the watched metric. If feedback may still come, it is the value "
            "of the newest window that can no longer change.",
            *("the metric in the window", _METRIC),
            column="value",
        ),
        Gauge(
            *("lower", "low", "Lower end of the interval of the value, clustered by user."),
            *("lower end of the value's interval", _METRIC),
        ),
        Gauge(
            *("upper", "high", "Upper end of the interval of the value."),
            *("upper end of the value's interval", _METRIC),
        ),
        Gauge(
            *("baseline", "baseline", "Baseline of the comparison."),
            "the metric in past windows without the highest and the lowest, or in a window before",
            _METRIC,
            column="baseline",
        ),
        Gauge(
            *("same_time_value", "same_time"),
            "The metric at the same time on all past days together, independent of the alert's "
            "baseline.",
            *("the metric at the same time on past days", _METRIC),
        ),
        Gauge(
            *("before_value", "before"),
            "The metric in the window before, independent of the alert's baseline.",
            *("the metric in the window before", _METRIC),
        ),
        Gauge(
            *("baseline_windows", "days", "Number of past windows in the baseline."),
            *("past windows with any traffic", "windows", _AT_0),
        ),
        Gauge(
            *("change_ratio", "change", "Relative change from the baseline."),
            "value / baseline - 1",
            column="change",
        ),
        Gauge(
            *("change_lower_ratio", "change_low"),
            "Lower end of the interval of the change. The interval includes variation between "
            "days.",
            "lower end of the change's interval",
            column="from",
        ),
        Gauge(
            *("change_upper_ratio", "change_high"),
            "Upper end of the interval of the change. A fall is significant if this is below 0.",
            "upper end of the change's interval",
            column="to",
        ),
        Gauge(
            *("support", "support", "Support of the value."),
            *("denominator of the metric in the window", _EVENTS, _AT_0),
            column="support",
        ),
        Gauge(
            *("expected_support", "expected_support", "Usual support."),
            *("mean support of the past windows", _EVENTS, _AT_0),
            column="usual support",
        ),
        Gauge(
            *("since_seconds", "since_seconds"),
            "When the change of a metric that is dropped, risen or without traffic began, within a "
            "week.",
            "change point of the segment's panes",
            *("seconds since the epoch", "absent otherwise"),
        ),
    )

    def judge(self, windows: AlertEvaluation, segment: Segment) -> MetricChange | Traffic | None:
        return replace(
            windows.change(segment),
            same_time=windows.pooled(windows.days_of(segment)),
            before=windows.pooled([windows.before_of(segment)]),
        )

    def status_at(self, windows: Verdicts, segment: Segment) -> Status | None:
        return windows.change(segment).status

    def rules(self, alert: Alert) -> Iterator[AlertRule]:
        """The regression itself, and why nothing is said of the metric."""
        metric, window, worse = alert.metric, alert.window, _for_the_worse(alert, alert.drop)
        sizes = {"StreamerMetricRegression": (alert.drop, alert.severity)}
        if alert.critical:
            sizes["StreamerMetricCollapse"] = alert.critical, "critical"
        for name, (change, severity) in sizes.items():
            beyond = _for_the_worse(alert, change)
            yield AlertRule(
                *(name, beyond.gauge, beyond.condition),
                _moved("[metric][segment]", beyond, "", "baseline", "value"),
                f"{metric} over {window} is [value], the baseline [baseline]: a change of"
                f" [change_ratio], {beyond.between}, where {worse.tolerated} is tolerated."
                " Support: [support], usually [expected_support].",
                severity,
                fold=beyond.fold,
                over=beyond.over,
            )
        yield AlertRule(
            *("StreamerMetricNoTraffic", "status", "== 1"),
            "[metric][segment] has no traffic (usually [expected_support]), since [since]",
            f"Nothing was counted over {window}; [expected_support] is usual.",
            status=Status.NO_TRAFFIC,
            unless="StreamerMetricRegression",
        )
        what = "fall" if alert.direction == "higher" else "rise"
        hidden = f"a {what} of {worse.tolerated} can be neither shown nor ruled out"
        now = f"{metric} over {window} is [value|not defined], the baseline [baseline]."
        yield AlertRule(
            *("StreamerMetricTooLittle", "status", "== 1"),
            "[metric][segment] has too little traffic to detect a change",
            f"{now} Support: [support], usually [expected_support]: {hidden}.",
            *("info", _TOO_LITTLE_FOR, Status.TOO_LITTLE),
        )
        yield AlertRule(
            *("StreamerMetricDaysDiffer", "status", "== 1"),
            "Past days of [metric][segment] differ too much to detect a change",
            f"{now} Past days differ so much that the change is anywhere between"
            f" [change_lower_ratio|no bound] and [change_upper_ratio|no bound]: {hidden}, and more"
            " traffic would not help.",
            *("info", _TOO_LITTLE_FOR, Status.DAYS_DIFFER),
        )


class TrafficCheck(Check):
    """Traffic, which is the denominator of the metric, against the usual."""

    name, title = "traffic", "Traffic"
    is_of_present_pane = False
    status_gauge = "traffic_status"
    status_doc = "Status of a watched segment's traffic, in the same words."
    gauges = (
        Gauge(
            *("traffic", "events"),
            "Traffic of the watched metric: its denominator in the last complete panes.",
            *("denominator of the metric in the window without the current pane", _EVENTS),
            "absent where an alert has no traffic alert",
        ),
        Gauge(
            *("traffic_usual", "usual", "Usual traffic at the same time."),
            "trimmed mean (geometric) at the same time on past days; on the same weekday once "
            "four weeks are known",
            _EVENTS,
        ),
        Gauge(
            *("traffic_change_ratio", "change", "Relative change of traffic from the usual."),
            "traffic / usual - 1",
            column="traffic change",
        ),
        Gauge(
            *("traffic_change_lower_ratio", "change_low"),
            "Lower end of the interval of the traffic change, from the variation of past days.",
            "lower end of the interval",
        ),
        Gauge(
            *("traffic_change_upper_ratio", "change_high"),
            *("Upper end of the interval of the traffic change.", "upper end of the interval"),
        ),
    )

    def judge(self, windows: AlertEvaluation, segment: Segment) -> MetricChange | Traffic | None:
        return windows.traffic(segment)

    def status_at(self, windows: Verdicts, segment: Segment) -> Status | None:
        found = windows.traffic(segment)
        return None if found is None else found.status

    def rules(self, alert: Alert) -> Iterator[AlertRule]:
        """Far less traffic than usual, and far more."""
        for beyond in _beyond("traffic_", alert.traffic_drop, alert.traffic_rise):
            yield AlertRule(
                f"StreamerMetricTraffic{beyond.verb.capitalize()}",
                *(beyond.gauge, beyond.condition),
                _moved(
                    "Traffic of [metric][segment]", beyond, "traffic_", "traffic_usual", "traffic"
                ),
                f"Support of {alert.metric} over {alert.window} is [traffic], usually"
                f" [traffic_usual] at this time: a change of [traffic_change_ratio],"
                f" {beyond.between}, where {beyond.tolerated} is tolerated.",
                fold=beyond.fold,
                over=beyond.over,
            )


class ReferenceCheck(Check):
    """The past seven days against a fixed week: slow drift."""

    name, title = "reference", "Reference week"
    status_gauge = "reference_status"
    status_doc = "Status of a watched segment against the reference week, in the same words."
    gauges = (
        Gauge(
            *("past_week_value", "value"),
            "The metric over the past 7 whole days (UTC), for comparison with the reference week.",
            *("the metric in 7 days", _METRIC),
        ),
        Gauge(
            *("reference_value", "baseline", "The metric in the reference week."),
            *("the metric in the reference week", _METRIC),
        ),
        Gauge(
            *("reference_change_ratio", "change"),
            "Relative change of the past 7 days from the reference week.",
            "past week / reference week - 1",
            column="since the reference week",
        ),
        Gauge(
            *("reference_change_lower_ratio", "change_low"),
            "Lower end of the interval of the change from the reference week.",
            "lower end of the interval",
        ),
        Gauge(
            *("reference_change_upper_ratio", "change_high"),
            "Upper end of the interval of the change from the reference week.",
            "upper end of the interval",
        ),
    )

    def judge(self, windows: AlertEvaluation, segment: Segment) -> MetricChange | Traffic | None:
        found = windows.against_reference(segment)
        return None if found is None else replace(found, reference_from=windows.reference_from)

    def status_at(self, windows: Verdicts, segment: Segment) -> Status | None:
        return None

    def rules(self, alert: Alert) -> Iterator[AlertRule]:
        """Slow drift away from the reference week."""
        if alert.reference == "none":
            return
        worse = _for_the_worse(alert, alert.drop, "reference_")
        is_first = alert.reference == "first"
        week = "its first week" if is_first else f"the week from {alert.reference}"
        yield AlertRule(
            *("StreamerMetricDrifted", worse.gauge, worse.condition),
            _moved(
                f"Past 7 days of [metric][segment], against {week},",
                *(worse, "reference_", "reference_value", "past_week_value"),
            ),
            f"{alert.metric} over the past 7 whole days is [past_week_value], and was"
            f" [reference_value] in {week}: a change of [reference_change_ratio],"
            f" {worse.between}, where {worse.tolerated} is tolerated.",
            fold=worse.fold,
            over=worse.over,
        )


CHECKS: tuple[Check, ...] = (MetricCheck(), TrafficCheck(), ReferenceCheck())
"""The first is what the alert is about: it is called `metric`, as the page knows."""


def judged(windows: AlertEvaluation) -> Iterator[AlertVerdict]:
    """What is said of everything together and of each segment; nothing where the window began
    before the metric was counted."""
    for segment in windows.segments() if windows.is_known else ():
        said = ((check.name, check.judge(windows, segment)) for check in CHECKS)
        checks = {name: verdict for name, verdict in said if verdict is not None}
        metric, began = checks.get(CHECKS[0].name), None
        if isinstance(metric, MetricChange) and metric.status.is_bad:
            began = windows.began(segment, metric)
            if began is not None:
                checks[CHECKS[0].name] = replace(metric, since_seconds=began.since_ms / 1000)
        yield AlertVerdict(windows.alert, segment, checks, began)


def watched(
    settings: Settings, measures: AlertMeasures, views: Sequence[View], at_ms: int
) -> list[AlertVerdict]:
    """The verdicts on every alert's segments."""
    return [
        verdict
        for alert in settings.alerts
        for verdict in judged(AlertEvaluation(settings, alert, measures, views, at_ms))
    ]
