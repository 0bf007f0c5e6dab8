"""What every alert says of its segments, for all faces. Its JSON is that of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from streamer.metrics.compared_metrics import ComparedRatio
from streamer.query.checks import CHECKS, AlertVerdict
from streamer.stats.alerting.baseline import MetricChange
from streamer.stats.alerting.traffic import Traffic


class AlertStatus(Struct, frozen=True):
    """A segment of an alert. ``title`` and ``form``: what its metric is called, and how values are
    written; ``definition``: of one of ``[[ratios]]``, in words; ``checks``: what each check says of
    it, None where it is switched off."""

    alert: str
    metric: str
    title: str
    definition: str
    form: str
    window: str
    drop: float
    direction: str
    segment: Mapping[str, str]
    checks: Mapping[str, MetricChange | Traffic | None]


def alert_status(
    verdict: AlertVerdict, ratios: Mapping[str, ComparedRatio], names: Sequence[str]
) -> AlertStatus:
    """That of a segment. ``names``: of the dimensions."""
    alert = verdict.alert
    ratio = ratios[alert.metric]
    return AlertStatus(
        alert=alert.name,
        metric=alert.metric,
        title=ratio.title,
        definition=ratio.definition,
        form=ratio.form,
        window=alert.window,
        drop=alert.drop,
        direction=alert.direction,
        segment=dict(zip(names, verdict.segment, strict=True)),
        checks={check.name: verdict.checks.get(check.name) for check in CHECKS},
    )
