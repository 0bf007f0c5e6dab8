"""The dashboards: few, valid by Grafana's own types, for the settings, and their queries PromQL."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from msgspec.structs import replace

from streamer.metrics.catalogue import FAMILIES, PREFIX, Catalogue
from streamer.monitoring.files import boards
from streamer.monitoring.panels import SOURCE
from streamer.monitoring.series import declared
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.monitoring.test_rules import promtool
from tests.support.drawing import properties
from tests.support.opened import (
    filled_in,
    opened,
    panels_of,
    series_and_label,
    targets,
    unfolded,
)
from tests.support.past_traffic import everything

PAGE = "https://numbers"
SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "grafana-dashboard.schema.json").read_text()
)
PAGES = boards(everything(), PAGE)
"""With everything on."""
MOST_PANELS = 17
_OF_PROMETHEUS = {"expr", "step", "titleFormat", "textFormat"}
"""Fields of annotations that Grafana's types leave to the data source."""
_CTR = "CTR by $by: are clicks falling?"


def errors(document: Any, definition: str) -> list[str]:
    validator = Draft7Validator({**SCHEMA, "$ref": f"#/definitions/{definition}"})
    return [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)]


def titled(page: Any, title: str) -> Any:
    (panel,) = [p for p in panels_of(page) if p["title"] == title]
    return panel


def expressions(page: Any) -> str:
    return "\n".join(target.expr for target in targets(page))


def filled(page: Any, **chosen: str) -> dict[str, str]:
    return opened(page, lambda label, series: [], **chosen)


# Shape --------------------------------------------------------------------------------------------


def test_there_are_four_with_few_panels_each() -> None:
    assert list(PAGES) == ["overview", "ranking", "experiments", "processor"]
    assert {name: len(panels_of(page)) for name, page in PAGES.items()} == {
        "overview": 16,
        "ranking": 16,
        "experiments": 10,
        "processor": 17,
    }
    for settings in (everything(), parse({}), sourced()):
        for page in boards(settings, PAGE).values():
            assert len(panels_of(page)) <= MOST_PANELS
            rows = [p for p in page["panels"] if p["type"] == "row"]
            assert not rows[0]["collapsed"]
            assert all(bool(row["panels"]) == row["collapsed"] for row in rows)


@pytest.mark.parametrize("name", ["overview", "ranking", "processor"])
def test_folded_rows_ask_nothing_until_they_are_opened(name: str) -> None:
    page = PAGES[name]
    assert page["time"]["from"] in ("now-24h", "now-6h")
    at_once = [p for p in page["panels"] if p["type"] != "row"]
    assert 0 < sum(len(p["targets"]) for p in at_once) <= 38
    assert len(at_once) < len(panels_of(page))


def sourced() -> Settings:
    return parse(
        {
            "sources": [
                {
                    "topics": ["shown"],
                    "kind": {"fixed": "impression"},
                    "fields": {"ts": "ts", "item_id": "item_id"},
                }
            ],
            "metrics": {"conventions": {"ndcg_ratio": ["jurity"]}},
        }
    )


@pytest.mark.parametrize("name", PAGES)
def test_they_are_valid_by_grafanas_types(name: str) -> None:
    page = json.loads(json.dumps(PAGES[name]))
    for each in page["annotations"]["list"]:
        for field in _OF_PROMETHEUS:
            assert each.pop(field)
    assert errors(page, "Dashboard") == []
    for panel in panels_of(page):
        kind = panel["type"]
        assert errors(panel["options"], f"{kind}.Options") == []
        custom = panel["fieldConfig"]["defaults"].get("custom")
        assert custom is None or errors(custom, f"{kind}.FieldConfig") == []
        for override in panel["fieldConfig"]["overrides"]:
            for value in override["properties"]:
                room, _, field = value["id"].rpartition(".")
                given = {field: value["value"]}
                if (room, kind) == ("custom", "table"):
                    given |= {"align": "auto", "inspect": False}
                definition = f"{kind}.FieldConfig" if room == "custom" else "FieldConfig"
                assert errors(given, definition) == []


def test_the_schema_finds_what_is_wrong() -> None:
    page = json.loads(json.dumps(PAGES["overview"]))
    page["annotations"]["list"] = []
    page["panels"][1]["gridPos"]["width"] = 3
    page["templating"]["list"][0]["auto"] = False
    assert len(errors(page, "Dashboard")) >= 2


@pytest.mark.parametrize("name", PAGES)
def test_titles_name_a_metric_and_ask_and_panels_say_what_they_show(name: str) -> None:
    page = PAGES[name]
    panels = panels_of(page)
    numbers = [panel["id"] for panel in [*panels, *(p for p in page["panels"] if "panels" in p)]]
    assert len(set(numbers)) == len(numbers)
    for panel in panels:
        assert re.fullmatch(r"[^:?]+(: .+\?|\?)", panel["title"]), panel["title"]
        assert panel["title"].count(":") == 1
        assert panel["description"]
        assert panel["datasource"] == SOURCE
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["fieldConfig"]["defaults"]["noValue"]
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)
    titles = [panel["title"] for panel in panels]
    assert len(set(titles)) == len(titles)


def test_no_two_panels_overlap() -> None:
    assert PAGES
    for page in PAGES.values():
        taken: set[tuple[int, int]] = set()
        panels = unfolded(page)
        assert panels
        for panel in panels:
            at = panel["gridPos"]
            assert at["x"] + at["w"] <= 24
            cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
            assert not cells & taken, panel["title"]
            taken |= cells


def test_pages_lead_to_each_other_and_to_the_exporter() -> None:
    assert PAGES
    for page in PAGES.values():
        others, exporter, *_ = page["links"]
        assert (others["tags"], others["includeVars"], others["keepTime"]) == (
            page["tags"], True, True,
        )  # fmt: skip
        assert exporter["url"] == PAGE


def test_alerts_and_changes_of_verdicts_are_marked() -> None:
    for name in ("overview", "ranking", "processor"):
        (mark,) = PAGES[name]["annotations"]["list"]
        assert 'ALERTS{alertstate="firing", alertname=~"Streamer' in mark["expr"]
    mark, _ = PAGES["experiments"]["annotations"]["list"]
    assert " unless " in mark["expr"]
    assert mark["titleFormat"] == "{{arm}}: {{verdict}}"


# What is on them ----------------------------------------------------------------------------------


def test_the_tooltip_has_the_support_of_each_line() -> None:
    found = 0
    for panel in panels_of(PAGES["overview"]) + panels_of(PAGES["ranking"]):
        names = [t["legendFormat"] for t in panel["targets"]]
        if names[0] == "{{$by}}":
            found += 1
            assert names[1:3] in (["{{$by}} high", "{{$by}} low"], names[1:2])
            support = properties(panel, names[-1])
            assert ": " in names[-1]
            assert support["custom.hideFrom"] == {"legend": True, "tooltip": False, "viz": False}
            assert (support["custom.lineWidth"], support["unit"]) == (0, "short")
    assert found == 15


def test_named_values_have_bands_and_others_their_ends_in_the_tooltip() -> None:
    named = {"dimensions": [{"name": "variant", "values": ["A", "B"]}, {"name": "surface"}]}
    panel = titled(boards(parse(named), PAGE)["overview"], _CTR)
    assert [t["legendFormat"] for t in panel["targets"][:3]] == [
        *("{{$by}}", "{{$by}} high", "{{$by}} low"),
    ]
    filled_to = {
        name: properties(panel, f"{name} high").get("custom.fillBelowTo")
        for name in ("all", "A", "B", "home")
    }
    assert filled_to == {"all": "all low", "A": "A low", "B": "B low", "home": None}
    is_in_tooltip = {
        name: not properties(panel, f"{name} low")["custom.hideFrom"]["tooltip"]
        for name in ("A", "home")
    }
    assert is_in_tooltip == {"A": False, "home": True}
    colors = [properties(panel, name)["color"].get("fixedColor") for name in ("A", "B", "home")]
    assert colors == ["blue", "orange", None]


def test_arms_of_an_experiment_are_named_values() -> None:
    panel = titled(PAGES["overview"], _CTR)
    assert properties(panel, "A")["color"] == {"mode": "fixed", "fixedColor": "blue"}


def test_tables_are_sorted_and_say_since_when_with_links() -> None:
    overview = PAGES["overview"]
    for title in ("Alerts: what is firing?", "Watched metrics: which one has moved?"):
        panel = titled(overview, title)
        organize, sorting = panel["transformations"][-2:]
        assert sorting["options"]["sort"] == [{"field": "severity", "desc": False}]
        order = organize["options"]["indexByName"]
        assert min(order, key=order.__getitem__) == "Value #A"
        assert panel["targets"][0]["legendFormat"] == "severity"
        assert panel["targets"][-1]["legendFormat"] == "since"
        assert "ALERTS_FOR_STATE" in panel["targets"][-1]["expr"]
        assert properties(panel, "since")["unit"] == "dateTimeFromNow"
        (link,) = properties(panel, "alert")["links"]
        assert link["url"] == (
            f"{PAGE}/?alert=${{__data.fields.alert}}&segment=variant:${{__data.fields.variant}},"
            "surface:${__data.fields.surface}#explain"
        )
    (link,) = properties(titled(overview, "Alerts: what is firing?"), "alertname")["links"]
    assert link["url"] == f"{PAGE}/runbooks#${{__value.text}}"


def test_values_have_a_column_only_where_all_watched_metrics_are_shares() -> None:
    def columns(*metrics: str) -> set[str]:
        alerts = [{"name": f"a{i}", "metric": metric} for i, metric in enumerate(metrics)]
        page = boards(parse({"alerts": alerts}), PAGE)["overview"]
        panel = titled(page, "Watched metrics: which one has moved?")
        return {target["legendFormat"] for target in panel["targets"]}

    assert {"value", "baseline"} <= columns("ctr_ratio", "cvr_ratio")
    assert not {"value", "baseline"} & columns("ctr_ratio", "dwell_mean_seconds")


def test_exporters_that_differ_are_read_as_the_rules_read_them() -> None:
    state = titled(PAGES["overview"], "State of streamer: can these numbers be trusted?")
    assert [t["expr"].partition("(")[0] for t in state["targets"][:2]] == ["min", "min"]
    counting = titled(PAGES["processor"], "State of streamer: is it counting?")
    assert [t["expr"].partition("(")[0] for t in counting["targets"][:3]] == ["min"] * 3


def test_work_that_waits_is_a_day_where_nothing_is_read(tmp_path: Path) -> None:
    target = titled(PAGES["processor"], "Lag: how far behind is it?")["targets"][0]
    labels = 'system="streamer", topic="clicks"'
    given = [
        {"series": f'{PREFIX}consumer_lag_records{{{labels}, partition="0"}}', "values": "9x20"},
        {"series": f"{PREFIX}events_total{{{labels}}}", "values": "5x20"},
    ]
    expr = filled_in(target["expr"], filled(PAGES["processor"]))
    check = {"expr": expr, "eval_time": "15m", "exp_samples": [{"labels": "{}", "value": 86400}]}
    case = {"interval": "1m", "input_series": given, "promql_expr_test": [check]}
    path = tmp_path / "lag.yml"
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)


def test_units_and_descriptions_are_those_of_the_declarations() -> None:
    series = declared()
    assert series["ctr_ratio"].unit == "percentunit"
    assert series["window_dwell_seconds"].unit == "s"
    assert "clicks / impressions" in series["ctr_ratio"].description
    panel = titled(PAGES["overview"], _CTR)
    assert panel["description"].startswith(series["ctr_ratio"].description)


@pytest.mark.parametrize("name", PAGES)
def test_every_series_that_is_asked_for_is_declared(name: str) -> None:
    asked = set(re.findall(rf"\b{PREFIX}(\w+)\{{", expressions(PAGES[name])))
    histogram = re.compile("_(bucket|count|sum)$")
    assert {n for n in asked if histogram.sub("", n) not in declared()} == set()


def test_what_an_alert_tolerates_is_drawn_beside_the_change() -> None:
    alerts = [
        {"name": "up", "metric": "dwell_mean_seconds", "direction": "lower", "drop": 0.25},
        {"name": "ctr", "drop": 0.05},
    ]
    page = boards(parse({"alerts": alerts, "dimensions": []}), PAGE)["overview"]
    panel = titled(page, "Change of $alert: how close is it to firing?")
    rise, fall = (t["expr"] for t in panel["targets"] if "_change_" in t["expr"])
    assert ("alert_change_upper_ratio" in rise, 'alert=~"ctr"' in rise) == (True, True)
    assert ("alert_change_lower_ratio" in fall, 'alert=~"up"' in fall) == (True, True)
    tolerated = panel["targets"][-1]
    assert tolerated["legendFormat"] == "tolerated"
    for value in ('vector(0.25), "alert", "up"', 'vector(-0.05), "alert", "ctr"'):
        assert value in tolerated["expr"]


# Settings -----------------------------------------------------------------------------------------


def titles(settings: dict[str, Any]) -> dict[str, set[str]]:
    pages = boards(parse(settings), PAGE)
    return {name: {p["title"] for p in panels_of(page)} for name, page in pages.items()}


def test_what_the_settings_switch_off_has_no_panel() -> None:
    plain = titles({})
    assert "experiments" not in plain
    assert "Watched metrics: which one has moved?" not in plain["overview"]
    assert "Ratios: how do they move?" not in plain["overview"]
    assert "Calibration by $by: how wrong are the scores?" in plain["ranking"]
    assert "Drift of scores (PSI): have they moved since the day before?" not in plain["ranking"]
    assert (
        "CTR of other policies (SNIPS): would another one get more clicks?" not in plain["ranking"]
    )
    only = titles({"metrics": {"families": ["traffic"]}})
    assert _CTR in only["overview"]
    assert "Mean dwell by $by: how long do people look?" not in only["overview"]
    assert only["ranking"] == {
        "CTR by position: where are the clicks?",
        "COEC by $by: are there more clicks than positions explain?",
    }
    hidden = titles({"metrics": {"hide": ["ctr_*"]}})
    assert _CTR not in hidden["overview"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"metrics": {"families": ["traffic"]}},
        {"metrics": {"hide": ["ctr_*", "coec_ratio"]}},
        {"dimensions": []},
        {"metrics": {"families": ["ranking", "scoring"]}},
    ],
)
def test_every_metric_that_is_asked_for_is_shown(settings: dict[str, Any]) -> None:
    parsed = parse(settings)
    shown = {metric.name for metric in Catalogue(parsed).metrics}
    metrics = {metric.name for metric in Catalogue(everything()).metrics}
    pages = boards(parsed, PAGE)
    assert pages
    for page in pages.values():
        asked = set(re.findall(rf"\b{PREFIX}(\w+)\{{", expressions(page)))
        assert (asked & metrics) - shown == set()


@pytest.mark.parametrize("family", [family.name for family in FAMILIES])
def test_one_family_alone_has_all_variables_that_its_queries_use(family: str) -> None:
    settings = replace(everything(), composites=(), alerts=(), experiments=())
    alone = replace(settings, metrics=replace(settings.metrics, families=(family,)))
    pages = boards(alone, PAGE)
    assert pages
    for page in pages.values():
        names = {v["name"] for v in page["templating"]["list"]}
        assert set(re.findall(r"\$(?!__)(\w+)", expressions(page))) <= names


def test_dimensions_and_windows_are_those_of_the_settings() -> None:
    settings = {
        "dimensions": [{"name": "country", "values": ["se", "no"]}, {"name": "device"}],
        "windows": {"lengths": ["2m", "6h"]},
        "metrics": {"k": [3, 20]},
    }
    pages = boards(parse(settings), PAGE)
    chosen = filled(pages["ranking"])
    assert (chosen["window"], chosen["by"], chosen["k"]) == ("2m", "country", "3")
    (window,) = [v for v in pages["ranking"]["templating"]["list"] if v["name"] == "window"]
    assert window["query"] == "2m,6h"
    for page in pages.values():
        text = json.dumps(page)
        assert "variant" not in text
        assert "surface" not in text
    assert "max by (country, device)" in expressions(pages["overview"])


def test_without_dimensions_there_is_one_line() -> None:
    page = boards(parse({"dimensions": []}), PAGE)["overview"]
    names = [v["name"] for v in page["templating"]["list"]]
    assert names == ["datasource", "system", "window"]
    line = titled(page, "CTR: are clicks falling?")["targets"][0]
    assert line["legendFormat"] == "all"
    assert "ignoring" not in line["expr"]


def test_conventions_have_a_panel() -> None:
    page = boards(sourced(), PAGE)["ranking"]
    (target,) = titled(page, "Metrics in other conventions: what do other libraries say?")[
        "targets"
    ]
    assert "convention=" not in target["expr"]
    assert target["legendFormat"] == "ndcg {{convention}}"


# As Prometheus sees it ----------------------------------------------------------------------------


def test_lines_are_split_and_folded_over_exporters(tmp_path: Path) -> None:
    """Two exporters; of the dimensions one is split, and the other's rollup is shown,
    without what lacks the dimension."""
    panel = titled(PAGES["overview"], _CTR)
    segments = {("all", "all"): 0.5, ("A", "all"): 0.25, ("B", "all"): 0.75, ("all", "home"): 0.125,
                ("A", "home"): 0.99, ("unknown", "all"): 0.98,
                ("all", "unknown"): 0.97}  # fmt: skip
    given = [
        {
            "series": f'{PREFIX}ctr_ratio{{system="streamer", instance="{i}", window="5m",'
            f' variant="{variant}", surface="{surface}"}}',
            "values": str(value),
        }
        for (variant, surface), value in segments.items()
        for i in "12"
    ]
    by_dimension = {
        "variant": [("all", "all"), ("A", "all"), ("B", "all")],
        "surface": [("all", "all"), ("all", "home")],
    }
    checks = [
        {
            "expr": filled_in(
                panel["targets"][0]["expr"],
                filled(PAGES["overview"], by=dimension, window="5m"),
            ),
            "eval_time": "0m",
            "exp_samples": [
                {
                    "labels": f'{{variant="{at[0]}", surface="{at[1]}"}}',
                    "value": segments[at],
                }
                for at in lines
            ],
        }
        for dimension, lines in by_dimension.items()
    ]
    case = {"interval": "1m", "input_series": given, "promql_expr_test": checks}
    path = tmp_path / "lines.yml"  # JSON is YAML
    path.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)


@pytest.mark.parametrize("name", PAGES)
def test_every_query_of_panels_variables_and_annotations_is_promql(
    name: str, tmp_path: Path
) -> None:
    page = PAGES[name]
    texts = [target.expr for target in targets(page)]
    texts += [each["expr"] for each in page["annotations"]["list"]]
    for variable in page["templating"]["list"]:
        if variable["type"] == "query":
            texts.append(series_and_label(variable["query"])[0])
    found = [filled_in(text, filled(page)) for text in texts]
    recorded = [{"record": f"query:{number}", "expr": expr} for number, expr in enumerate(found)]
    path = tmp_path / f"{name}.yml"
    path.write_text(json.dumps({"groups": [{"name": name, "rules": recorded}]}))
    assert f"{len(found)} rules found" in promtool("check", "rules", "--lint=none", path)
