"""Settings of composites and of the day before: what is refused, and in which words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import load, parse

CTR = {"metric": "ctr_ratio"}
CVR = {"metric": "cvr_ratio"}
KEPT = {"windows": {"lengths": ["7m", "10m", "1h", "24h"], "day_before": ["1h"]}}


def of(*parts: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """A document with one composite."""
    return {"composites": [{"name": "health", "parts": list(parts)}], **settings}


def kept(*lengths: str) -> dict[str, Any]:
    return {"windows": {**KEPT["windows"], "day_before": list(lengths)}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"composites": [{"name": "a b", "parts": [CTR, CVR]}]}, ["'a b'", "at composites[0]"]),
        (
            {"composites": [{"name": "a", "parts": [CTR, CVR]}] * 2},
            ["'a'", "a different name for each of the composites"],
        ),
        ({"composites": [{"name": f"c{i}", "parts": [CTR, CVR]} for i in range(17)]}, ["17", "16"]),
        ({"metrics": {"families": ["composites"]}}, ["'composites' needs [[composites]]"]),
        (of(CTR), ["1 parts: 2 to 6", "at composites[0]"]),
        (of(*[{"metric": f"m{i}"} for i in range(7)]), ["7 parts: 2 to 6"]),
        (of(CTR, CTR), ["a part stands twice", "add up its weights"]),
        (of(CTR, {"metric": "composite@health"}), ["'composite@health'", "parts[1]"]),
        (of(CTR, CVR | {"weight": 0.0}), ["weight = 0.0", "other than 0", "parts[1]"]),
        (of(CTR, CVR | {"weight": float("inf")}), ["weight = inf"]),
        (of(CTR, CVR | {"against": "week"}), ["'week'", "value, target, day_before"]),
        (of(CTR, CVR | {"against": "target"}), ["target = None", "needs a target"]),
        (of(CTR, CVR | {"target": 0.1}), ["target = 0.1 and against = 'value'"]),
        (of(CTR, CVR | {"against": "target", "target": 0.0}), ["target = 0.0: above 0"]),
        (of(CTR, CVR | {"against": "day_before"}), ["needs windows.day_before", "parts[1]"]),
        (kept("2h"), ["'2h'", "none of windows.lengths"]),
        (kept("1h", "1h"), ["each once"]),
        (kept("7m"), ["'7m' has panes of 7000 ms", "divide a day evenly"]),
        (kept("10m", "1h"), ["10200 panes", "at most 10000", "longer windows"]),
    ],
)
def test_what_cannot_be_is_refused(document: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(document)
    for text in said:
        assert text in str(refused.value)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"metric": "ctr"}, "at composites[0].parts[1], metric 'ctr': no such metric: "),
        ({"metric": "clicks_per_user"}, "by users, and windows have no such ratio"),
        ({"metric": "positive_rate_ratio"}, "by users, and windows have no such ratio"),
        ({"metric": "log_loss"}, "its family is not in metrics.families"),
        ({"metric": "classifier_recall_ratio@0.3"}, "@threshold is one of"),
        ({"metric": "ndcg_ratio@10.jurity"}, "name the convention in metrics.conventions"),
        ({"metric": "ndcg_ratio@3"}, "@k is one of metrics.k"),
    ],
)
def test_parts_are_metrics_of_windows(part: dict[str, Any], said: str) -> None:
    settings = parse(of(CTR, part))
    with pytest.raises(SettingsError, match=re.escape(said)):
        Catalogue(settings)


def test_what_is_not_asked_for_is_not_kept() -> None:
    for document in ({}, of(CTR, CVR), KEPT, of(CTR, CVR, **KEPT)):
        found = Catalogue(parse(document)).day_before
        assert (found.rings, found.spans) == ({}, ())
    against = CVR | {"against": "day_before"}
    found = Catalogue(parse(of(CTR, against, **KEPT))).day_before
    assert [(ring.label, ring.panes) for ring in found.rings.values()] == [("1h", 1500)]
    catalogue = Catalogue(parse(of(CTR, against, **KEPT)))
    width = sum(stop - first for first, stop in catalogue.day_before.spans)
    assert width == 1 + catalogue.layout.width["clicks"] + 2 * 16


def test_the_environment_sets_composites() -> None:
    parts = '[{ metric = "ctr_ratio" }, { metric = "cvr_ratio", weight = -3 }]'
    environ = {"STREAMER_COMPOSITES": f'[{{ name = "x", parts = {parts} }}]'}
    assert load(None, environ).composites[0].shares == (0.25, -0.75)
