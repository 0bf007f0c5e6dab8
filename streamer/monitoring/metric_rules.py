"""Alert rules for the metrics that the settings watch.

A rule fires when the interval of the change, not the point, is beyond what is tolerated.
"""

from __future__ import annotations

import re
from typing import Any

from streamer.encoding.segments import ALL
from streamer.metrics.catalogue import PREFIX, Catalogue
from streamer.metrics.compared_metrics import ComparedRatio
from streamer.query.alert_gauges import PREFIX as GAUGE_PREFIX
from streamer.query.checks import CHECKS, AlertRule
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings

_SHORT = {"ctr_ratio": "CTR", "cvr_ratio": "CVR"}
"""Metrics whose abbreviation everybody knows; the others have their title."""
_GAUGES = {gauge.name: gauge for check in CHECKS for gauge in check.gauges}
_OF_METRIC = {*(gauge.name for gauge in CHECKS[0].gauges), CHECKS[0].status_gauge}
_PLACEHOLDER = re.compile(r"\[((?:least )?size of )?([a-z_]+)(?:\|([^\]]*))?\]")
_SINCE = "Mon 15:04 MST"
"""The layout of Go's ``time.Format``."""


def document(settings: Settings, page: str, runbooks: str) -> dict[str, Any]:
    """The rule file: a group for each alert. ``page``: where an exporter shows its page;
    ``runbooks``: the page with a section for each alert."""
    measures = Catalogue(settings).alert_measures  # names every metric that there is not
    groups = [
        _AlertGroup(alert, settings, measures.ratios[alert.metric]).document(page, runbooks)
        for alert in settings.alerts
    ]
    return {"groups": groups}


class _AlertGroup:
    """The rules of one alert."""

    def __init__(self, alert: Alert, settings: Settings, metric: ComparedRatio) -> None:
        self._alert, self._metric = alert, metric
        self._dimensions = settings.dimension_names

    def document(self, page: str, runbooks: str) -> dict[str, Any]:
        """The group as Prometheus reads it."""
        alert = self._alert
        rules = [self._rule(rule) for check in CHECKS for rule in check.rules(alert)]
        for rule in rules:
            rule["annotations"] |= {
                "runbook_url": f"{runbooks}#{rule['alert'].lower()}",
                "dashboard": f"{page}/?alert={alert.name}{self._address()}#explain",
            }
        return {"name": f"streamer-metrics-{alert.name}", "rules": rules}

    def _rule(self, rule: AlertRule) -> dict[str, Any]:
        alert = self._alert
        condition = f"{self._series(rule.fold, rule.gauge, rule.status)} {rule.condition}"
        return {
            "alert": rule.name,
            "expr": condition + self._or_not_over(rule) + self._unless(rule),
            "for": rule.lasting or alert.for_,
            "keep_firing_for": alert.for_,  # an exporter that restarts is no recovery
            "labels": {"severity": rule.severity, "alert": alert.name, "metric": alert.metric},
            "annotations": {
                "summary": self._text(rule, rule.summary),
                "description": self._text(rule, rule.description),
            },
        }

    def _or_not_over(self, rule: AlertRule) -> str:
        """It has fired, and the interval is not back within the tolerance: one incident is one
        alert. The value is 0, of a gauge that is there while nothing comes, too."""
        if rule.over is None:
            return ""
        fold, gauge, condition = rule.over
        on = self._on
        is_over = f"{self._series(fold, gauge)} {condition}"
        watched = f"0 * {self._series('max', 'support')}"
        return f" or ({watched} and {on} {self._fired(rule.name)} unless {on} ({is_over}))"

    def _unless(self, rule: AlertRule) -> str:
        return f" unless {self._on} {self._fired(rule.unless)}" if rule.unless else ""

    def _fired(self, name: str) -> str:
        return f'ALERTS{{alertname="{name}", alertstate="firing", alert="{self._alert.name}"}}'

    def _series(self, fold: str, gauge: str, status: str | None = None) -> str:
        """One series a segment, whichever exporter shows it."""
        names = (*self._names, "status") if status else self._names
        where = f'alert="{self._alert.name}"' + (f', status="{status}"' if status else "")
        return f"{fold} by ({', '.join(names)}) ({PREFIX}{GAUGE_PREFIX}{gauge}{{{where}}})"

    @property
    def _on(self) -> str:
        return f"on ({', '.join(self._names)})"

    @property
    def _names(self) -> tuple[str, ...]:
        """Labels that tell segments apart."""
        return ("system", "alert", *self._dimensions)

    def _text(self, rule: AlertRule, text: str) -> str:
        """The template of an annotation; ``$segment`` is the selector of the segment's gauges."""
        pattern = ", ".join(f"{name}=%q" for name in self._names)
        values = " ".join(f"$labels.{name}" for name in self._names)
        selector = f"{{{{ $segment := printf `{pattern}` {values} }}}}"
        filled = _PLACEHOLDER.sub(lambda found: self._filled(rule, found), text)
        return (selector if "$segment" in filled else "") + filled

    def _filled(self, rule: AlertRule, placeholder: re.Match[str]) -> str:
        size, name, missing = placeholder.groups()
        if name == "metric":
            return _SHORT.get(self._metric.name, self._metric.title)
        if name == "segment":
            return self._segment()
        if name == "since":
            pending = f'print `min(ALERTS_FOR_STATE{{alertname="{rule.name}", ` $segment `}})`'
            time = f"{{{{ (. | first | value | toTime).Format `{_SINCE}` }}}}"
            began = f"print `min({PREFIX}{GAUGE_PREFIX}since_seconds{{` $segment `}})`"
            pending_else_now = (
                f"{{{{ with query ({pending}) }}}}{time}{{{{ else }}}}now{{{{ end }}}}"
            )
            if rule.gauge not in _OF_METRIC:
                return pending_else_now
            return (
                f"{{{{ with query ({began}) }}}}{time}{{{{ else }}}}{pending_else_now}{{{{ end }}}}"
            )
        fold = rule.fold if name == rule.gauge else "max"
        series = f"{fold}({PREFIX}{GAUGE_PREFIX}{name}{{` $segment `}})"
        if size:
            rounded = "floor" if size.startswith("least") else "round"
            series, form = f"{rounded}(100 * abs({series}))", "printf `%.0f %%`"
        else:
            scale, form = self._form(_GAUGES[name].unit)
            series = f"{scale}{series}"
        found = f"{{{{ with query (print `{series}`) }}}}{{{{ . | first | value | {form} }}}}"
        return f"{found}{{{{ else }}}}{missing or 'unknown'}{{{{ end }}}}"

    def _form(self, unit: str) -> tuple[str, str]:
        """What a gauge is multiplied by, and the function of templates that writes it."""
        if unit == "ratio":
            return "100 * ", "printf `%+.1f %%`"
        if unit != "as the metric":
            return "", "humanize"
        if self._metric.form == "percent":
            return "100 * ", "printf `%.3g %%`"
        return "", "printf `%.4g s`" if self._metric.form == "seconds" else "printf `%.4g`"

    def _segment(self) -> str:
        """`` of app``: the segment in words; nothing for everything together."""
        names = self._alert.segments
        if not names:
            return ""
        several = len(names) > 1
        values = ", ".join(f"{f'{name} ' * several}{{{{ $labels.{name} }}}}" for name in names)
        return f"{{{{ if ne $labels.{names[0]} `{ALL}` }}}} of {values}{{{{ end }}}}"

    def _address(self) -> str:
        """The segment as a parameter of the page's address."""
        names = self._alert.segments
        if not names:
            return ""
        values = ",".join(f"{name}:{{{{ $labels.{name} | urlquery }}}}" for name in names)
        return f"{{{{ if ne $labels.{names[0]} `{ALL}` }}}}&segment={values}{{{{ end }}}}"
