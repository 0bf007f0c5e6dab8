"""``streamer.evaluate`` beside a slow recomputation and the live engine; and what it refuses."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from streamer.errors import SourceError, UsageError
from streamer.library.evaluation import Evaluation, evaluate
from streamer.metrics.evaluated import ITEM_METRICS, SLATE_METRICS
from streamer.settings.load import parse
from streamer.sources.replay import Replay
from tests.oracle import evaluation as oracle

K = 4
START_MS = 1_700_000_000_000
Rows = list[dict[str, Any]]


def duck(columns: Any) -> Any:
    """A relation of DuckDB."""
    return duckdb.from_arrow(pa.table(columns))


def table(rows: Rows) -> pa.Table:
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


def random_log(seed: int) -> tuple[Rows, Rows]:
    """Lists with ties, repeats, missing positions and scores, and clicks of all kinds, in the forms
    that tables have: with and without requests, grades, positions and scores. Some are long."""
    dice = Random(seed)
    rows, items = (9, 12) if seed % 4 else (90, 60)
    has_request, has_grade = dice.random() < 0.6, dice.random() < 0.6
    clicks_have_request = dice.random() < 0.7
    order = dice.choice(["position", "score", "both", "rows"])
    shown: Rows = []
    clicked: Rows = []
    for user in range(dice.randint(2, 30)):
        label = dice.choice(["A", "B", None]) if user else "A"
        for request in range(dice.randint(1, 3)):
            label = dice.choice(["A", "B", None]) if has_request else label
            for _ in range(dice.randint(1, rows)):
                row = {"user_id": user, "item_id": f"i{dice.randint(0, items)}", "arm": label}
                row |= {"request_id": str(request)} if has_request else {}
                if order in ("position", "both"):
                    row["position"] = dice.choice([None, *range(1, 8)])
                if order in ("score", "both"):
                    row["score"] = dice.choice([None, *(i / 4 for i in range(-4, 5))])
                shown.append(row)
            for _ in range(dice.choice([0, 1, 2, 6])):
                row = {"user_id": f"{user}", "item_id": f"i{dice.randint(0, items + 4)}"}
                row |= {"request_id": str(request)} if clicks_have_request else {}
                clicked.append(row | ({"grade": dice.choice([0, 1, 2, 3.5])} if has_grade else {}))
    clicked += [{**clicked[0], "user_id": "nobody"}]
    dice.shuffle(shown)
    return shown, clicked


@pytest.mark.parametrize("relevant", ["all", "shown"])
def test_values_are_those_of_a_slow_recomputation(relevant: Any) -> None:
    compared = 0
    for seed in range(60):
        shown, clicked = random_log(seed)
        asked = {
            name: of
            for name, of in oracle.values(K).items()
            if "score" in shown[0] or name not in ("gauc", "bpr")
        }
        found = evaluate(table(shown), table(clicked), list(asked), by="arm", relevant=relevant)
        lists = oracle.lists_of(shown, clicked, "arm", relevant == "all")
        assert (found.impressions, found.lists) == (len(shown), len(lists))
        assert found.clicks_without_list >= 1
        for number, label in enumerate(["all", *sorted({of.label for of in lists})]):
            some = [of for of in lists if label in ("all", of.label)]
            rows = found._rows[number * len(asked) : (number + 1) * len(asked)]
            for row, (value, over) in zip(rows, asked.values(), strict=True):
                expected = oracle.mean(some, value, over)
                assert row.labels["arm"] == label
                assert (row.support, row.users) == (expected.lists, expected.users)
                assert row.value == pytest.approx(expected.value, abs=2e-9), (seed, row)
                assert row.stderr == pytest.approx(expected.stderr, abs=1e-8), (seed, row)
                compared += row.value is not None
    assert compared > 3000


def test_the_first_thousand_items_of_a_list_count() -> None:
    order = list(range(1, 1101))
    Random(3).shuffle(order)
    shown = table([{"user_id": 1, "item_id": place, "position": place} for place in order])
    clicked = table([{"user_id": 1, "item_id": place} for place in (4, 1000, 1001)])
    found = evaluate(shown, clicked, ["recall", "mrr", "hit@3"])
    values_of = [found.value(name) for name in ("recall", "mrr", "hit@3")]
    assert values_of == [pytest.approx(2 / 3), 0.25, 0.0]
    of_shown = evaluate(shown, clicked, ["recall"], relevant="shown")
    assert of_shown.value("recall") == 1.0


def test_what_has_no_lists_has_no_value() -> None:
    shown = table([{"user_id": u, "item_id": "a"} for u in range(2)])
    found = evaluate(shown, table([{"user_id": 1, "item_id": "a"}]), ["kendall", "mrr"])
    (kendall, _) = found.to_dicts()
    assert (kendall["value"], kendall["support"]) == (None, 0)
    assert np.isnan(found.value("kendall"))
    assert (found[1]["value"], found[1]["low"], found[1]["users"]) == (1.0, None, 1)


def test_users_on_several_threads_add_up_as_one_by_one() -> None:
    dice = Random(5)
    shown = [{"user_id": u, "item_id": i, "arm": u % 3} for u in range(500) for i in range(5)]
    clicked = [{"user_id": u, "item_id": dice.randint(0, 6)} for u in range(500)]
    asked = ["ndcg@3", "mrr.all", "gini"]
    whole = evaluate(table(shown), table(clicked), asked, by="arm")
    backwards = evaluate(table(shown[::-1]), table(clicked), asked, by="arm", columns={})
    forwards = [(row.metric, row.labels, row.support, row.users) for row in whole._rows]
    assert [(r.metric, r.labels, r.support, r.users) for r in backwards._rows] == forwards
    parts = [
        evaluate(table([r for r in shown if r["arm"] == arm]), table(clicked), asked, by="arm")
        for arm in range(3)
    ]
    for number, part in enumerate(parts, 1):
        assert whole._rows[3 * number : 3 * number + 2] == part._rows[3:5]


def test_the_interval_is_that_of_students_t() -> None:
    shown = table([{"user_id": u, "item_id": i} for u in range(4) for i in "ab"])
    clicked = table([{"user_id": u, "item_id": "ab"[u % 2]} for u in range(4)])
    (row,) = evaluate(shown, clicked, ["mrr"], confidence=0.9)._rows
    assert row.value == 0.75
    assert row.stderr == pytest.approx(np.std([1, 0.5, 1, 0.5], ddof=1) / 2)
    assert row.low is not None
    assert row.value - row.low == pytest.approx(2.353363 * row.stderr, rel=1e-6)  # type: ignore[operator]


def test_intervals_stay_within_what_is_possible() -> None:
    shown = table([{"user_id": u, "item_id": i} for u in range(3) for i in "abc"])
    clicked = table([{"user_id": u, "item_id": "aac"[u]} for u in range(3)])
    found = evaluate(shown, clicked, ["recall@3", "hit@1", "kendall", "dcg@1", "dcg@3"])
    lows, highs = found["low"], found["high"]
    assert lows[:4] == [1.0, 0.0, -1.0, 0.0]
    assert highs[:2] == [1.0, 1.0]
    assert highs[3:] == pytest.approx([1.0, 5 / 6 + 4.302653 / 6])  # the latter may pass 1


# Beside the live engine -----------------------------------------------------------------------

GAINS = {"click": 1.0, "like": 2.0, "buy": 3.5}
CONVENTIONS = {"precision_ratio": ["shown"], "map_ratio": ["jurity", "primer"],
               "mar_ratio": ["jurity"], "ndcg_ratio": ["jurity", "exponential"],
               "kendall_tau": ["tau_b"]}  # fmt: skip


def as_events(shown: Rows, clicked: Rows) -> list[tuple[str, int, bytes]]:
    """A log of single impressions in row order, then of feedback."""
    kinds = {gain: kind for kind, gain in GAINS.items()}
    events = [("impressions", {"type": "impression"} | row) for row in shown]
    events += [
        ("clicks", {"type": "click", "feedback": kinds[row.get("grade", 1)]} | row)
        for row in clicked
    ]
    return [
        (kind, START_MS + i, json.dumps({"ts": START_MS + i, **event}).encode())
        for i, (kind, event) in enumerate(events)
    ]


def live(shown: Rows, clicked: Rows) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Readings by name and labels."""
    settings = {
        "dimensions": [{"name": "variant", "values": ["A", "B"]}],
        "windows": {"lengths": ["1h"]},
        "items": {"dimensions": ["variant"]},
        "metrics": {
            "k": [K, 1000],
            "feedback": GAINS,
            "families": ["ranking", "scoring", "coverage", "diversity"],
            "conventions": CONVENTIONS,
            "detailed": [[], ["variant"]],
        },
    }
    replay = Replay(parse(settings))
    replay.feed(as_events(shown, clicked))
    replay.finish()
    dropped = {"window", "maturity"}
    return {
        (
            r.name.removeprefix("streamer_"),
            frozenset((n, v) for n, v in r.labels.items() if n not in dropped),
        ): float(r.value)
        for r in replay.readout().readings
        if r.labels.get("maturity", "provisional") == "provisional"
    }


def live_log(dice: Random, has_grades: bool) -> tuple[Rows, Rows]:
    """Lists of a request each, whose positions are those of their distinct items."""
    shown: Rows = []
    clicked: Rows = []
    for user in range(80):
        for request in range(dice.randint(1, 2)):
            of = {"user_id": f"u{user}", "request_id": f"r{request}"}
            items = dice.sample(range(30), dice.randint(1, 8))
            places = dice.sample(range(1, len(items) + 1), len(items))
            variant = dice.choice("AB")
            for item, position in zip(items, places, strict=True):
                row = {"item_id": item, "position": position, "variant": variant}
                shown.append(of | row | {"score": round(dice.gauss(0, 1), 2)})
            for item in items:
                if dice.random() < 0.25:
                    grade = dice.choice([1, 2, 3.5]) if has_grades else 1
                    clicked.append(of | {"item_id": item, "grade": grade})
            clicked.append(of | {"item_id": 99, "grade": 1})
            repeated = dice.choice(shown[-len(items) :])
            shown.append(repeated | {"position": 9})
    return shown, clicked


def asked_names(has_grades: bool) -> list[str]:
    """All metrics and conventions of the live engine; without AUC, which is of clicks, where there
    is other feedback."""
    names = []
    for metric in SLATE_METRICS.values():
        cut = f"@{K}" if metric.by_k else ""
        for convention in ("", *CONVENTIONS.get(metric.name, ())):
            for over in metric.over or ("",):
                options = "".join(f".{option}" for option in (convention, over) if option)
                names.append(f"{metric.name}{cut}{options}")
    names += [f"{name}@{K}" for name in ("catalog_coverage_ratio", "inter_list_diversity_ratio")]
    names += [name for name in (*ITEM_METRICS, "ndcg_ratio") if name != "serendipity_ratio"]
    return [name for name in names if not (has_grades and name == "gauc_ratio")]


@pytest.mark.parametrize("has_grades", [False, True])
def test_values_are_those_of_the_live_engine_to_the_last_bit(has_grades: bool) -> None:
    shown, clicked = live_log(Random(f"live {has_grades}"), has_grades)
    asked = asked_names(has_grades)
    found = evaluate(table(shown), table(clicked), asked, by="variant", relevant="shown")
    readings = live(shown, clicked)
    compared = 0
    for row in found._rows:
        labels = dict(row.labels)
        if labels.get("k") == "all" and row.metric != "catalog_coverage_ratio":
            labels["k"] = "1000"
        expected = readings[row.metric, frozenset(labels.items())]
        is_of_floats = row.metric in ("novelty_ratio", "inter_list_diversity_ratio")
        assert row.value == (pytest.approx(expected, rel=1e-14) if is_of_floats else expected), row
        compared += 1
    assert compared == 3 * len(asked) > 100


def test_errors_are_those_of_the_live_engine_where_users_have_one_list() -> None:
    shown, clicked = live_log(Random("errors"), True)
    shown = [row for row in shown if row["request_id"] == "r0"]
    clicked = [row for row in clicked if row["request_id"] == "r0"]
    asked = ["ndcg@4", "dcg@4", "mrr.all", "bpr", "kendall"]
    found = evaluate(table(shown), table(clicked), asked, relevant="shown")
    readings = live(shown, clicked)
    for row in found._rows:
        labels = frozenset((row.labels | {"variant": "all"}).items())  # type: ignore[operator]
        assert row.stderr == pytest.approx(readings[f"{row.metric}_stderr", labels], rel=1e-9)


# Tables ---------------------------------------------------------------------------------------

SHOWN: dict[str, list[Any]] = {
    "user_id": [1, 1, 1, 2, 2, 3],
    "item_id": ["a", "b", "c", "b", "a", "a"],
    "score": [3.0, 2.0, 1.0, 9.0, 8.0, 1.0],
}
CLICKED: dict[str, list[Any]] = {"user_id": ["1", "1", "2"], "item_id": ["b", "z", "b"]}
ASKED = ["ndcg@10", "recall@2", "hit@1.all", "gauc", "coverage@1", "gini"]


def values(found: Evaluation) -> list[float | None]:
    return [row.value for row in found._rows]


EXPECTED = values(evaluate(pa.table(SHOWN), pa.table(CLICKED), ASKED))


def chunked(columns: dict[str, list[Any]]) -> pa.Table:
    rows = pa.table(columns)
    return pa.concat_tables([rows.slice(0, 2), rows.slice(2)])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame,
        chunked,
        lambda columns: pa.table(columns).to_reader(max_chunksize=1),
        lambda columns: pd.DataFrame(columns).astype({"item_id": "category"}),
        lambda columns: pa.table(columns).cast(
            pa.schema([(n, pa.float32() if n == "score" else pa.large_string()) for n in columns])
        ),
        lambda columns: pa.table(columns).set_column(
            1, "item_id", pa.array(columns["item_id"], pa.string_view())
        ),
    ],
)
def test_tables_of_all_kinds_are_read_alike(frame: Any) -> None:
    assert values(evaluate(frame(SHOWN), frame(CLICKED), ASKED)) == EXPECTED


@pytest.mark.parametrize("frame", [polars.DataFrame, duck])
def test_tables_of_other_libraries_are_read_alike(frame: Any) -> None:
    assert values(evaluate(frame(SHOWN), frame(CLICKED), ASKED)) == EXPECTED


def test_columns_may_have_other_names() -> None:
    shown = pa.table({"who": SHOWN["user_id"], "sku": SHOWN["item_id"], "p": SHOWN["score"]})
    clicked = pa.table({"who": CLICKED["user_id"], "sku": CLICKED["item_id"]})
    names = {"user_id": "who", "item_id": "sku", "score": "p"}
    assert values(evaluate(shown, clicked, ASKED, columns=names)) == EXPECTED


def test_optional_columns_may_be_left_out() -> None:
    shown = pa.table(SHOWN | {"position": [3, 2, 1, 1, 2, 1]})
    by_score = evaluate(shown, pa.table(CLICKED), ["mrr"], columns={"position": None})
    assert by_score.value("mrr") == evaluate(pa.table(SHOWN), pa.table(CLICKED), ["mrr"]).value(
        "mrr"
    )


def test_an_evaluation_is_a_table() -> None:
    found = evaluate(pa.table(SHOWN), pa.table(CLICKED), ["mrr", "gini"])
    ends = ["value", "low", "high", "stderr", "support", "users"]
    assert found.columns == ["metric", "over", *ends]
    assert found["metric"] == ["mrr", "exposure_gini"]
    assert found["over"] == ["engaged", None]
    assert found[1]["low"] is None
    assert found.value("mrr") == found.to_pandas()["value"][0] == 0.75
    assert (found.impressions, found.lists, found.users, found.clicks) == (6, 3, 3, 3)
    with pytest.raises(UsageError, match="'ndcg' was not asked for: there are mrr, gini"):
        found.value("ndcg")


# What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"metrics": ["ndgc@10"]}, "did you mean 'ndcg'?"),
        ({"metrics": ["xyz"]}, "there are precision, recall, hit"),
        ({"metrics": ["precision"]}, "needs a cut-off: precision@10"),
        ({"metrics": ["ndcg@0"]}, "a whole number from 1 to 1000"),
        ({"metrics": ["ndcg@1001"]}, "a whole number from 1 to 1000"),
        ({"metrics": ["kendall@5"]}, "kendall_tau has no cut-off: leave out @5"),
        ({"metrics": ["ndcg@5.primer"]}, "it has all, engaged, jurity, exponential"),
        ({"metrics": ["gini.all"]}, "has no options"),
        ({"metrics": []}, "none is named"),
        ({"metrics": ["mrr", "mrr"]}, "mrr: name each once"),
        ({"over": "some"}, "over = 'some': 'engaged' or 'all'"),
        ({"relevant": "some"}, "relevant = 'some': 'all' or 'shown'"),
        ({"by": ["k"]}, "none called metric, k"),
        ({"by": ["value"]}, "none called metric, k"),
        ({"by": ["score", "score"]}, "each once"),
        ({"columns": {"sku": "item_id"}}, "'sku' is no column"),
        ({"columns": {"user_id": None}}, "user_id cannot be left out"),
        ({"catalog_size": 0}, "at least 1"),
        ({"confidence": 95}, "between 0 and 1"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        evaluate(pa.table(SHOWN), pa.table(CLICKED), **arguments)


@pytest.mark.parametrize(
    ("shown", "clicked", "said"),
    [
        ({"item_id": [1]}, {}, 'impressions: no column "user_id"; it has item_id'),
        ({}, {"user_id": [1]}, 'clicks: no column "item_id"; it has user_id'),
        ({"user_id": [1, None], "item_id": [1, 2]}, {}, '"user_id" in row 1 .* is missing'),
        ({"user_id": [1, 2], "item_id": ["", "a"]}, {}, '"item_id" in row 0 .* is missing'),
        ({"user_id": [1.0], "item_id": [1]}, {}, '"user_id" has the type .*: cast it'),
        ({"user_id": [1], "item_id": [1], "score": ["x"]}, {}, '"score" has the type .*: cast it'),
        ({"user_id": [1], "item_id": [1], "score": [1e9]}, {}, "is 1000000000; a score is at most"),
        ({"user_id": [1], "item_id": [1]}, {}, "no column of scores"),
        ({"user_id": pa.array([], "i8"), "item_id": pa.array([], "i8")}, {}, "no rows"),
        ({}, {"user_id": pa.array([], "i8"), "item_id": pa.array([], "i8")}, "no rows"),
        ({}, {"user_id": ["x"], "item_id": ["a"]}, "none of the 1 row .*: user_id is 'x' in "),
        ({}, {"user_id": [1], "item_id": ["a"], "grade": [-1]}, '"grade" in row 0 .* is -1'),
        ({}, {"user_id": [1], "item_id": ["a"], "grade": [None]}, '"grade" has the type Null'),
        ({}, {"user_id": [1], "item_id": ["a"], "grade": [5000]}, "at most 1000: scale grades"),
        ({}, {"user_id": [1] * 18, "item_id": [*range(18)], "grade": [*range(1, 19)]},
         "more than 17 different grades above 0: round them"),
    ],
)  # fmt: skip
def test_tables_that_are_refused(
    shown: dict[str, list[Any]], clicked: dict[str, list[Any]], said: str
) -> None:
    asked = ["gauc"] if "score" in said else ["mrr"]
    with pytest.raises(SourceError, match=said):
        evaluate(pa.table(shown or SHOWN), pa.table(clicked or CLICKED), asked)


def test_models_that_are_stacked_have_lists_of_their_own() -> None:
    shown = {
        "user_id": [1] * 4 + [2] * 4,
        "item_id": [1, 2, 3, 4] * 2,
        "model": ["A", "A", "B", "B"] * 2,
        "score": [0.9, 0.8, 0.9, 0.8] * 2,
    }
    clicked = pa.table({"user_id": [1, 2], "item_id": [4, 4]})
    with pytest.raises(SourceError, match="a list has the values 'A' and 'B' of 'model'"):
        evaluate(pa.table(shown), clicked, ["hit@2"], by="model")
    columns = {"request_id": "model"}
    found = evaluate(pa.table(shown), clicked, ["hit@2", "mrr"], by="model", columns=columns)
    assert [row["value"] for row in found if row["model"] == "B"] == [1.0, 0.5]
    assert [row["value"] for row in found if row["model"] == "A"] == [0.0, 0.0]


def test_no_value_of_by_may_stand_for_all_lists() -> None:
    shown = table(
        [{"user_id": u, "item_id": "a", "arm": arm} for u, arm in enumerate(["all", "B"])]
    )
    with pytest.raises(SourceError, match="'arm' has the value 'all', which stands for all lists"):
        evaluate(shown, table([{"user_id": 1, "item_id": "a"}]), ["mrr"], by="arm")


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(SourceError, match="clicks: list is no table: pass a data frame"):
        evaluate(pa.table(SHOWN), [], ["mrr"])  # type: ignore[arg-type]
    mixed = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", 2]})
    with pytest.raises(SourceError, match="item_id"):
        evaluate(mixed, pa.table(CLICKED), ["mrr"])


def test_by_must_not_have_too_many_values() -> None:
    many = pa.table({"user_id": range(10_001), "item_id": ["a"] * 10_001, "x": range(10_001)})
    clicked = pa.table({"user_id": [1], "item_id": ["a"]})
    with pytest.raises(SourceError, match="by: x have more than 10000 values"):
        evaluate(many, clicked, ["mrr"], by="x")
    with pytest.raises(SourceError, match="user_id, item_id, x: name it"):
        evaluate(many, clicked, ["mrr"], by="y")


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame, pa.table, duck])
@pytest.mark.parametrize(
    ("users", "items", "said"),
    [
        (["1", "2"], ["10.0", "11.0"], "item_id is spelled differently .*'10.0' in .*'10' in"),
        (["1", "2"], ["10", "11.0"], "item_id is spelled differently .*'11.0' in .*'11' in"),
        (["1", "2"], ["A-1 ", "10"], "item_id is spelled differently .*'A-1 ' in .*'a-1' in"),
        (["1", "2.0"], ["10", "11"], "user_id is spelled differently .*'2.0' in .*'2' in"),
        (["1", "2"], ["20", "21"], "no item .*: item_id is '20' in clicks, '10' in impressions"),
    ],
)
def test_ids_that_match_nothing_are_told(
    frame: Any, users: list[str], items: list[str], said: str
) -> None:
    shown = frame({"user_id": [1, 1, 1, 2, 2], "item_id": ["10", "11", "a-1", "11", "10"]})
    clicked = frame({"user_id": users, "item_id": items})
    with pytest.warns(UserWarning, match=said):
        evaluate(shown, clicked, "hit@2")


def test_ids_that_match_are_not_told() -> None:
    """No warning: a few ids that differ in case, users who were shown nothing, grades of 0."""
    shown = pd.DataFrame({"user_id": range(100), "item_id": [f"i{i}" for i in range(100)]})
    items = ["I1", *(f"i{i}" for i in range(1, 100))]
    evaluate(shown, pd.DataFrame({"user_id": range(100), "item_id": items}), "mrr")
    few = pd.DataFrame({"user_id": [5, 900], "item_id": ["i5", "i5"]})
    assert evaluate(shown, few, "mrr").clicks_without_list == 1
    evaluate(shown, few.assign(grade=0), "mrr")


def test_streams_that_are_read_once_are_told_without_an_example() -> None:
    shown = pa.table({"user_id": [1], "item_id": ["a"]}).to_reader()
    clicked = pa.table({"user_id": [1], "item_id": ["b"]}).to_reader()
    with pytest.warns(UserWarning, match="no item of clicks is in a list, so nothing is hit$"):
        evaluate(shown, clicked, "mrr")
