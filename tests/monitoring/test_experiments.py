"""What the dashboard of experiments says where exporters differ, and when a verdict changes."""

from __future__ import annotations

import json
from pathlib import Path

from streamer.metrics.catalogue import PREFIX
from streamer.stats.experiments.recommendation import Action
from tests.monitoring.test_dashboards import PAGES, filled
from tests.monitoring.test_rules import promtool
from tests.support.opened import filled_in, panels_of


def test_of_exporters_that_differ_one_recommendation_is_shown(tmp_path: Path) -> None:
    panel = panels_of(PAGES["experiments"])[0]
    (target,) = panel["targets"]
    series = f'{PREFIX}experiment_recommendation{{job="streamer", experiment="ranker", '
    given = [
        {"series": f'{series}instance="1", recommendation="ship", arm="B"}}', "values": "1"},
        {"series": f'{series}instance="2", recommendation="keep running", arm=""}}', "values": "1"},
    ]
    checks = [
        {
            "expr": f"count by (experiment) ({filled_in(target['expr'], {'job': 'streamer'})})",
            "eval_time": "0m",
            "exp_samples": [{"labels": '{experiment="ranker"}', "value": 1}],
        }
    ]
    case = {"interval": "1m", "input_series": given, "promql_expr_test": checks}
    path = tmp_path / "advice.yml"
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)
    colours = panel["fieldConfig"]["overrides"][0]["properties"][0]["value"][0]["options"]
    assert list(colours) == list(Action)


def test_a_verdict_is_marked_when_it_changes(tmp_path: Path) -> None:
    (mark,) = PAGES["experiments"]["annotations"]["list"]
    labels = 'experiment="ranker", metric="ctr_ratio", arm="B", job="streamer"'
    given = [
        {"series": f'{PREFIX}experiment_verdict{{{labels}, verdict="{verdict}"}}', "values": values}
        for verdict, values in (("keep running", "1x4 stale"), ("better", "_x5 1x10"))
    ]
    expr = filled_in(mark["expr"], filled(PAGES["experiments"]))
    found = {"labels": '{arm="B", metric="ctr_ratio", verdict="better"}', "value": 1}
    checks = [
        {"expr": expr, "eval_time": at, "exp_samples": some}
        for at, some in (("4m", []), ("5m", [found]), ("6m", []))
    ]
    case = {"interval": "1m", "input_series": given, "promql_expr_test": checks}
    path = tmp_path / "verdicts.yml"
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)
