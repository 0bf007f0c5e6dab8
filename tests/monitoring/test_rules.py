"""Prometheus' settings and rules: valid, and every alert both fires and stays silent."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamer.cli.arguments import parser
from streamer.server.runbooks import PATH
from tests.support.all_cases import hold_for_all
from tests.support.compose import ROOT, load
from tests.support.lanes import long
from tests.support.required import program

FOLDER = ROOT / "grafana" / "prometheus"
RULES = sorted((FOLDER / "rules").glob("*.yml"))
TESTS = sorted((Path(__file__).parent / "rules").glob("*.yml"))
GUIDE = ROOT / "docs" / "operations.md"


@functools.cache
def alerts() -> dict[str, Any]:
    groups = [group for path in RULES for group in load(path)["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def promtool(*words: str | Path) -> str:
    command = [program("Prometheus", "promtool"), *map(str, words)]
    env = os.environ | {"GOGC": "800"}  # it collects garbage seldom, in a third less time
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_settings_are_valid() -> None:
    assert f"{len(RULES)} rule files found" in promtool(
        "check", "config", FOLDER / "prometheus.yml"
    )


def test_the_rules_are_valid() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", *RULES)


@long
def test_alerts_fire_when_they_should() -> None:
    promtool("test", "rules", *TESTS)


def test_labels_of_an_operator_change_no_alert(tmp_path: Path) -> None:
    """The Prometheus Operator tells the pods of one service apart by more than `instance`."""
    rules = (tmp_path / "grafana" / "prometheus" / "rules").absolute()
    rules.mkdir(parents=True)
    for path in RULES:
        (rules / path.name).write_text(path.read_text())
    tests = tmp_path / "tests" / "monitoring" / "rules"
    tests.mkdir(parents=True)
    added = 'namespace="live", service="streamer", endpoint="http", container="exporter"'
    changed = 0
    for path in TESTS:
        text, count = re.subn(
            r'(instance="(\w):8000")', rf'\1, pod="p-\2", {added}', path.read_text()
        )
        (tests / path.name).write_text(text)
        changed += count
    assert changed > 150
    promtool("test", "rules", *sorted(tests.glob("*.yml")))


@functools.cache
def cases() -> list[tuple[str, str, bool]]:
    """(alert, name of the test, whether the alert is to fire in it)."""
    return [
        (check["alertname"], test["name"], bool(check["exp_alerts"]))
        for path in TESTS
        for test in load(path)["tests"]
        for check in test["alert_rule_test"]
    ]


def fires_and_is_silent(alert: str) -> None:
    own = [(name, fires) for of, name, fires in cases() if of == alert]
    firing = {name for name, fires in own if fires}
    assert firing
    assert {name for name, _ in own} - firing, "silent only before and after it fires"


def test_every_alert_fires_in_one_test_and_is_silent_in_another() -> None:
    hold_for_all(alerts(), fires_and_is_silent, at_least=20)


def says_what_to_do(alert: str) -> None:
    rule = alerts()[alert]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert {"summary", "description", "runbook_url"} <= set(rule["annotations"])
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page == f"{parser().parse_args(['rules', 'x']).page}{PATH}"
    assert anchor == alert.lower()
    text = GUIDE.read_text(encoding="utf-8")
    section = re.search(rf"^### {alert}\n(.+?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"docs/operations.md has no section {alert}"
    assert len(section[1].split()) >= 25, "say what it means and what to do"
    severity = rule["labels"]["severity"]
    assert severity in section[1], f"the section should say that it is {severity}"


def test_every_alert_says_what_to_do() -> None:
    hold_for_all(alerts(), says_what_to_do, at_least=20)


def test_no_section_is_of_an_alert_that_is_gone() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert set(re.findall(r"^### (Streamer\w+)$", text, re.MULTILINE)) == set(alerts())


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_rules_fold_what_exporters_share(path: Path) -> None:
    """Where two exporters show the same state, nothing is added up twice."""
    series = 0
    for group in load(path)["groups"]:
        for rule in group["rules"]:
            for name in re.findall(r"\bstreamer_\w+", rule["expr"]):
                before = rule["expr"].split(name)[0]
                folded = r"(?:max|min|count) by \(system[\w, ]*\) \((?:\w+\()?$"
                assert re.search(folded, before), f"{rule.get('alert', rule.get('record'))}: {name}"
                series += 1
    assert series


def test_nothing_mutes_what_is_said_of_an_experiment() -> None:
    inhibited = load(FOLDER / "alertmanager.example.yml")["inhibit_rules"]
    for rule in inhibited:
        for matcher in rule["target_matchers"]:
            _, operator, value = re.split(r"\s*(=~|=)\s*", matcher, maxsplit=1)
            pattern = value.strip('"') if operator == "=~" else re.escape(value.strip('"'))
            said = [name for name in alerts() if name.startswith("StreamerExperiment")]
            assert said
            assert not [name for name in said if re.fullmatch(pattern, name)]


def test_one_exporter_that_is_away_mutes_nothing_of_the_others() -> None:
    inhibited = load(FOLDER / "alertmanager.example.yml")["inhibit_rules"]
    (muting,) = [rule for rule in inhibited if "StreamerMetric.+" in rule["target_matchers"][0]]
    names = re.findall(r"Streamer\w+", muting["source_matchers"][0])
    assert "StreamerAllExportersDown" in names
    assert not {"StreamerExporterDown", "StreamerExportersDisagree"} & set(names)
    for name in set(names) - {"StreamerNotScraped"}:  # which there is no exporter to disagree on
        test, alert = "(max|min) by \\(system", alerts()[name]
        (fold,) = re.findall(test, alert["expr"])
        sign = ">" if ">" in alert["expr"] else "=="
        assert (fold, sign) in (("max", "=="), ("min", ">")), "all of them have to say so"
