"""Routing of alerts: valid, and tried with a real Prometheus and a real Alertmanager."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.monitoring.alert_delivery import (
    FOLDER,
    KEEP_SECONDS,
    Alertmanager,
    Outside,
    Prometheus,
    until,
)
from tests.support.lanes import long
from tests.support.required import program

pytestmark = [pytest.mark.integration, long]

REGRESSION, READY = "StreamerMetricRegression", "streamer_ready"
EVERYTHING, HOME = ("all", "all"), ("A", "home")


def amtool(*words: str) -> str:
    command = [program("Alertmanager", "amtool"), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_is_valid() -> None:
    assert "5 inhibit rules" in amtool("check-config", str(FOLDER / "alertmanager.example.yml"))


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ("severity=critical alertname=StreamerNotReady", "pager"),
        ("severity=warning alertname=StreamerMetricRegression alert=ctr", "chat"),
        ("severity=info alertname=StreamerMetricTooLittle alert=ctr", "nobody"),
        ("alertname=SomethingOfYours", "chat"),
    ],
)
def test_who_is_notified(labels: str, receiver: str) -> None:
    config = f"--config.file={FOLDER / 'alertmanager.example.yml'}"
    assert amtool("config", "routes", "test", config, *labels.split()).strip() == receiver


# The whole way ----------------------------------------------------------------------------------


class Delivery(NamedTuple):
    outside: Outside
    alertmanager: Alertmanager


@pytest.fixture(scope="module")
def delivery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivery]:
    """All of it, with nothing to send."""
    folder = tmp_path_factory.mktemp("delivery")
    with Outside().listening() as outside:
        outside.series = shown()
        with (
            Alertmanager(folder / "alertmanager", outside.address) as alertmanager,
            Prometheus(folder / "prometheus", outside.address, alertmanager.address),
        ):
            yield Delivery(outside, alertmanager)


def labels(segment: tuple[str, str], **more: str) -> str:
    named = {"alert": "ctr", "variant": segment[0], "surface": segment[1], **more}
    return "{" + ", ".join(f'{name}="{value}"' for name, value in named.items()) + "}"


def shown(upper: float = -0.01, ready: int = 1) -> dict[str, float]:
    """What the exporter shows: in two segments the change, whose upper end is given; in a third
    one too little data."""
    series: dict[str, float] = {READY: ready, "streamer_workers": 2}
    for segment in (EVERYTHING, HOME):
        facts = {"value": 0.0275, "baseline": 0.0475, "change_ratio": -0.4211, "support": 15_200,
                 "expected_support": 16_000, "change_lower_ratio": -0.4502,
                 "change_upper_ratio": upper}  # fmt: skip
        series |= {f"streamer_alert_{name}{labels(segment)}": facts[name] for name in facts}
    little = labels(("B", "search"), status="too little data")
    return {**series, f"streamer_alert_status{little}": 1}


def fell(delivery: Delivery) -> Any:
    """The first message of a regression of both segments."""
    return until(
        lambda: [
            m
            for m in delivery.outside.messages("/chat", REGRESSION, "firing")
            if len(m["alerts"]) > 1
        ],
        "a message of the regression",
    )[0]


def recovered(delivery: Delivery) -> Any:
    """The message that it is over."""
    delivery.outside.series = shown()
    return until(lambda: delivery.outside.messages("/chat", REGRESSION, "resolved"), "its end")[0]


@pytest.fixture
def quiet(delivery: Delivery) -> Delivery:
    """The same with nothing that fires but the note."""
    delivery.outside.series = shown()
    until(lambda: delivery.alertmanager.alerts("StreamerMetricTooLittle"), "the note")
    until(lambda: not delivery.alertmanager.alerts(REGRESSION), "no regression")
    for messages in delivery.outside.received.values():
        messages.clear()
    return delivery


def test_a_regression_and_its_end_are_sent_with_all_that_is_known(quiet: Delivery) -> None:
    quiet.outside.series = shown(upper=-0.3511)
    message = fell(quiet)
    assert (message["receiver"], message["status"]) == ("chat", "firing")
    assert message["groupLabels"] == {"alertname": REGRESSION, "alert": "ctr"}
    alerts = {(a["labels"]["variant"], a["labels"]["surface"]): a for a in message["alerts"]}
    assert set(alerts) == {EVERYTHING, HOME}
    assert alerts[HOME]["labels"] == {
        "alertname": REGRESSION,
        "alert": "ctr",
        "system": "shop",
        "metric": "ctr_ratio",
        "severity": "warning",
        "variant": "A",
        "surface": "home",
    }
    annotations = alerts[HOME]["annotations"]
    summary, _, since = annotations.pop("summary").partition(", since ")
    assert summary == "CTR of variant A, surface home down 42 % (4.75 % → 2.75 %), at least 35 %"
    assert re.fullmatch(r"now|\w{3} \d\d:\d\d UTC", since)
    assert annotations == {
        "description": "ctr_ratio over 1h is 2.75 %, the baseline 4.75 %: a change of -42.1 %,"
        " between -45.0 % and -35.1 %, where 20 % is tolerated. Support: 15.2k, usually 16k.",
        "runbook_url": "http://localhost:8000/runbooks#streamermetricregression",
        "dashboard": "http://localhost:8000/?alert=ctr&segment=variant:A,surface:home#explain",
    }
    summary = alerts[EVERYTHING]["annotations"]["summary"]
    assert summary.startswith("CTR down 42 %")
    over = recovered(quiet)
    assert over["groupLabels"] == message["groupLabels"]
    assert {alert["status"] for alert in over["alerts"]} == {"resolved"}
    assert quiet.outside.received["/pager"] == []


def test_a_note_is_known_and_sent_to_nobody(quiet: Delivery) -> None:
    (note,) = quiet.alertmanager.alerts("StreamerMetricTooLittle")
    assert note["receivers"] == [{"name": "nobody"}]
    assert note["status"]["state"] == "active"
    assert quiet.outside.received == {"/pager": [], "/chat": []}


def test_numbers_that_stand_still_or_are_missing_send_nothing(quiet: Delivery) -> None:
    outside, alertmanager = quiet
    outside.series = shown(ready=0)
    paged = until(lambda: outside.messages("/pager", "StreamerNotReady", "firing"), "the page")[0]
    assert paged["commonLabels"]["severity"] == "critical"
    outside.series = shown(upper=-0.3511, ready=0)
    until(lambda: len(alertmanager.alerts(REGRESSION)) == 2, "two regressions")
    (source,) = alertmanager.alerts("StreamerNotReady")
    for alert in alertmanager.alerts(REGRESSION):
        assert alert["status"]["state"] == "suppressed"
        assert alert["status"]["inhibitedBy"] == [source["fingerprint"]]
    assert outside.received["/chat"] == []
    outside.series = shown(upper=-0.3511)
    assert {a["status"] for a in fell(quiet)["alerts"]} == {"firing"}
    outside.series = None
    until(lambda: outside.messages("/pager", "StreamerAllExportersDown", "firing"), "the page")
    until(
        lambda: not alertmanager.alerts(REGRESSION),
        f"Prometheus has given it up, {KEEP_SECONDS} s after the last value",
    )
    assert outside.messages("/chat", REGRESSION, "resolved") == []
