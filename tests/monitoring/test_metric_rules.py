"""Rules of other settings than the packaged ones: generated, valid, and fired by promtool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from streamer.monitoring import metric_rules
from streamer.monitoring.files import rule_files
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.monitoring.test_rules import promtool
from tests.support.compose import load

RUNBOOKS = "https://docs/operations.html"
SETTINGS: dict[str, Any] = {
    "dimensions": [{"name": "country"}, {"name": "device"}],
    "alerts": [
        {"name": "slow", "metric": "dwell_mean_seconds", "direction": "lower", "drop": 0.125,
         "segments": ["device"], "for": "5m"},
        {"name": "order", "metric": "ndcg_ratio@10.engaged", "window": "24h", "drop": 0.05,
         "baseline": "before"},
    ],
}  # fmt: skip
ODD = 'a"b\\{{ $value }}'
"""A value of a dimension that is no code, in whatever language."""
SLOW = {"alert": "slow", "country": "all", "device": ODD, "system": "shop"}
Check = tuple[str, str, list[dict[str, Any]]]


def series(name: str, labels: dict[str, str], values: str, instance: str = "a") -> dict[str, str]:
    quoted = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in labels.items()}
    shown = ", ".join(f'{k}="{v}"' for k, v in {**quoted, "instance": instance}.items())
    return {"series": f"streamer_alert_{name}{{{shown}}}", "values": values}


def fires(
    labels: dict[str, str], metric: str, summary: str, description: str, segment: str = ""
) -> dict[str, Any]:
    """What a regression is to look like; ``segment``: of the link to the page."""
    return {
        "exp_labels": {**labels, "severity": "warning", "metric": metric},
        "exp_annotations": {
            "summary": summary,
            "description": description,
            "runbook_url": f"{RUNBOOKS}#streamermetricregression",
            "dashboard": f"https://numbers/?alert={labels['alert']}{segment}#explain",
        },
    }


def metric_file(settings: Settings) -> str:
    return rule_files(settings, page="https://numbers", runbooks=RUNBOOKS)["rules/metrics.yml"]


def run(folder: Path, given: list[dict[str, str]], *checks: Check) -> None:
    """Generate the rules, and let promtool run them over series."""
    (folder / "metrics.yml").write_text(metric_file(parse(SETTINGS)), encoding="utf-8")
    promtool("check", "rules", "--lint=all", "--lint-fatal", folder / "metrics.yml")
    expected = [{"eval_time": at, "alertname": name, "exp_alerts": exp} for at, name, exp in checks]
    test = {"interval": "1m", "input_series": given, "alert_rule_test": expected}
    document = {"rule_files": ["metrics.yml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yml").write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
    promtool("test", "rules", folder / "test.yml")


@pytest.mark.parametrize(
    ("upper", "bound"), [("0.31", "+31.0 %"), (None, "no bound")], ids=["bounded", "unbounded"]
)
def test_a_rise_where_lower_is_better(tmp_path: Path, upper: str | None, bound: str) -> None:
    known = {"value": "25.5", "baseline": "20", "change_ratio": "0.275", "support": "1234567",
             "expected_support": "1200000"}  # fmt: skip
    given = [series(name, SLOW, f"{value}x60") for name, value in known.items()]
    given.append(series("change_lower_ratio", SLOW, "0.1251x20 0.1x40"))
    if upper:
        given.append(series("change_upper_ratio", SLOW, f"{upper}x20 0.12x40"))
    (alert,) = [
        fires(
            SLOW,
            "dwell_mean_seconds",
            f"Mean dwell time of {ODD} up 28 % (20 s → 25.5 s), at least 12 %, since Thu 00:00 UTC",
            "dwell_mean_seconds over 1h is 25.5 s, the baseline 20 s: a change of +27.5 %, between"
            f" +12.5 % and {bound}, where 12.5 % is tolerated. Support: 1.235M, usually 1.2M.",
            f"&segment=device:{quote_plus(ODD)}",
        )
    ]
    name = "StreamerMetricRegression"
    recovers = [("25m", name, [alert]), ("27m", name, [])] if upper else []
    run(tmp_path, given, ("4m", name, []), ("5m", name, [alert]), ("20m", name, [alert]), *recovers)


@pytest.mark.parametrize("low", ["0.1249", "-0.4"])
def test_a_fall_or_an_open_interval_is_no_rise(tmp_path: Path, low: str) -> None:
    given = [
        series("change_lower_ratio", SLOW, f"{low}x60"),
        series("change_upper_ratio", SLOW, "-0.3x60" if low.startswith("-") else "0.5x60"),
    ]
    run(tmp_path, given, ("30m", "StreamerMetricRegression", []))


def test_of_two_exporters_both_have_to_say_that_it_rose(tmp_path: Path) -> None:
    given = [
        series("change_lower_ratio", SLOW, "0.2x30", "a"),
        series("change_lower_ratio", SLOW, "0.1x30", "b"),
    ]
    run(tmp_path, given, ("20m", "StreamerMetricRegression", []))


def test_an_alert_without_segments_is_about_everything(tmp_path: Path) -> None:
    labels = {"alert": "order", "country": "all", "device": "all", "system": "shop"}
    metric = "ndcg_ratio@10.engaged"
    about = (
        f"{metric} over 24h is unknown, the baseline unknown: a change of unknown, between unknown"
        " and -6.0 %, where 5 % is tolerated. Support: unknown, usually unknown."
    )
    summary = "NDCG@10, engaged down unknown (unknown → unknown), at least 6 %, since Thu 00:00 UTC"
    alert = fires(labels, metric, summary, about)
    given = [series("change_upper_ratio", labels, "-0.06x30")]
    name = "StreamerMetricRegression"
    run(tmp_path, given, ("9m", name, []), ("11m", name, [alert]))


def test_without_dimensions_and_without_alerts(tmp_path: Path) -> None:
    alone = parse({"dimensions": [], "alerts": [{"name": "ctr"}]})
    path = tmp_path / "metrics.yml"
    path.write_text(metric_file(alone), encoding="utf-8")
    promtool("check", "rules", path)
    (group,) = load(path)["groups"]
    assert group["rules"][0]["annotations"]["summary"].partition("}}")[2].startswith("CTR down ")
    assert metric_rules.document(parse({}), "", "") == {"groups": []}
    assert "groups: []" in metric_file(parse({}))


def test_routes_know_the_dimensions() -> None:
    text = rule_files(parse(SETTINGS), page="", runbooks="")["alertmanager.example.yml"]
    assert "equal: [system, alert, country, device]" in text
    none = rule_files(parse({"dimensions": []}), page="", runbooks="")["alertmanager.example.yml"]
    assert "equal: [system, alert]" in none
    assert "DIMENSIONS" not in text + none


def test_the_file_holds_what_the_document_does(tmp_path: Path) -> None:
    """Our own writer of YAML, read back by another reader."""
    settings = parse(SETTINGS | {"alerts": [{"name": "yes", "for": "90s"}]})
    path = tmp_path / "metrics.yml"
    path.write_text(metric_file(settings), encoding="utf-8")
    document = metric_rules.document(settings, "https://numbers", RUNBOOKS)
    assert json.loads(json.dumps(load(path))) == document
    assert {rule["for"] for rule in document["groups"][0]["rules"]} == {"90s", "2h"}
