"""Retrieval tests beside the formulas of Gorse's evaluation page, restated on the same slates."""

from __future__ import annotations

from math import log2
from statistics import fmean

import msgspec
import pytest

from streamer.settings.load import parse
from streamer.sources.open_bandit import RETRIEVAL_TEST, retrieval_tests
from streamer.sources.replay import Replay

K = 10


def hit_rate(wanted: set[str], ranked: list[str]) -> float:
    """HR: whether any item that is wanted was recommended."""
    return float(any(item in wanted for item in ranked))


def ndcg(wanted: set[str], ranked: list[str]) -> float:
    """NDCG, whose ideal list has every item that is wanted first."""
    ideal = sum(1 / log2(place + 2) for place in range(min(len(wanted), len(ranked))))
    gained = sum(1 / log2(place + 2) for place, item in enumerate(ranked) if item in wanted)
    return gained / ideal


def recall(found: list[str], exact: list[str]) -> float:
    """Of an index: the share of the exact nearest items that it finds."""
    return len(set(found) & set(exact)) / len(exact)


def test_retrieval_tests_are_those_of_gorse() -> None:
    slates = retrieval_tests()
    assert len(slates) > 10
    replay = Replay(parse({"windows": {"lengths": ["31d"]}, "metrics": {"k": [K]}}))
    encode = msgspec.json.Encoder().encode
    replay.feed([("impressions", event["ts"], encode(event)) for event in slates])
    replay.finish()
    found = {
        r.name.removeprefix("streamer_"): r.value
        for r in replay.readout().readings
        if r.labels.get("variant") in ("all", RETRIEVAL_TEST)
        and r.labels.get("surface") == "all"
        and r.labels.get("k", str(K)) == str(K)
    }
    lists = [[item["item_id"] for item in event["items"]][:K] for event in slates]
    wanted = [{event["held_out"]} for event in slates]
    exact = [event["reference"][:K] for event in slates]
    expected = {
        "hit_sampled_ratio": fmean(map(hit_rate, wanted, lists)),
        "ndcg_sampled_ratio": fmean(map(ndcg, wanted, lists)),
        "index_recall_ratio": fmean(map(recall, lists, exact)),
    }
    assert 0 < min(expected.values()) < max(expected.values()) < 1
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6), name
