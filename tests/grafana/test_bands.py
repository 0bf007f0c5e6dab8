"""Bands of the page *ranking*: what they are of, and that Grafana can fill them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from grafana import bands
from grafana.declared import declared
from grafana.ranking import Ranking
from streamer.metrics.catalogue import PREFIX
from streamer.settings.load import parse
from tests.grafana.test_dashboards import PAGES, SLATE_METRICS, panels
from tests.grafana.test_rules import promtool

BANDED = [p for p in panels("ranking") if len(p["targets"]) == 3]
_SELECTOR = re.compile(r"streamer_(\w+)(\{[^}]*\})")
_ARMS = {"arm_1": "A", "arm_2": "B", "arm_3": "", "arm_4": ""}


def interpolated(text: str, page: str, **chosen: str) -> str:
    """As Grafana does it, with the values a page begins with, where others are not chosen."""
    values = {"__rate_interval": "1m", **chosen}
    for variable in PAGES[page]["templating"]["list"]:
        value = variable["current"]["value"]
        value = variable["allValue"] if value == ["$__all"] else value
        values.setdefault(variable["name"], value if isinstance(value, str) else "|".join(value))
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], text)


def bare(expr: str) -> str:
    """Without the numbers of arms."""
    while found := re.fullmatch(r'label_replace\((.+), "__arm", "\d", "variant", "[^"]+"\)', expr):
        expr = found[1]
    return expr


def test_every_mean_over_slates_has_a_band() -> None:
    names = [_SELECTOR.findall(panel["targets"][0]["expr"])[0][0] for panel in BANDED]
    assert sorted(names) == sorted(metric.name for metric in SLATE_METRICS)


@pytest.mark.parametrize("panel", BANDED, ids=lambda panel: panel["title"])
def test_a_band_is_the_mean_and_two_standard_errors_of_the_same_labels(panel: Any) -> None:
    mean, high, low = (bare(target["expr"]) for target in panel["targets"])
    ((name, labels),) = _SELECTOR.findall(mean)
    error = mean.replace(name, f"{name}_stderr")
    assert mean == f"max by (variant, surface) ({PREFIX}{name}{labels})"
    assert (high, low) == (f"{mean} + 2 * {error}", f"{mean} - 2 * {error}")
    assert declared()[f"{PREFIX}{name}_stderr"].labels == declared()[PREFIX + name].labels


@pytest.mark.parametrize("panel", BANDED, ids=lambda panel: panel["title"])
def test_bounds_have_names_by_which_grafana_fills_between_them(panel: Any) -> None:
    """The lower one by a name that is known beforehand: its legend has the arm's number only."""
    legends = [target["legendFormat"] for target in panel["targets"]]
    assert legends == ["{{__arm}} · {{variant}} · {{surface}}", "{{__arm}} high", "{{__arm}} low"]
    overrides = panel["fieldConfig"]["overrides"]
    filled = {
        override["matcher"]["options"]: value["value"]
        for override in overrides
        for value in override["properties"]
        if value["id"] == "custom.fillBelowTo"
    }
    assert filled == {f"{number} high": f"{number} low" for number in range(bands.ARMS + 1)}
    for name, same in (("1 · A · all", ["color"]), ("1 low", ["lineWidth", "hideFrom", "color"])):
        found = [
            value["id"].removeprefix("custom.")
            for override in overrides
            if override["matcher"]["id"] == "byRegexp"
            and re.search(override["matcher"]["options"].strip("/"), name)
            for value in override["properties"]
        ]
        assert found == same
    assert "axisSoftMin" not in panel["fieldConfig"]["defaults"]["custom"]


def test_arms_are_the_chosen_values_one_after_the_other() -> None:
    arms = [v for v in PAGES["ranking"]["templating"]["list"] if v["name"].startswith("arm_")]
    assert [v["hide"] for v in arms] == [2] * bands.ARMS
    for number, variable in enumerate(arms):
        before = "|".join(["all", *(v["name"] for v in arms[:number])]).replace("arm", "$arm")
        series = 'streamer_window_slates{job="$job", variant=~"$variant", variant!~'
        assert variable["query"] == f'label_values({series}"{before}"}}, variant)'
    named = parse({"dimensions": [{"name": "variant", "values": ["old", "new"]}]})
    page = Ranking(declared(), named).build().build()
    begin = {v.name: v.current.value for v in page.templating.list_val or [] if v.current}
    assert [begin[v["name"]] for v in arms] == ["old", "new", "", ""]


def test_without_dimensions_there_is_one_band() -> None:
    page = Ranking(declared(), parse({"dimensions": []})).build().build()
    names = [variable.name for variable in page.templating.list_val or []]
    assert names == ["datasource", "job", "window", "k", "over", "maturity"]
    panel: Any = next(p for p in page.panels or [] if len(getattr(p, "targets", None) or ()) == 3)
    assert [t.legend_format for t in panel.targets] == ["0 · NDCG", "0 high", "0 low"]
    assert "label_replace" not in panel.targets[0].expr


# As Prometheus sees it ---------------------------------------------------------------------------


def test_prometheus_numbers_arms_and_folds_exporters(tmp_path: Path) -> None:
    """Two exporters, two arms and the rollup; A has one slate, so no error and no band."""
    panel = next(p for p in BANDED if p["title"] == "NDCG at $k")
    exprs = [interpolated(t["expr"], "ranking", **_ARMS) for t in panel["targets"]]
    shared = 'window="5m", surface="all", over="engaged", k="10", maturity="provisional"'
    values = {"ndcg_ratio": {"A": 0.5, "B": 0.75, "all": 0.625}}
    values["ndcg_ratio_stderr"] = {"B": 0.125, "all": 0.0625}
    series = [
        {
            "series": f'{PREFIX}{name}{{job="streamer", instance="{i}", variant="{arm}", {more}}}',
            "values": str(value if more == shared else 0.99),
        }
        for name, by_arm in values.items()
        for arm, value in by_arm.items()
        for i in "12"
        for more in (shared, f'{shared}, convention="jurity"')
    ]
    numbers = {"all": "0", "A": "1", "B": "2"}
    expected = (values["ndcg_ratio"], {"B": 1.0, "all": 0.75}, {"B": 0.5, "all": 0.5})
    checks = [
        {
            "expr": expr,
            "eval_time": "0m",
            "exp_samples": [
                {
                    "labels": f'{{__arm="{numbers[arm]}", variant="{arm}", surface="all"}}',
                    "value": value,
                }
                for arm, value in by_arm.items()
            ],
        }
        for expr, by_arm in zip(exprs, expected, strict=True)
    ]
    case = {"interval": "1m", "input_series": series, "promql_expr_test": checks}
    path = tmp_path / "bands.yml"  # JSON is YAML
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)


@pytest.mark.parametrize("page", PAGES)
def test_every_query_of_panels_and_variables_is_promql(page: str, tmp_path: Path) -> None:
    texts = [target["expr"] for panel in panels(page) for target in panel["targets"]]
    for variable in PAGES[page]["templating"]["list"]:
        if variable["type"] == "query":
            texts.append(variable["query"].removeprefix("label_values(").rpartition(", ")[0])
    found = [interpolated(text, page) for text in texts]
    rules = [{"record": f"query:{number}", "expr": expr} for number, expr in enumerate(found)]
    path = tmp_path / f"{page}.yml"
    path.write_text(json.dumps({"groups": [{"name": page, "rules": rules}]}))
    assert f"{len(found)} rules found" in promtool("check", "rules", "--lint=none", path)
