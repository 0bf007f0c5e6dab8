"""Alert rules for the metrics that the settings watch.

A rule fires when the interval of the change, not the point, is beyond what is tolerated.
"""

from __future__ import annotations

from typing import Any

from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.query.segment_index import ALL
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings
from streamer.stats.alerting.baseline import Status

_TOO_LITTLE_FOR = "2h"
_NUMBER, _COUNT, _PERCENT = "printf `%.4g`", "humanize", "humanizePercentage"


def document(settings: Settings, page: str, runbooks: str) -> dict[str, Any]:
    """The rule file: a group for each alert. ``page``: where an exporter shows its page;
    ``runbooks``: the page with a section for each alert."""
    Catalogue(settings)  # names every metric that there is not
    return {"groups": [_group(alert, settings, page, runbooks) for alert in settings.alerts]}


def _group(alert: Alert, settings: Settings, page: str, runbooks: str) -> dict[str, Any]:
    rules = [
        _moved(alert, settings),
        *_silent(alert, settings),
        *_traffic(alert, settings),
        *_drifted(alert, settings),
    ]
    for rule in rules:
        rule["annotations"] |= {
            "runbook_url": f"{runbooks}#{rule['alert'].lower()}",
            "dashboard": f"{page}/?alert={alert.name}#explain",
        }
    return {"name": f"streamer-metrics-{alert.name}", "rules": rules}


def _series(alert: Alert, name: str, *more: str, fold: str = "max") -> str:
    """One series a segment, whichever exporter shows it."""
    where = ", ".join((f'alert="{alert.name}"', *more))
    return f"{fold} without (instance) ({PREFIX}alert_{name}{{{where}}})"


def _segment(alert: Alert) -> str:
    """The segment in words: all that it is watched by, or nothing of it."""
    if not alert.segments:
        return "everything together"
    values = ", ".join(f"{name} {{{{ $labels.{name} }}}}" for name in alert.segments)
    whole = f"{{{{ if eq $labels.{alert.segments[0]} `{ALL}` }}}}everything together"
    return f"{whole}{{{{ else }}}}{values}{{{{ end }}}}"


def _selecting(settings: Settings) -> str:
    """A variable for ``_queried``: the labels of the segment, as a selector."""
    names = ("job", "alert", *settings.dimension_names)
    pattern = ", ".join(f"{name}=%q" for name in names)
    values = " ".join(f"$labels.{name}" for name in names)
    return f"{{{{ $segment := printf `{{{pattern}}}` {values} }}}}"


def _queried(name: str, form: str, missing: str = "unknown") -> str:
    """Another series of the same segment, inside an annotation; absent series are ``missing``."""
    found = f"{{{{ with query (print `{PREFIX}alert_{name}` $segment) }}}}"
    return f"{found}{{{{ . | first | value | {form} }}}}{{{{ else }}}}{missing}{{{{ end }}}}"


def _rule(
    alert: Alert,
    name: str,
    expression: str,
    severity: str,
    lasting: str,
    words: tuple[str, str],
) -> dict[str, Any]:
    """``words``: summary and description."""
    summary, description = words
    return {
        "alert": name,
        "expr": expression,
        "for": lasting,
        "keep_firing_for": alert.for_,  # an exporter that restarts is no recovery
        "labels": {"severity": severity, "alert": alert.name, "metric": alert.metric},
        "annotations": {
            "summary": f"{summary}: {_segment(alert)}",
            "description": description,
        },
    }


def _beyond(alert: Alert, what: str, drop: float, rise: float) -> dict[str, str]:
    """Verb → expression of changes whose whole interval is beyond. Of two exporters both have to
    say so. ``what`` comes before ``change`` in the names of series; 0: never."""
    found = {}
    if drop:
        found["fell"] = f"{_series(alert, f'{what}change_upper_ratio')} < {-drop:g}"
    if rise:
        series = _series(alert, f"{what}change_lower_ratio", fold="min")
        found["rose"] = f"{series} > {rise:g}"
    return found


def _for_the_worse(alert: Alert, what: str = "") -> tuple[str, str]:
    """The verb and the expression of the direction that an alert is about."""
    is_drop = alert.direction == "higher"
    drop, rise = (alert.drop, 0.0) if is_drop else (0.0, alert.drop)
    (found,) = _beyond(alert, what, drop, rise).items()
    return found


def _between(verb: str, what: str = "") -> str:
    """Both ends of the interval of a change: the alert's own value is one of them."""
    end = f"{{{{ $value | {_PERCENT} }}}}"
    if verb == "fell":
        return f"between {_queried(f'{what}change_lower_ratio', _PERCENT)} and {end}"
    upper = _queried(f"{what}change_upper_ratio", _PERCENT, "no bound")
    return f"between {end} and {upper}"


def _percent(ratio: float) -> str:
    return f"{100 * ratio:g}%"


def _moved(alert: Alert, settings: Settings) -> dict[str, Any]:
    """The regression itself."""
    verb, expression = _for_the_worse(alert)
    tolerated = _percent(alert.drop)
    description = (
        f"{_selecting(settings)}{alert.metric} over {alert.window} is {_queried('value', _NUMBER)},"
        f" the baseline {_queried('baseline', _NUMBER)}: a change of"
        f" {_queried('change_ratio', _PERCENT)}, {_between(verb)}, where {tolerated}"
        f" is tolerated. Support: {_queried('support', _COUNT)}, usually"
        f" {_queried('expected_support', _COUNT)}."
    )
    words = f"{alert.metric} {verb} by more than {tolerated}", description
    return _rule(alert, "StreamerMetricRegression", expression, "warning", alert.for_, words)


def _silent(alert: Alert, settings: Settings) -> list[dict[str, Any]]:
    """Why nothing is said of the metric."""
    usual = _queried("expected_support", _COUNT)
    nothing = f"{_selecting(settings)}Nothing was counted over {alert.window}; {usual} is usual."
    explanation = (
        f"{_selecting(settings)}{alert.metric} over {alert.window} is"
        f" {_queried('value', _NUMBER, 'not defined')}, the baseline"
        f" {_queried('baseline', _NUMBER)}."
    )
    what = "fall" if alert.direction == "higher" else "rise"
    hidden = f"a {what} of {_percent(alert.drop)} can be neither shown nor ruled out"
    little = f"{explanation} Support: {_queried('support', _COUNT)}, usually {usual}: {hidden}."
    differ = (
        f"{explanation} Past days differ so much that the change is anywhere between"
        f" {_queried('change_lower_ratio', _PERCENT, 'no bound')} and"
        f" {_queried('change_upper_ratio', _PERCENT, 'no bound')}: {hidden}, and more traffic"
        " would not help."
    )
    statuses = (
        ("StreamerMetricNoTraffic", Status.NO_TRAFFIC, "warning", alert.for_,
         (f"{alert.metric} has no traffic", nothing)),
        ("StreamerMetricTooLittle", Status.TOO_LITTLE, "info", _TOO_LITTLE_FOR,
         (f"{alert.metric} has too little traffic to detect a change", little)),
        ("StreamerMetricDaysDiffer", Status.DAYS_DIFFER, "info", _TOO_LITTLE_FOR,
         (f"Past days of {alert.metric} differ too much to detect a change", differ)),
    )  # fmt: skip
    return [
        _rule(
            alert,
            name,
            _series(alert, "status", f'status="{status}"') + " == 1",
            severity,
            lasting,
            words,
        )
        for name, status, severity, lasting, words in statuses
    ]


def _traffic(alert: Alert, settings: Settings) -> list[dict[str, Any]]:
    """Far less traffic than usual, and far more."""
    rules = []
    for verb, expression in _beyond(
        alert, "traffic_", alert.traffic_drop, alert.traffic_rise
    ).items():
        tolerated = _percent(alert.traffic_drop if verb == "fell" else alert.traffic_rise)
        name = "StreamerMetricTrafficFell" if verb == "fell" else "StreamerMetricTrafficRose"
        description = (
            f"{_selecting(settings)}Support of {alert.metric} over {alert.window} is"
            f" {_queried('traffic', _COUNT)}, usually {_queried('traffic_usual', _COUNT)} at this"
            f" time: a change of {_queried('traffic_change_ratio', _PERCENT)},"
            f" {_between(verb, 'traffic_')}, where {tolerated} is tolerated."
        )
        words = f"Traffic of {alert.metric} {verb} by more than {tolerated}", description
        rules.append(_rule(alert, name, expression, "warning", alert.for_, words))
    return rules


def _drifted(alert: Alert, settings: Settings) -> list[dict[str, Any]]:
    """Slow drift away from the reference week."""
    if alert.reference == "none":
        return []
    verb, expression = _for_the_worse(alert, "reference_")
    tolerated = _percent(alert.drop)
    week = "its first week" if alert.reference == "first" else f"the week from {alert.reference}"
    description = (
        f"{_selecting(settings)}{alert.metric} over the past 7 whole days is"
        f" {_queried('past_week_value', _NUMBER)}, and was {_queried('reference_value', _NUMBER)}"
        f" in {week}: a change of {_queried('reference_change_ratio', _PERCENT)},"
        f" {_between(verb, 'reference_')}, where {tolerated} is tolerated."
    )
    words = f"{alert.metric} has drifted by more than {tolerated} from {week}", description
    return [_rule(alert, "StreamerMetricDrifted", expression, "warning", alert.for_, words)]
