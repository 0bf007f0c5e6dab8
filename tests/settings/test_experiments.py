"""What settings say of experiments."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.settings.load import parse
from tests.support.visitors import experiment


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
