"""What the dashboard of experiments says where exporters differ, and when a verdict changes."""

from __future__ import annotations

import json
from pathlib import Path

from streamer.metrics.catalogue import PREFIX
from streamer.stats.experiments.recommendation import Action
from tests.monitoring.test_dashboards import PAGES, filled, titled
from tests.monitoring.test_rules import promtool
from tests.support.drawing import properties
from tests.support.opened import filled_in, panels_of
from tests.support.past_traffic import everything


def test_of_exporters_that_differ_one_recommendation_is_shown(tmp_path: Path) -> None:
    panel = panels_of(PAGES["experiments"])[0]
    target = panel["targets"][0]
    series = f'{PREFIX}experiment_recommendation{{system="streamer", experiment="ranker", '
    given = [
        {"series": f'{series}instance="1", recommendation="ship", arm="B"}}', "values": "1"},
        {"series": f'{series}instance="2", recommendation="keep running", arm=""}}', "values": "1"},
    ]
    checks = [
        {
            "expr": f"count by (experiment) ({filled_in(target['expr'], {'system': 'streamer'})})",
            "eval_time": "0m",
            "exp_samples": [{"labels": '{experiment="ranker"}', "value": 1}],
        },
        {
            "expr": filled_in(target["expr"], {"system": "streamer"}),
            "eval_time": "0m",
            "exp_samples": [{"labels": '{experiment="ranker", arm="B"}', "value": 5}],
        },
    ]
    case = {"interval": "1m", "input_series": given, "promql_expr_test": checks}
    path = tmp_path / "advice.yml"
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)
    names = panel["fieldConfig"]["overrides"][0]["properties"][0]["value"][0]["options"]
    assert {name["text"] for name in names.values()} == set(Action)
    assert names["5"]["text"] == Action.SHIP


def test_the_lift_is_of_the_arm_that_is_recommended(tmp_path: Path) -> None:
    """Of the arm to ship, though another one has a larger lift; without one, the largest."""
    lift = panels_of(PAGES["experiments"])[0]["targets"][1]
    metric = everything().experiments[0].metrics[0].name
    name = everything().experiments[0].name
    of = f'system="streamer", experiment="{name}"'
    given = [
        {
            "series": f'{PREFIX}experiment_lift_ratio{{{of}, metric="{metric}", arm="{arm}",'
            ' interval="anytime"}',
            "values": f"{value}x9",
        }
        for arm, value in (("B", 0.1), ("C", 0.2))
    ]
    advice = f"{PREFIX}experiment_recommendation{{{of}, "
    given += [
        {"series": f'{advice}recommendation="keep running", arm=""}}', "values": "1x3 stale"},
        {"series": f'{advice}recommendation="ship", arm="B"}}', "values": "_x4 1x5"},
    ]
    checks = [
        {
            "expr": filled_in(lift["expr"], {"system": "streamer"}),
            "eval_time": at,
            "exp_samples": [{"labels": f'{{experiment="{name}"}}', "value": value}],
        }
        for at, value in (("1m", 0.2), ("6m", 0.1))
    ]
    case = {"interval": "1m", "input_series": given, "promql_expr_test": checks}
    path = tmp_path / "lift.yml"
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)


def test_the_split_is_said_in_words() -> None:
    panel = titled(PAGES["experiments"], "Split of users: is it as planned?")
    (low, high) = properties(panel, "as planned")["mappings"]
    assert low["options"]["result"]["text"] == "No: broken split"
    assert high["options"]["result"]["text"] == "Yes"
    assert low["options"]["to"] == high["options"]["from"]


def test_a_verdict_is_marked_when_it_changes(tmp_path: Path) -> None:
    mark, _ = PAGES["experiments"]["annotations"]["list"]
    labels = 'experiment="ranker", metric="ctr_ratio", arm="B", system="streamer"'
    given = [
        {"series": f'{PREFIX}experiment_verdict{{{labels}, verdict="{verdict}"}}', "values": values}
        for verdict, values in (("too early", "1x4 stale"), ("better", "_x5 1x10"))
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


def test_what_was_acted_on_is_marked_once(tmp_path: Path) -> None:
    _, mark = PAGES["experiments"]["annotations"]["list"]
    name = everything().experiments[0].name
    of = f'{PREFIX}acted_total{{experiment="{name}", system="streamer", occasion='
    given = [
        {"series": f'{of}"harm"}}', "values": "_x5 1x10"},
        {"series": f'{of}"split"}}', "values": "1x8 2x10"},
    ]
    expr = filled_in(mark["expr"], filled(PAGES["experiments"]))
    checks = [
        {
            "expr": expr,
            "eval_time": at,
            "exp_samples": [{"labels": f'{{occasion="{what}"}}', "value": n} for what, n in some],
        }
        for at, some in (("4m", []), ("5m", [("harm", 1)]), ("6m", []), ("9m", [("split", 2)]))
    ]
    case = {"interval": "1m", "input_series": given, "promql_expr_test": checks}
    path = tmp_path / "marks.yml"
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)
