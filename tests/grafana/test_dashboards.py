"""The dashboards: current, valid by Grafana's own types, and whole."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from jsonschema import Draft7Validator

from grafana import build
from grafana.bands import ARMS
from grafana.declared import declared
from grafana.overview import Overview
from grafana.panels import SOURCE
from streamer.metrics import engagement, ranking, scoring
from streamer.metrics.catalogue import FAMILIES, PREFIX
from streamer.query import alert_gauges, experiment_gauges
from streamer.query.counters import COUNTERS
from streamer.server.lag import Standstill
from streamer.server.processor import Health, keyed_metric, log_metrics, processor_metrics
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "grafana-dashboard.schema.json").read_text()
)
PAGES = {path.stem: json.loads(path.read_text()) for path in build.DASHBOARDS.glob("*.json")}

SLATE_METRICS = [*ranking.slate_metric.values, *scoring.slate_metric.values]


def panels(page: str) -> list[Any]:
    return [panel for panel in PAGES[page]["panels"] if panel["type"] != "row"]


def expressions(page: str) -> str:
    return "\n".join(target["expr"] for panel in panels(page) for target in panel["targets"])


def errors(document: Any, definition: str) -> list[str]:
    validator = Draft7Validator({**SCHEMA, "$ref": f"#/definitions/{definition}"})
    return [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)]


def test_they_are_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--check"]) == 0
    assert build.main(["--check", "--out", str(tmp_path)]) == 1
    assert "overview.json is not current" in capsys.readouterr().err
    assert build.main(["--out", str(tmp_path)]) == 0
    assert build.main(["--check", "--out", str(tmp_path)]) == 0
    assert sorted(PAGES) == [
        *(
            "alerts",
            "custom",
            "engagement",
            "experiments",
            "intervals",
            "overview",
            "processor",
            "ranking",
        ),
        "scores",
    ]


@pytest.mark.parametrize("page", PAGES)
def test_they_are_valid_by_grafanas_types(page: str) -> None:
    assert errors(PAGES[page], "Dashboard") == []
    for panel in panels(page):
        assert errors(panel["options"], f"{panel['type']}.Options") == []
        custom = panel.get("fieldConfig", {"defaults": {}})["defaults"].get("custom")
        if custom:
            assert errors(custom, f"{panel['type']}.FieldConfig") == []
        for override in panel.get("fieldConfig", {}).get("overrides", ()):
            for value in override["properties"]:
                kind, _, name = value["id"].rpartition(".")
                definition = f"{panel['type']}.FieldConfig" if kind == "custom" else "FieldConfig"
                assert errors({name: value["value"]}, definition) == []


def test_the_schema_finds_what_is_wrong() -> None:
    page = json.loads(json.dumps(PAGES["overview"]))
    page["panels"][1]["gridPos"]["width"] = 3
    page["templating"]["list"][0]["auto"] = False
    assert len(errors(page, "Dashboard")) >= 2


@pytest.mark.parametrize("page", PAGES)
def test_the_library_reads_back_what_it_wrote(page: str) -> None:
    again = json.loads(json.dumps(Dashboard.from_json(PAGES[page]), cls=JSONEncoder))
    assert again["panels"] == PAGES[page]["panels"]


@pytest.mark.parametrize("page", PAGES)
def test_panels_say_what_they_show(page: str) -> None:
    numbers = [panel["id"] for panel in PAGES[page]["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in panels(page):
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"] == {"type": SOURCE.type_val, "uid": SOURCE.uid}
        assert panel["type"] == "table" or panel["fieldConfig"]["defaults"]["unit"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24


def test_no_two_panels_overlap() -> None:
    for page in PAGES.values():
        taken: set[tuple[int, int]] = set()
        for panel in page["panels"]:
            at = panel["gridPos"]
            cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
            assert not cells & taken, panel["title"]
            taken |= cells


def test_every_metric_stands_on_a_page() -> None:
    own = {"traffic": ("overview", "engagement"), "scoring": ("ranking",)}
    own |= dict.fromkeys(("calibration", "off_policy", "coverage", "diversity"), ("scores",))
    own["composites"] = ("intervals",)
    for family in FAMILIES:
        shown = "".join(map(expressions, own.get(family.name, (family.name,))))
        missing = [
            m.name
            for m in family.metrics
            if f"{PREFIX}{m.name}{'_bucket' * (m.kind == 'histogram')}{{" not in shown
        ]
        assert missing == [], family.name


@pytest.mark.parametrize(("page", "count"), [("overview", 6), ("engagement", 4)])
def test_every_ratio_stands_beside_its_support(page: str, count: int) -> None:
    found = panels(page)
    for left, right in pairwise(found):
        if ": support of " in right["title"]:
            assert right["title"].endswith(f": support of {left['title']}")
            assert right["gridPos"]["y"] == left["gridPos"]["y"]
    ratios = [
        p for p in found if p["type"] == "timeseries" and "_ratio{" in p["targets"][0]["expr"]
    ]
    assert len(ratios) == count
    for panel in ratios:
        after = found[found.index(panel) + 1]
        assert ": support of " in after["title"], panel["title"]


def test_every_mean_over_slates_stands_in_line_with_the_number_of_its_slates() -> None:
    graphs = [p for p in panels("ranking") if p["type"] == "timeseries"]
    for metric in SLATE_METRICS:
        (panel,) = [p for p in graphs if f"{PREFIX}{metric.name}{{" in p["targets"][0]["expr"]]
        line = [p for p in graphs if p["gridPos"]["y"] == panel["gridPos"]["y"]]
        (support,) = [
            p["targets"][0]["expr"]
            for p in line
            if " support of " in p["title"]
            and f"({PREFIX}{metric.population.support}{{" in p["targets"][0]["expr"]
        ]
        assert "over=" not in support  # both populations, by legend


def test_labels_of_slates_are_chosen_by_variables() -> None:
    variables = {v["name"]: v for v in PAGES["ranking"]["templating"]["list"]}
    defaults = {"k": "10", "over": "engaged", "maturity": "provisional", "surface": "all"}
    for name, value in defaults.items():
        assert variables[name]["current"]["value"] == value
        assert variables[name]["query"].endswith(f", {name})")
        assert not variables[name]["multi"]
    for metric in SLATE_METRICS:
        (expr,) = {
            target["expr"]
            for panel in panels("ranking")
            for target in panel["targets"][:1]
            if panel["type"] == "timeseries" and f"{PREFIX}{metric.name}{{" in target["expr"]
        }
        assert ('k="$k"' in expr) == metric.by_k
        assert ('maturity="$maturity"' in expr) == metric.population.has_maturity
        assert ('convention=""' in expr) == bool(metric.conventions)
        over = f'over="{metric.over[0]}"' if len(metric.over) == 1 else 'over="$over"'
        assert (over in expr) == bool(metric.over)


def test_conventions_and_cut_offs_are_those_of_the_settings() -> None:
    settings = parse({"metrics": {"k": [3, 20], "conventions": {"ndcg_ratio": ["jurity"]}}})
    page = json.loads(build.pages(settings)["ranking.json"])
    (cut,) = [v for v in page["templating"]["list"] if v["name"] == "k"]
    assert cut["current"]["value"] == "3"
    (panel,) = [p for p in page["panels"] if p["title"] == "NDCG at $k, by convention"]
    (target,) = panel["targets"]
    assert "convention=" not in target["expr"]
    assert "{{convention}}" in target["legendFormat"]
    assert "by convention" not in str(PAGES["ranking"])


def test_the_processor_page_shows_all_metrics_of_streamer_itself() -> None:
    shown = expressions("processor")
    families = [
        *processor_metrics(Reader(MemoryStore()), [], Health()),
        *log_metrics({}, Standstill()),
        keyed_metric(Settings(), {}),
    ]
    names = [PREFIX + c.name for c in COUNTERS] + [f.name for f in families]
    assert [name for name in names if name not in shown] == []


def test_the_experiments_page_shows_all_their_metrics() -> None:
    shown = expressions("experiments")
    assert [g.name for g in experiment_gauges.GAUGES if PREFIX + g.name not in shown] == []


def test_the_alerts_page_shows_all_their_metrics() -> None:
    shown = expressions("alerts")
    assert [g.name for g in alert_gauges.GAUGES if f"{PREFIX}{g.name}{{" not in shown] == []
    names = [v["name"] for v in PAGES["alerts"]["templating"]["list"]]
    assert names == ["datasource", "job", "alert", "variant", "surface"]
    tables = [p for p in panels("alerts") if p["type"] == "table"]
    assert [p["title"] for p in tables] == ["Status", "Traffic", "Against the reference week"]
    for table in tables:  # of every alert
        assert "$" not in table["targets"][0]["expr"].replace('job="$job"', "")


def test_what_an_alert_tolerates_is_drawn_beside_the_change() -> None:
    alerts = [
        {"name": "up", "metric": "dwell_mean_seconds", "direction": "lower", "drop": 0.25},
        {"name": "ctr", "drop": 0.05},
    ]
    page = json.loads(build.pages(parse({"alerts": alerts, "dimensions": []}))["alerts.json"])
    (panel,) = [p for p in page["panels"] if p["title"] == "Change from the baseline"]
    tolerated = panel["targets"][-1]
    assert tolerated["legendFormat"] == "tolerated"
    for value in ('vector(0.25), "alert", "up"', 'vector(-0.05), "alert", "ctr"'):
        assert value in tolerated["expr"]
    none = json.loads(build.pages(parse({}))["alerts.json"])
    assert "tolerated" not in [t.get("legendFormat") for p in none["panels"]
                               for t in p.get("targets", ())]  # fmt: skip


def test_units_and_descriptions_are_those_of_the_declarations() -> None:
    series = declared()
    assert series["streamer_ctr_ratio"].unit == "percentunit"
    assert series["streamer_window_dwell_seconds"].unit == "s"
    assert "clicks / impressions" in series["streamer_ctr_ratio"].description
    (panel,) = [p for p in panels("overview") if p["title"] == "CTR" and p["type"] == "timeseries"]
    assert panel["description"] == series["streamer_ctr_ratio"].description


def test_pages_of_windows_share_their_variables_and_all_pages_are_linked() -> None:
    names = {page: [v["name"] for v in PAGES[page]["templating"]["list"]] for page in PAGES}
    assert names["engagement"] == ["datasource", "job", "window", "variant", "surface"]
    assert names["overview"] == [*names["engagement"], "maturity"]
    more = ["k", "over", "maturity", "arm_1", "arm_2", "arm_3", "arm_4"]
    assert names["ranking"] == [*names["engagement"], *more]
    assert names["scores"] == names["overview"]
    assert names["custom"] == [*names["engagement"], "custom"]
    assert len({page["uid"] for page in PAGES.values()}) == len(PAGES)
    for page in PAGES.values():
        (link,) = page["links"]
        assert link["tags"] == page["tags"] == ["streamer"]
        assert link["includeVars"]
        assert link["keepTime"]


def test_the_heat_map_takes_counts_as_they_are_and_stacks_classes_upwards() -> None:
    (panel,) = [p for page in PAGES for p in panels(page) if p["type"] == "heatmap"]
    (target,) = panel["targets"]
    assert panel["options"]["calculate"] is False
    assert target["format"] == "time_series"  # `heatmap` takes differences of cumulative counts
    assert target["range"]
    # Grafana sorts by the legends when it can read all of them as numbers, or as infinity.
    assert target["legendFormat"] == "{{upto_seconds}}"
    one_in_each: Any = lambda name: np.ones(1, np.int64)  # noqa: E731
    classes = engagement.dwell_distribution(one_in_each)
    bounds = [float(series.labels["upto_seconds"]) for series in classes]
    assert bounds == sorted(bounds)
    assert bounds[-1] == float("inf")


def test_dimensions_are_those_of_the_settings(tmp_path: Path) -> None:
    config = tmp_path / "streamer.toml"
    config.write_text('[[dimensions]]\nname = "country"\n[[dimensions]]\nname = "device"\n')
    assert build.main(["-c", str(config), "--out", str(tmp_path)]) == 0
    arms = [f"arm_{number}" for number in range(1, ARMS + 1)]
    added = {
        "overview": ["maturity"],
        "engagement": [],
        "ranking": ["k", "over", "maturity", *arms],
    }
    for name, more in added.items():
        page = json.loads((tmp_path / f"{name}.json").read_text())
        names = [variable["name"] for variable in page["templating"]["list"]]
        assert names == ["datasource", "job", "window", "country", "device", *more]
        text = json.dumps(page)
        assert "variant" not in text
        assert "surface" not in text
        assert 'country=~\\"$country\\", device=~\\"$device\\"' in text


def test_without_dimensions_there_is_one_line() -> None:
    settings: Settings = parse({"dimensions": []})
    page = Overview(declared(), settings).build().build()
    assert [v.name for v in page.templating.list_val or []] == [
        *("datasource", "job", "window", "maturity")
    ]
