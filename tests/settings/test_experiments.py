"""What settings say of experiments."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.settings.load import parse
from tests.support.visitors import FIRST, experiment


def document(**more: Any) -> dict[str, Any]:
    """Settings with one experiment."""
    return {"experiments": [experiment(**more)]}


@pytest.mark.parametrize(
    ("metrics", "roles"),
    [
        ([{}, {}, {}], ["primary", "secondary", "secondary"]),
        ([{"margin": 0.1}, {}, {}], ["guardrail", "primary", "secondary"]),
        ([{"margin_absolute": 2.0}, {}, {}], ["guardrail", "primary", "secondary"]),
        ([{}, {"margin": 0.1}, {"primary": True}], ["secondary", "guardrail", "primary"]),
        ([{"margin": 0.1}, {"margin": 0.1}], ["primary", "guardrail"]),
    ],
)
def test_roles_of_metrics(metrics: list[dict[str, Any]], roles: list[str]) -> None:
    names = ("ctr_ratio", "cvr_ratio", "clicks_per_user")
    tables = [{"name": name, **rest} for name, rest in zip(names, metrics, strict=False)]
    (found,) = parse(document(metrics=tables)).experiments
    assert [found.role_of(metric) for metric in found.metrics] == roles


def test_arms_are_values_that_are_always_counted() -> None:
    settings = parse(document() | {"dimensions": [{"name": "variant", "values": ["B", "X"]}]})
    assert [d.values for d in settings.kept_dimensions] == [("B", "X", "A")]
    assert [d.values for d in settings.dimensions] == [("B", "X")]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"title": "x" * 301}, "title of 301 characters: at most 300, in one line"),
        ({"owner": "a\nb"}, "owner of 3 characters: at most 300, in one line"),
        ({"url": "javascript:alert(1)"}, "an address that begins with https://"),
    ],
)
def test_what_pages_may_not_say_of_an_experiment(words: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        parse(document(**words))


def by_store(**more: Any) -> dict[str, Any]:
    """Settings with an experiment of stores."""
    arms = {"arm": "ranker", "control": "A", "split": {"A": 1, "B": 1}}
    return {"experiments": [{"name": "prices", **arms, "start": FIRST, "unit": "store", **more}]}


def switchback(of: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Settings with an experiment whose arms take turns."""
    turns = {"by": "region", "slot": "1h", "schedule": {"*": ["A", "B"]}, **of}
    arms = {"control": "A", "split": {"A": 1, "B": 1}, "switchback": turns}
    return {"experiments": [{"name": "surge", **arms, "start": FIRST, **more}]}


def test_units_are_fields_whose_values_are_kept() -> None:
    both = {"experiments": by_store()["experiments"] + switchback({})["experiments"]}
    settings = parse(both)
    assert settings.unit_fields == ("store", "region")
    assert settings.kept_fields == (*settings.dimension_names, "store", "region")
    of_dimension = parse(by_store(unit="surface"))
    assert of_dimension.unit_fields == ()
    assert parse(switchback({"by": "", "schedule": ["A", "B"]})).unit_fields == ()


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (by_store(unit="item_id"), "'item_id' is a field of events with a meaning of its own"),
        (by_store(unit="a b"), "'a b'"),
        (by_store(layer="search"), "layers and holdouts are of users; remove it"),
        (by_store(holdout=True), "layers and holdouts are of users; remove it"),
        (by_store(explore=["surface"]), "only users are told apart by dimensions; remove it"),
        (
            by_store(arm=(), dimension="variant", outcomes="attributed"),
            "outcomes with another unit than the user: events count for their unit",
        ),
        (switchback({}, unit="store"), "name 'store' as switchback.by"),
        (switchback({}, arm="ranker"), "the schedule says the arm of a switchback; remove it"),
        (switchback({}, covariate_days=7), "slots have no days before it; remove it"),
        (switchback({"slot": "7h"}), "slot = '7h': a minute to a day, and a whole number of them"),
        (switchback({"slot": "30s"}), "slot = '30s': a minute to a day"),
        (switchback({"washout": "1h"}), "washout = '1h': shorter than slot = '1h'"),
        (switchback({"schedule": []}), "schedule: say the arms of the slots"),
        (switchback({"by": ""}), "a list, as there is no `by` whose values it could name"),
        (switchback({"schedule": ["A", "C"]}), "schedule of '*': 'C': arms are ['A', 'B']"),
        (switchback({"schedule": ["A", "A"]}), "schedule of '*' with 2 slots: 2 to 10000, of"),
        (
            switchback({"schedule": ["A", "B", "B"]}),
            "the schedule gives the arms other shares of the slots: write "
            "split = { A = 0.333, B = 0.667 }",
        ),
    ],
)
def test_what_units_and_switchbacks_may_not_be(document: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse(document)
    assert why in str(raised.value)
    assert "at experiments[0]" in str(raised.value)
