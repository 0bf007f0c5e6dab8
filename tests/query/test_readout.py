"""The sentences of a readout, which are made once."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from streamer.query.experiments import Data
from streamer.query.readout import Readout, readout_of
from streamer.stats.experiments.srm import Split
from tests.query.test_experiments import book_of
from tests.support import assigned

STORED = book_of([(day, 10 * day + u, "AB"[u % 2]) for day in range(2) for u in range(10)])
READOUT = STORED.read()
JUNE = datetime.date(2025, 6, 2)


def of_experiment(**changes: Any) -> Any:
    return replace(READOUT, experiment=msgspec.structs.replace(READOUT.experiment, **changes))


@pytest.mark.parametrize(
    ("readout", "when"),
    [
        (replace(READOUT, last=None), "starts on 2025-06-02"),
        (READOUT, "2025-06-02 to 2025-06-03, 24 hours of data"),
        (replace(READOUT, data=None), "2025-06-02 to 2025-06-03, no user yet"),
        (
            replace(of_experiment(end=JUNE + datetime.timedelta(days=1)), data=Data(0, 2**31, 24)),
            "2025-06-02 to 2025-06-03, 24 days of data",
        ),
        (
            of_experiment(end=datetime.date(2025, 6, 30)),
            "2025-06-02 to 2025-06-03, 24 hours of data, planned until 2025-06-30",
        ),
    ],
)
def test_who_is_compared_when(readout: Any, when: str) -> None:
    found = readout_of(STORED, readout)
    assert found.who == "B against A (variant)"
    assert found.when == when


@pytest.mark.parametrize(
    ("users", "is_wrong", "words"),
    [
        (
            {"A": 30, "B": 10},
            True,
            "Users are not split as planned (A 75.0%, planned 50.0%; B 25.0%, planned 50.0%;"
            " p = 0.25 at any look, p = 0.13 at one look). Assignment or logging is broken for one"
            " arm, so the arms cannot be compared. One in a hundred sound experiments would look"
            " like this.",
        ),
        (
            {"A": 0, "B": 0},
            False,
            "No user was in an arm yet (A, B).",
        ),
    ],
)
def test_the_split(users: dict[str, int], is_wrong: bool, words: str) -> None:
    (metric,) = READOUT.metrics
    split = replace(metric.found.split, users=users, p_value=0.25, p_value_fixed=0.125)
    split = replace(split, is_wrong=is_wrong)
    assert isinstance(split, Split)
    changed = replace(metric, found=replace(metric.found, split=split))
    found = readout_of(STORED, replace(READOUT, metrics=[changed]))
    assert [note.text for note in found.notes if note.kind == "split"] == [words]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, "higher is better"),
        (
            {"margin": 0.05, "direction": "lower"},
            "lower is better, may rise by up to 5%",
        ),
        (
            {"role": "guardrail", "margin_absolute": 0.25},
            "higher is better, may fall by up to 25 points",
        ),
    ],
)
def test_the_rule_of_a_metric(changes: dict[str, Any], rule: str) -> None:
    metrics = [replace(metric, **changes) for metric in READOUT.metrics]
    assert readout_of(STORED, replace(READOUT, metrics=metrics)).metrics[0].rule == rule


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (0, "delta method gives variances. Percentages"),
        (1, "variances, and the day before the start reduces them (CUPED). Percentages"),
        (3, "variances, and the 3 days before the start reduce them (CUPED). Percentages"),
    ],
)
def test_the_method(days: int, words: str) -> None:
    method = readout_of(STORED, of_experiment(covariate_days=days)).method
    assert words in method
    assert "at level 95%" in method


def test_its_json_is_all_of_it() -> None:
    found = assigned.readout_of(users=60)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Readout) == found
    assert msgspec.convert(msgspec.to_builtins(found), Readout) == found
