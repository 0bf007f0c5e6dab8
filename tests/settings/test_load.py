"""Settings: every key optional, unknown keys refused, errors in one line that says where."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamer.errors import SettingsError
from streamer.metrics.catalogue import Catalogue
from streamer.settings.durations import duration_ms, pane_length_ms
from streamer.settings.load import load, parse
from streamer.settings.model import Settings
from tests.support.all_cases import hold_for_all


def test_no_file_and_no_environment_are_the_defaults() -> None:
    assert load() == Settings() == parse({})
    assert load(None, {"STREAMER_CONFIG": "x", "STREAMER_TEST_KAFKA": "y", "PATH": "z"}) == parse(
        {}
    )


def test_the_documented_defaults() -> None:
    s = Settings()
    assert (s.kafka.brokers, s.kafka.group) == ("localhost:9092", "streamer")
    assert (s.redis.url, s.redis.prefix) == ("redis://localhost:6379/0", "streamer")
    assert [(d.name, d.values, d.max_values) for d in s.dimensions] == [
        ("variant", (), 100),
        ("surface", (), 100),
    ]
    assert list(s.windows.lengths_ms.items()) == [
        ("1m", 60_000), ("5m", 300_000), ("1h", 3_600_000), ("24h", 86_400_000),
    ]  # fmt: skip
    assert (s.attribution.click_ms, s.attribution.conversion_ms) == (1_800_000, 86_400_000)
    assert (s.time.max_lateness_ms, s.time.max_skew_ms) == (3_600_000, 300_000)
    assert s.rollups == ((), ("variant",), ("surface",))
    assert s.detailed == ((),)
    assert s.metrics.k == (10,)
    assert (s.exporter.host, s.exporter.port) == ("127.0.0.1", 8000)


def test_the_environment_lies_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "streamer.toml"
    path.write_text('[kafka]\nbrokers = "file:1"\ngroup = "of the file"\n')
    environ = {
        "STREAMER_KAFKA__BROKERS": "env:1,env:2",
        "STREAMER_KAFKA__TOPICS__CLICKS": "taps",
        "STREAMER_EXPORTER__PORT": "9",
        "STREAMER_REDIS__CLUSTER": "true",
        "STREAMER_WINDOWS__LENGTHS": '["2m", "1h"]',
        "STREAMER_METRICS__FEEDBACK": "{ click = 1.0, like = 2.5 }",
        "STREAMER_NAME": "ignored: no section",
        "STREAMER_DIMENSIONS": '[{ name = "variant", values = ["A", "B"] }]',
        "STREAMER_EXPERIMENTS": (
            '[{ name = "e", dimension = "variant", control = "A", split = { A = 1, B = 1 },'
            " start = 2026-11-01 }]"
        ),
    }
    s = load(path, environ)
    assert (s.kafka.brokers, s.kafka.group) == ("env:1,env:2", "of the file")
    assert s.kafka.topics.clicks == "taps"
    assert (s.exporter.port, s.redis.cluster) == (9, True)
    assert s.windows.lengths == ("2m", "1h")
    assert s.feedback_kinds == ("click", "like")
    assert [(d.name, d.values) for d in s.dimensions] == [("variant", ("A", "B"))]
    assert [(e.name, e.start.isoformat()) for e in s.experiments] == [("e", "2026-11-01")]


def experiment(**changes: Any) -> dict[str, Any]:
    """A settings document with one experiment."""
    sound = {
        "name": "e",
        "dimension": "variant",
        "control": "A",
        "split": {"A": 1, "B": 1},
        "start": date(2026, 11, 1),
    }
    return {"experiments": [sound | changes]}


def policies(*tables: dict[str, Any]) -> dict[str, Any]:
    """A settings document with policies."""
    return {"policies": list(tables)}


def ratios(*tables: dict[str, Any]) -> dict[str, Any]:
    """A settings document with ratios of impressions."""
    sound = {"name": "latency", "numerator": {"kind": "impressions"}}
    return {"ratios": [sound | table for table in tables]}


def above(**part: Any) -> dict[str, Any]:
    """A ratio with such a numerator."""
    return ratios({"numerator": {"kind": "impressions"} | part})


def over(**part: Any) -> dict[str, Any]:
    """A ratio with such a denominator."""
    return ratios({"denominator": part})


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"kafak": {}}, ["kafak"]),
    ({"kafka": {"broker": "x"}}, ["broker", "$.kafka"]),
    ({"kafka": {"topics": {"click": "x"}}}, ["click", "$.kafka.topics"]),
    ({"dimensions": [{"name": "a", "max": 3}]}, ["max", "$.dimensions[0]"]),
    ({"exporter": {"port": "many"}}, ["$.exporter.port"]),
    ({"exporter": {"port": 65536}}, ["exporter.port", "65536", "65535"]),
    (experiment(dimension="country"), ["'country'", "variant", "experiments[0]"]),
    (experiment(control="C"), ["'C'", "split", "experiments[0]"]),
    (experiment(split={"A": 1}), ["split", "2 to 16 arms"]),
    (experiment(split={"A": 1, "B": 0}), ["split.B = 0.0", "above 0"]),
    (experiment(split={"A": 1, "other": 1}), ["split.other", "'variant'"]),
    (experiment(end=date(2026, 10, 31)), ["2026-10-31", "at least a day"]),
    (experiment(start="soon"), ["$.experiments[0].start"]),
    (experiment(alpha=1.0), ["alpha = 1.0"]),
    (experiment(covariate_days=91), ["covariate_days = 91", "0 to 90"]),
    (experiment(expected_users=0), ["expected_users = 0"]),
    (experiment(min_users=99), ["min_users = 99: at least 100", "no interval holds"]),
    (experiment(power=0.4), ["power = 0.4: 0.5 to below 1", "experiments[0]"]),
    (experiment(power=1.0), ["power = 1.0"]),
    (experiment(min_lift=2.0), ["min_lift = 2.0: above 0 and below 1, e.g. 0.02 for 2 %"]),
    (
        experiment(metrics=[{"name": n, "primary": True} for n in ("ctr_ratio", "cvr_ratio")]),
        ["primary = true of ctr_ratio and cvr_ratio: one metric decides", "experiments[0]"],
    ),
    (
        experiment(metrics=[{"name": "ctr_ratio", "primary": True, "margin": 0.1}]),
        ["ctr_ratio: primary = true and a margin", "remove one of them"],
    ),
    (experiment(name="a b"), ["'a b'", "A-Za-z0-9_.:-"]),
    (experiment(metrics=[]), ["metrics []"]),
    (experiment(metrics=[{"name": "ctr_ratio", "direction": "up"}]), ["'up'", "'lower'"]),
    (experiment(metrics=[{"name": "ctr_ratio", "margin": 1.5}]), ["margin = 1.5"]),
    (
        experiment(metrics=[{"name": "clicks_per_user@p90", "cap": 0.99}]),
        ["clicks_per_user@p90: cap = 0.99: the heaviest users do not move", "remove it"],
    ),
    (
        experiment(metrics=[{"name": "ctr_ratio", "margin_absolute": 0.0}]),
        ["ctr_ratio: margin_absolute = 0.0: above 0, in the unit of the metric"],
    ),
    (
        experiment(metrics=[{"name": "ctr_ratio", "margin": 0.1, "margin_absolute": 0.1}]),
        ["ctr_ratio: margin and margin_absolute", "experiments[0]"],
    ),
    (
        {"experiments": experiment()["experiments"] * 2},
        ["a different name for each of the experiments", "experiments[0]"],
    ),
    ({"time": {"max_lateness": "1 h"}}, ["'1 h'", "time.max_lateness"]),
    ({"time": {"max_skew": "0s"}}, ["'0s'", "time.max_skew"]),
    ({"time": {"dedup_horizon": "-1m"}}, ["'-1m'", "time.dedup_horizon"]),
    ({"windows": {"lengths": ["1w"]}}, ["'1w'", "windows.lengths"]),
    ({"windows": {"lengths": []}}, ["windows.lengths", "[]"]),
    ({"windows": {"lengths": ["1m", "1m"]}}, ["windows.lengths", "['1m', '1m']"]),
    ({"windows": {"lengths": ["500ms"]}}, ["'500ms'"]),
    ({"windows": {"lengths": ["32d"]}}, ["'32d'", "31 d"]),
    (
        {"attribution": {"click": "2d", "conversion": "1h"}},
        ["attribution.click", "'2d'", "attribution.conversion", "'1h'"],
    ),
    ({"metrics": {"feedback": {"all": 1}}}, ["metrics.feedback.all"]),
    ({"metrics": {"feedback": {"a b": 1}}}, ["metrics.feedback.a b"]),
    ({"metrics": {"feedback": {f"k{i}": 1 for i in range(40)}}}, ["41", "16"]),
    ({"metrics": {"k": []}}, ["metrics.k", "[]"]),
    ({"metrics": {"k": [0]}}, ["metrics.k", "[0]"]),
    ({"metrics": {"k": [5, 5]}}, ["metrics.k", "[5, 5]"]),
    ({"metrics": {"k": [1001]}}, ["metrics.k", "[1001]", "1000"]),
    ({"metrics": {"feedback": {"click": -1}}}, ["metrics.feedback.click", "-1", "1000"]),
    ({"metrics": {"feedback": {"like": float("nan")}}}, ["metrics.feedback.like", "nan"]),
    ({"metrics": {"thresholds": []}}, ["metrics.thresholds", "[]"]),
    ({"metrics": {"thresholds": [1.5]}}, ["metrics.thresholds", "[1.5]", "0 to 1"]),
    ({"metrics": {"thresholds": [0.5, 0.5]}}, ["metrics.thresholds", "different"]),
    ({"metrics": {"thresholds": [0.5, 0.1]}}, ["metrics.thresholds", "ascending"]),
    ({"metrics": {"thresholds": [i / 10 for i in range(6)]}}, ["metrics.thresholds", "1 to 5"]),
    ({"metrics": {"margin": -0.5}}, ["metrics.margin", "-0.5"]),
    ({"metrics": {"max_weight": 0.5}}, ["metrics.max_weight = 0.5", "1 to 1000"]),
    ({"metrics": {"max_weight": 1001}}, ["metrics.max_weight = 1001"]),
    ({"metrics": {"families": ["off_policy"]}}, ["'off_policy' needs [[policies]]"]),
    (policies(*({"name": f"p{i}", "positions": [1]} for i in range(5))), ["5 policies", "4"]),
    (policies({"name": "a b", "positions": [1]}), ["'a b'", "at policies[0]"]),
    (
        policies(*[{"name": "a", "positions": [1]}] * 2),
        ["'a'", "name for each of the policies"],
    ),
    (policies({"name": "a"}), ["one of propensity and positions", "at policies[0]"]),
    (policies({"name": "a", "propensity": "p", "positions": [1]}), ["one of propensity and"]),
    (policies({"name": "a", "positions": [0.5, 1.5]}), ["positions", "1.5", "0 to 1"]),
    (policies({"name": "a", "positions": [0.1] * 1001}), ["at most 1000"]),
    (policies({"name": "a", "propensity": "P new"}), ["'P new'", "a-z"]),
    (policies({"name": "a", "propensity": "p", "estimate": "p"}), ["'p' stands twice"]),
    (policies({"name": "a", "propensity": "score"}), ["'score' is a field of events"]),
    (policies({"name": "a", "propensity": "surface"}), ["'surface'", "dimension"]),
    (
        policies({"name": "a", "propensity": "p"}) | {"events": {"fields": {"p": "score"}}},
        ["events.fields.p = 'score'", "both be read"],
    ),
    ({"metrics": {"families": ["ratios"]}}, ["'ratios' needs [[ratios]]"]),
    (ratios(*({"name": f"c{i}"} for i in range(17))), ["17 ratios", "at most 16"]),
    (
        ratios(*({"name": f"c{i}", "quantiles": True} for i in range(5))),
        ["5 have quantiles = true", "at most 4"],
    ),
    (ratios({"quantiles": True}), ["the numerator needs a field"]),
    (ratios({"name": "Latency"}), ["'Latency'", "a letter first", "at ratios[0]"]),
    (ratios({"name": "a"}, {"name": "a"}), ["'a'", "a different name for each of the ratios"]),
    (ratios({"better": "more"}), ["better = 'more'", "'higher' or 'lower'"]),
    (ratios({"title": "x" * 301}), ["at most 300 characters"]),
    (above(kind="impression"), ["'impression'", "one of impressions, clicks", ".numerator"]),
    (above(kind="like"), ["'like'", "those in metrics.feedback"]),
    (above(kind="people"), ["only a denominator counts people"]),
    (
        over(kind="people") | {"metrics": {"families": ["traffic"]}},
        ["'people' needs 'engagement' in metrics.families", "denominator"],
    ),
    (over(kind="slates", field="x"), ["'slates' has neither field nor where"]),
    (over(kind="people", where={"surface": "home"}), ["'people' has neither field nor where"]),
    (above(kind="sessions", where={"x": 1}), ["a session is made of several events"]),
    (
        ratios({"numerator": {"kind": "sessions"}, "denominator": {"kind": "people"}}),
        ["sessions cannot be divided by people"],
    ),
    (above(field="timing.ms"), ["'timing.ms'", "[events.fields]"]),
    (above(field="propensity"), ["'propensity' is a field of events", "score"]),
    (above(field="value"), ["'value' is a field of events", "of impressions"]),
    (above(field="surface"), ["'surface' is a dimension"]),
    (
        above(field="p") | policies({"name": "a", "propensity": "p"}),
        ["'p' is a field of [[policies]]"],
    ),
    (
        above(field="ms") | {"events": {"fields": {"ms": "score"}}},
        ["events.fields.ms = 'score'", "both be read"],
    ),
    (
        ratios(
            *(
                {"name": f"c{i}", "numerator": above(field=f"f{i}")["ratios"][0]["numerator"]}
                for i in range(9)
            )
        ),
        ["9 different fields", "at most 8"],
    ),
    (above(where={f"c{i}": 1 for i in range(33)}), ["33 different conditions", "at most 32"]),
    (above(where={"a.b": "x"}), ["where.a.b", "at the top of the event"]),
    (above(where={"impression.x": 1}), ["only feedback and conversions join an impression"]),
    (above(where={"surface": []}), ["where.surface has 0 values"]),
    (above(where={"surface": ["other"]}), ["where.surface", "'other'"]),
    (above(where={"surface": {">": 1}}), ["where.surface", "no bounds"]),
    (above(where={"x": {"=": 1}}), ["where.x", "> < >= <="]),
    (above(where={"x": {}}), ["where.x has 0 values"]),
    (above(where={"score": "high"}), ["where.score", "the field is a number"]),
    (above(where={"item_id": 7}), ["where.item_id", "ids are texts"]),
    (above(where={"x": ""}), ["where.x", "1 to 128 characters"]),
    (above(where={"timestamp": [[1]]}), ["numerator"]),
    (
        {"metrics": {"conventions": {"mrr": ["jurity"]}}},
        ["metrics.conventions.mrr", "map_ratio"],
    ),
    (
        {"metrics": {"conventions": {"map_ratio": ["ranx"]}}},
        ["metrics.conventions.map_ratio", "['ranx']", "['jurity', 'primer']"],
    ),
    (
        {
            "metrics": {
                "conventions": {"ndcg_ratio": ["exponential"]},
                "feedback": {"click": 31},
            }
        },
        ["metrics.conventions.ndcg_ratio", "30", "metrics.feedback"],
    ),
    ({"metrics": {"rollups": [["country"]]}}, ["'country'", "['variant', 'surface']"]),
    (
        {"metrics": {"detailed": [["variant", "surface"]]}},
        ["metrics.detailed", "['variant', 'surface']", "[[], ['variant'], ['surface']]"],
    ),
    ({"dimensions": [{"name": "a"}, {"name": "a"}]}, ["['a', 'a']"]),
    ({"dimensions": [{"name": "Bad-name"}]}, ["'Bad-name'", "dimensions[0]"]),
    ({"dimensions": [{"name": "window"}]}, ["'window'", "dimensions[0]"]),
    ({"dimensions": [{"name": f"d{i}"} for i in range(33)]}, ["33", "32"]),
    ({"dimensions": [{"name": "a", "values": ["all"]}]}, ["'all'", "dimensions[0]"]),
    ({"dimensions": [{"name": "a", "values": ["unknown"]}]}, ["'unknown'", "dimensions[0]"]),
    ({"dimensions": [{"name": "a", "values": [""]}]}, ["''", "1 to 128", "dimensions[0]"]),
    ({"dimensions": [{"name": "a", "values": ["x" * 129]}]}, ["1 to 128", "dimensions[0]"]),
    ({"events": {"positions_from": 2}}, ["events.positions_from = 2", "0 or 1"]),
    ({"events": {"positions_from": -1}}, ["events.positions_from = -1", "0 or 1"]),
    *(
        ({"events": {"zone": zone}}, ["events.zone", repr(zone), "'Europe/Berlin'"])
        for zone in ("Mars/Olympus", "", "Europe", "../UTC", "/etc/localtime")
    ),
    ({"dimensions": [{"name": "a", "max_values": -1}]}, ["-1", "dimensions[0]"]),
    ({"limits": {"flush_ms": 0}}, ["limits.flush_ms", "0"]),
    ({"kafka": {"topics": {"clicks": "impressions"}}}, ["kafka.topics", "impressions"]),
]
"""Documents, and what the refusal of each says."""


def is_refused(document: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(SettingsError) as failed:
        parse(document, "streamer.toml")
    message = str(failed.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
    assert failed.value.exit_code == 2


def test_errors_name_the_place_and_the_values() -> None:
    hold_for_all(WRONG, lambda case: is_refused(*case), at_least=100)


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"families": ["traffic", "rankings"]}, "metrics.families: 'rankings'"),
        ({"hide": ["*_stderr", "ndgc*"]}, "metrics.hide: no metric is called 'ndgc"),
    ],
)
def test_names_of_metrics_are_known(metrics: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        Catalogue(parse({"metrics": metrics}))


def test_what_is_hidden_is_computed_and_not_shown() -> None:
    every = Catalogue(Settings())
    some = Catalogue(parse({"metrics": {"hide": ["*_stderr", "mrr"]}}))
    assert some.layout == every.layout
    gone = {m.name for m in every.metrics} - {m.name for m in some.metrics}
    assert gone >= {"mrr", "mrr_stderr", "ndcg_ratio_stderr"}
    assert all(name.endswith("_stderr") or name == "mrr" for name in gone)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing.toml"
    with pytest.raises(SettingsError, match=r"cannot read settings: .*; at .*missing.toml"):
        load(path)
    path.write_text("[kafka\n")
    with pytest.raises(SettingsError, match=r"not TOML: .*; at .*missing.toml"):
        load(path)
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(SettingsError, match="not TOML"):
        load(path)
    path.write_text('[kafka]\nbroker = "x"\n')
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        load(path)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"STREAMER_KAFKA__NOTHING": "x"}, "nothing"),
        ({"STREAMER_WINDOWS__LENGTHS": "[1m"}, "STREAMER_WINDOWS__LENGTHS"),
        ({"STREAMER_KAFKA__BROKERS__X": "1", "STREAMER_KAFKA__BROKERS": "y"}, "brokers"),
    ],
)
def test_errors_of_the_environment_name_the_variable(environ: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("[", r"\[")):
        load(None, environ)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("1ms", 1), ("90s", 90_000), ("5m", 300_000), ("24h", 86_400_000), ("7d", 604_800_000)],
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text, "here") == ms


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "5M", "1.5h", "0m", "-1m", "5m "])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(SettingsError, match="at here"):
        duration_ms(text, "here")


def test_panes_are_sixtieths_of_at_least_a_second() -> None:
    assert [pane_length_ms(ms) for ms in (7000, 60_000, 300_000, 86_400_000)] == [
        1000, 1000, 5000, 1_440_000,
    ]  # fmt: skip


def test_rollups_of_one_and_of_no_dimension() -> None:
    assert parse({"dimensions": []}).rollups == ((),)
    assert parse({"dimensions": [{"name": "a"}]}).rollups == ((), ("a",))
    only = parse({"dimensions": [{"name": "a"}], "metrics": {"rollups": [["a"]]}})
    assert only.detailed == ()


def test_detailed_rollups_name_dimensions_in_any_order() -> None:
    metrics = {"rollups": [["variant", "surface"]], "detailed": [["surface", "variant"]]}
    settings = parse({"metrics": metrics})
    assert settings.is_detailed(("variant", "surface"))
    assert not settings.is_detailed(("variant",))


def test_values_that_are_named_may_be_any_text() -> None:
    values = ["New York", "1.50", "Zürich 😀", 'a "b"\n\\c', "x" * 128]
    document = {"dimensions": [{"name": "a", "values": values}]}
    document |= experiment(dimension="a", control="New York", split=dict.fromkeys(values, 1))
    settings = parse(document)
    assert settings.dimensions[0].values == tuple(values)
    assert settings.experiments[0].arms[0] == "New York"
    assert parse({"events": {"positions_from": 0, "zone": "Europe/Berlin"}}).events.zone


def test_conversion_is_no_kind_of_the_clicks_topic_and_click_comes_first() -> None:
    s = parse({"metrics": {"feedback": {"like": 1, "conversion": 5, "click": 1}}})
    assert s.feedback_kinds == ("click", "like")
    assert parse({"metrics": {"feedback": {"like": 1}}}).feedback_kinds == ("click", "like")


@pytest.mark.parametrize(
    ("section", "key"), [("kafka", "check_crcs"), ("exporter", "series_warning")]
)
def test_settings_that_nobody_needed_are_refused_with_what_holds(section: str, key: str) -> None:
    with pytest.raises(SettingsError, match=f"{key}: .* always .* now; remove it; at {section}"):
        parse({section: {key: 1}})


def test_positions_that_people_see() -> None:
    settings = parse({"metrics": {"k": [8, 3], "visible": {"surface": {"phone": 2, "wall": 20}}}})
    assert settings.metrics.cutoffs == {"3": 3, "8": 8, "visible": -1}
    assert settings.metrics.most_visible == 20
    assert settings.kept_dimensions[1].values == ("phone", "wall")
    for wrong, said in (
        ({"surface": {"phone": 2}, "variant": {"a": 1}}, "one dimension"),
        ({"surface": {}}, "one dimension, with some"),
        ({"surface": {"phone": 0}}, "positions are 1 to 1000"),
        ({"surface": {"phone": 1001}}, "positions are 1 to 1000"),
        ({"platform": {"phone": 1}}, "metrics.visible names 'platform'"),
        ({"surface": {"all": 1}}, "bad value 'all'"),
    ):
        with pytest.raises(SettingsError, match=said):
            parse({"metrics": {"visible": wrong}})


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Settings().kafka.group = "x"  # type: ignore[misc]
    assert {f.name for f in msgspec.structs.fields(Settings)} >= {"kafka", "redis", "limits"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ctr", ["'ctr'", "ctr_ratio", "ndcg_ratio"]),
        ("ctr_ratio@5", ["did you mean 'ctr_ratio'?"]),
        ("ndcg_ratio", ["@k is one of metrics.k: 10"]),
        ("ndcg_ratio@7", ["@k is one of metrics.k"]),
        ("classifier_precision_ratio", ["@threshold is one of metrics.thresholds: 0.5"]),
        ("classifier_recall_ratio@0.7", ["@threshold is one of metrics.thresholds: 0.5"]),
        ("log_loss@0.5", ["did you mean 'log_loss'?"]),
        ("ips_ratio", ["@policy is one of policies: none"]),
        ("snips_ratio@old", ["@policy is one of policies"]),
        ("mrr@5", ["no cut-off"]),
        ("ndcg_ratio@10.trec", ["option 'trec'", "jurity"]),
        ("recall_ratio@10.all", ["option 'all'", "engaged"]),
        ("positive_rate_ratio.like", ["one kind", "click"]),
    ],
)
def test_metrics_of_experiments_that_there_are_not(name: str, said: list[str]) -> None:
    settings = parse(experiment(metrics=[{"name": name}]))
    with pytest.raises(SettingsError) as caught:
        Catalogue(settings)
    assert all(text in str(caught.value) for text in ["experiment 'e'", *said]), caught.value


def test_metrics_of_slates_need_their_family() -> None:
    document = experiment(metrics=[{"name": "mrr"}]) | {"metrics": {"families": ["traffic"]}}
    with pytest.raises(SettingsError, match=r"needs 'ranking' in metrics\.families"):
        Catalogue(parse(document))


def test_an_error_names_the_line_of_the_file_where_the_list_is_of_the_file(tmp_path: Path) -> None:
    path, wrong = tmp_path / "s.toml", '{ name = "A b" }'
    good, bad = '[[alerts]]\nname = "a"\n', '[[alerts]] # it is\nname = "A b"\n'
    for text, environ, end in (
        (f"{good}\n{bad}", {}, f"at alerts[1] ({path}, line 4)"),
        (f"alerts = [{wrong}]\n", {}, "at alerts[0]"),
        (good, {"STREAMER_ALERTS": f"[{wrong}]"}, "at alerts[0]"),
    ):
        path.write_text(text)
        with pytest.raises(SettingsError) as raised:
            load(path, environ)
        assert str(raised.value).endswith(end)
