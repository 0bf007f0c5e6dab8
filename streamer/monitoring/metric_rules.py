"""Alert rules for the metrics that the settings watch.

A rule fires when the interval of the change, not the point, is beyond what is tolerated.
"""

from __future__ import annotations

import re
from typing import Any

from streamer.encoding.segments import ALL
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.query.alert_gauges import PREFIX as GAUGE_PREFIX
from streamer.query.checks import CHECKS, AlertRule
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings

_FORMS = {
    "as the metric": "printf `%.4g`",
    "ratio": "humanizePercentage",
    "events or slates": "humanize",
    "windows": "humanize",
}
"""Unit of a gauge → how templates write it."""
_GAUGES = {gauge.name: gauge for check in CHECKS for gauge in check.gauges}
_NAMED = re.compile(r"\[([a-z_$]+)(?:\|([^\]]*))?\]")


def document(settings: Settings, page: str, runbooks: str) -> dict[str, Any]:
    """The rule file: a group for each alert. ``page``: where an exporter shows its page;
    ``runbooks``: the page with a section for each alert."""
    Catalogue(settings)  # names every metric that there is not
    return {"groups": [_group(alert, settings, page, runbooks) for alert in settings.alerts]}


def _group(alert: Alert, settings: Settings, page: str, runbooks: str) -> dict[str, Any]:
    found = (rule for check in CHECKS for rule in check.rules(alert))
    rules = [_written(rule, alert, settings) for rule in found]
    for rule in rules:
        rule["annotations"] |= {
            "runbook_url": f"{runbooks}#{rule['alert'].lower()}",
            "dashboard": f"{page}/?alert={alert.name}#explain",
        }
    return {"name": f"streamer-metrics-{alert.name}", "rules": rules}


def _written(rule: AlertRule, alert: Alert, settings: Settings) -> dict[str, Any]:
    """A rule as Prometheus reads it."""
    status = (f'status="{rule.status}"',) if rule.status else ()
    where = ", ".join((f'alert="{alert.name}"', *status))
    # One series a segment, whichever exporter shows it.
    series = f"{rule.fold} without (instance) ({PREFIX}{GAUGE_PREFIX}{rule.gauge}{{{where}}})"
    return {
        "alert": rule.name,
        "expr": f"{series} {rule.condition}",
        "for": rule.lasting or alert.for_,
        "keep_firing_for": alert.for_,  # an exporter that restarts is no recovery
        "labels": {"severity": rule.severity, "alert": alert.name, "metric": alert.metric},
        "annotations": {
            "summary": f"{rule.summary}: {_segment(alert)}",
            "description": _selecting(settings) + _NAMED.sub(_value, rule.description),
        },
    }


def _value(named: re.Match[str]) -> str:
    """A gauge of the same segment inside an annotation; absent ones are `unknown`."""
    name, missing = named[1], named[2] or "unknown"
    if name == "$":
        return f"{{{{ $value | {_FORMS['ratio']} }}}}"
    form = _FORMS[_GAUGES[name].unit]
    found = f"{{{{ with query (print `{PREFIX}{GAUGE_PREFIX}{name}` $segment) }}}}"
    return f"{found}{{{{ . | first | value | {form} }}}}{{{{ else }}}}{missing}{{{{ end }}}}"


def _segment(alert: Alert) -> str:
    """The segment in words: all that it is watched by, or nothing of it."""
    if not alert.segments:
        return "everything together"
    values = ", ".join(f"{name} {{{{ $labels.{name} }}}}" for name in alert.segments)
    whole = f"{{{{ if eq $labels.{alert.segments[0]} `{ALL}` }}}}everything together"
    return f"{whole}{{{{ else }}}}{values}{{{{ end }}}}"


def _selecting(settings: Settings) -> str:
    """A variable for ``_value``: the labels of the segment, as a selector."""
    names = ("job", "alert", *settings.dimension_names)
    pattern = ", ".join(f"{name}=%q" for name in names)
    values = " ".join(f"$labels.{name}" for name in names)
    return f"{{{{ $segment := printf `{{{pattern}}}` {values} }}}}"
