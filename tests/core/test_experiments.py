"""Experiments in the core have the oracle's sums, whatever is refreshed when."""

from __future__ import annotations

from itertools import chain, pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from streamer.settings.durations import DAY_MS
from streamer.stats.experiments.caps import EDGES
from tests.core.experiments import (
    ALL_EPOCHS,
    DAY,
    EXPERIMENTS,
    LATENESS_MS,
    PEOPLE,
    T0,
    TABLES,
    TEXTS,
    VALUE_PER_CLICK,
    VALUE_PER_USER,
    Both,
    columns,
    experiment,
    step,
)
from tests.support.lanes import shortened

PACES = (60_000, 2_000_000, 8_000_000)


@pytest.mark.parametrize("people", shortened([300, 1, 12]))
@pytest.mark.parametrize("share", shortened([0.005, 0.05]))
def test_sums_are_those_of_the_oracle(people: int, share: float) -> None:
    random = np.random.default_rng([people, int(1000 * share)])
    both = Both()
    for _ in range(500):
        step(both, random, people, int(random.choice(PACES)), 10**15)
        if random.random() < share:
            both.refresh()
            both.check()
    both.refresh()
    both.check()
    both.check_ranges()
    if people > 1:
        assert all(both.core.sums(i) for i in range(len(EXPERIMENTS)))
        assert "limb_2" in columns(both.core.sums(0))


def test_values_may_be_as_large_as_sums_are() -> None:
    metrics = ("ctr_ratio", ("clicks_per_user", 2), VALUE_PER_CLICK, VALUE_PER_USER)
    both, random = Both(experiments=[experiment("long", "A B", 0, 6, *metrics)]), Random(3)
    both.add(PEOPLE[0], T0, ("A", "home"), {"impressions": 1})
    huge = 1 << 55
    for i in range(200):
        user, texts = PEOPLE[i % 5], ("A", "home") if i % 5 else ("B", "feed")
        event_ms = T0 + i * DAY_MS // 40 + i
        value = (huge - i << 32) - huge * (i % 2 or -1)
        both.add(user, event_ms, texts, {"impressions": 1, "clicks": huge + i, "value": value})
        both.add(user, event_ms, texts, {"clicks": -huge, "value": -(huge << 32) * (i % 4 > 0)})
        if random.random() < 0.1:
            both.refresh()
            both.check()
    both.refresh()
    both.check()
    both.check_ranges()
    assert "limb_4" in columns(both.core.sums(0))


def test_a_sum_that_passes_its_bound_is_an_error() -> None:
    both = Both()
    both.put(PEOPLE[0], T0, ("A", "home"), "clicks", 1 << 62)
    with pytest.raises(OverflowError):
        both.put(PEOPLE[0], T0, ("A", "home"), "clicks", 1)
    both.put(PEOPLE[0], T0, ("A", "home"), "clicks", -1)
    with pytest.raises(OverflowError):
        both.put(PEOPLE[0], T0 + 1, ("A", "home"), "clicks", (1 << 62) + 1)


def test_settled_rows_that_meet_may_not_pass_it_either() -> None:
    both = Both(experiments=EXPERIMENTS[:1])
    for i in range(2):
        both.put(PEOPLE[0], T0 + i, ("A", "home"), "clicks", 3 << 60)
    with pytest.raises(OverflowError):
        both.core.refresh(T0 + 5)


@pytest.mark.parametrize("seed", shortened([0, 1, 2]))
def test_folds_move_what_users_contribute(seed: int) -> None:
    random = np.random.default_rng(seed)
    both = Both(max_values=4)
    kept = set()
    for i in range(600):
        step(both, random, 30, int(random.choice(PACES[:2])), 10**9)
        if random.random() < 0.02:
            both.segment((f"v{i}", f"s{i}"))
        kept.add(tuple(both.core.kept(0)))
        if random.random() < 0.02:
            both.refresh()
            both.check()
    both.refresh()
    both.check()
    both.check_ranges()
    assert len(kept) > 3


@pytest.mark.parametrize("seed", shortened([0, 1]))
def test_beyond_the_limit_the_same_users_stay(seed: int) -> None:
    random = np.random.default_rng(seed)
    both = Both(limit=200)
    for i in range(1500):
        step(both, random, 400, int(random.choice(PACES[:2])), 10**9)
        if i % 20 == 19:
            if both.core.shrink():
                both.refresh()
            assert both.core.state()[0] <= 200
            if random.random() < 0.1:
                both.refresh()
                both.check()
    both.refresh()
    both.check()
    assert both.core.state()[1] > 0


def test_rows_are_settled_when_time_moves_on() -> None:
    both = Both()
    for i in range(50):
        both.add(PEOPLE[i], T0 + 1000 * i, ("", "home"), {"clicks": 1, "outcomes": 1})
    both.refresh()
    assert len(both.core.changed("user_pending", *ALL_EPOCHS)["user"]) == 50
    final_ms = both.core.final_ms()
    both.core.refresh(final_ms + 59_999)
    assert both.core.final_ms() == final_ms
    both.clock_ms = T0 + LATENESS_MS + 30_000
    both.refresh()
    assert 0 < len(both.core.changed("user_pending", *ALL_EPOCHS)["user"]) < 50
    both.clock_ms = T0 + LATENESS_MS + DAY_MS
    both.refresh()
    both.check()
    assert not both.core.changed("user_pending", *ALL_EPOCHS)["user"]


def test_only_experiments_whose_sums_changed_are_written() -> None:
    both = Both()
    both.add(PEOPLE[0], T0 + 3 * DAY_MS, ("A", "home"), {"impressions": 1})
    assert both.core.take_changed() == []
    before = both.core.sums(0)
    both.refresh()
    assert both.core.sums(0) != before
    assert both.core.take_changed() == [0, 2, 3, 4, 5]
    both.refresh()
    assert both.core.take_changed() == []
    both.add(PEOPLE[0], T0 + 4 * DAY_MS, ("", "y"), {"clicks": 1})
    before = both.core.sums(0)
    assert both.core.flags() == (True, False, False)
    assert both.core.sums(0) == before
    both.add(PEOPLE[0], T0 + 4 * DAY_MS, ("", "y"), {"clicks": -1})
    both.refresh()
    assert 1 not in both.core.take_changed()
    both.check()
    both.add(PEOPLE[0], T0 - 50 * DAY_MS, ("A", "home"), {"impressions": 1})
    assert both.core.flags() == (False, False, False)


def test_quantiles_lie_in_buckets() -> None:
    random = np.random.default_rng(0)
    some = random.choice(EDGES[:-90], 120)
    both = Both()
    for i, value in enumerate([*some, *(some[:90] + 1), *(some[:90] - 1), 0]):
        amounts = {"impressions": 1, "value": int(value), "outcomes": 1}
        both.add(PEOPLE[i], T0 + i, ("A", "home"), amounts)
        if i % 20 == 0:
            both.refresh()
            both.check()


# Stored form -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shortened([0, 1]))
def test_loaded_rows_give_the_same_sums(seed: int) -> None:
    random = np.random.default_rng(seed)
    both = Both()
    epochs: dict[str, list[int]] = {name: [0] for name in TABLES}
    blobs: dict[str, list[Any]] = {name: [] for name in TABLES}
    for i in range(1200):
        step(both, random, 60, 1_000_000, 10**15)
        if random.random() < 0.05:
            both.refresh()
        if i % 100 == 99:
            for name, epoch in zip(TABLES, both.core.seal(), strict=True):
                epochs[name].append(epoch)
                blobs[name].append(both.core.changed(name, *epochs[name][-2:]))
        if i == 700:
            both.core, blobs, epochs = reloaded(both, blobs, epochs, random)
    both.refresh()
    both.check()


def reloaded(
    both: Both, blobs: Any, epochs: Any, random: np.random.Generator
) -> tuple[Any, Any, Any]:
    """A core that loaded what another one had stored; as newer versions of rows replace older ones,
    it does not matter that some are stored twice."""
    for name, epoch in zip(TABLES, both.core.seal(), strict=True):
        epochs[name].append(epoch)
        blobs[name].append(both.core.changed(name, *epochs[name][-2:]))
        whole = both.core.changed(name, *ALL_EPOCHS)
        again = [both.core.changed(name, a, b)["user"] for a, b in pairwise(epochs[name])]
        assert sorted(whole["user"]) == sorted(chain.from_iterable(again))
        firsts = sorted(set(epochs[name]))
        live = [len(both.core.changed(name, a, b)["user"]) for a, b in pairwise(firsts)]
        assert both.core.live(name, firsts) == [*live, 0]
    fresh = both.fresh()
    for texts in TEXTS:
        fresh.segment(list(texts))
    fresh.restore(both.core.labels(), both.core.final_ms(), 0)
    new_epochs: dict[str, list[int]] = {}
    for at, name in enumerate(TABLES):
        for blob in blobs[name]:
            fresh.load(name, blob)
        new_epochs[name] = [fresh.seal()[at]]
    assert fresh.flags() == (True, True, True)
    assert sum(len(fresh.changed(name, *ALL_EPOCHS)["user"]) for name in TABLES) <= sum(
        len(both.core.changed(name, *ALL_EPOCHS)["user"]) for name in TABLES
    )
    both.core = fresh
    both.refresh()
    both.check()
    return fresh, blobs, new_epochs


def test_rows_that_are_not_wanted_are_left_out() -> None:
    both = Both()
    both.segment(("A", "home"))
    code = both.trials[0].exposure.code(0)
    both.core.restore([["A", "home"]], T0, 1)
    kept, out = next(u for u in PEOPLE if u < 1 << 63), next(u for u in PEOPLE if u >= 1 << 63)

    def rows(user: int, at: int, part: int, label: int = 0, more: Any = None) -> Any:
        key = {"user": [user], "at": [at], "label": [label], "part": [part]}
        return key | (more or {})

    clicks = {"clicks since 0": [5]}
    both.core.load("user_days", rows(out, DAY, 2 * code))
    both.core.load("user_days", rows(kept, DAY + 100, 2 * code))
    both.core.load("user_days", rows(kept, DAY, 2 * code + 2))
    both.core.load("user_pending", rows(kept, T0 - 1, 2 * code))
    both.core.load("user_exposures", {"user": [kept], "code": [code - 1], "first_ms": [T0]})
    assert both.core.state()[0] == 0
    both.core.load("user_days", rows(kept, DAY, 2 * code + 1, 0, clicks | {"other": [7]}))
    assert both.core.changed("user_days", *ALL_EPOCHS) == {
        "user": [kept], "at": [DAY], "label": [0], "part": [2 * code + 1],
        **{name: [5 * (name == "clicks since 0")] for name in both.spec["columns"]},
    }  # fmt: skip
    with pytest.raises(ValueError, match="label"):
        both.core.load("user_days", rows(kept, DAY, 2 * code, 1))
    with pytest.raises(ValueError, match="label"):
        both.core.load("user_days", rows(kept, DAY, 2 * code, -1))
    with pytest.raises(ValueError, match="beyond"):
        both.core.load("user_days", rows(kept, DAY, 2 * code, 0, {"clicks since 0": [-(1 << 63)]}))
    with pytest.raises(ValueError, match="lengths"):
        both.core.load("user_days", rows(kept, DAY, 2 * code, 0, {"clicks since 0": []}))


def test_a_user_has_so_many_rows_and_no_more() -> None:
    both = Both(rows_a_user=1000)
    number = both.core.segment(["", "home"])
    days = DAY_MS // 1000
    clicks, shown = (both.facts.sums.index(name) for name in ("clicks", "impressions"))
    for i in range(510):  # of each of the two exposures that wait for an impression
        both.core.add(clicks, (7, T0 + 2 * DAY_MS + i * (2 * days), number), 1)
    rows, _, dropped, _ = both.core.state()
    assert rows == 1000
    assert dropped == 20
    both.core.refresh(0)
    both.core.add(shown, (7, T0 + 2 * DAY_MS, both.core.segment(["A", "home"])), 1)
    both.core.add(shown, (8, T0 + 2 * DAY_MS, number), 1)
    both.core.refresh(T0 + 7 * DAY_MS)
    whole = both.core.of_range(0, (DAY, DAY + 6), None)
    assert whole == {"": both.core.sums(0)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sums": [{"name": n} for n in ("outcomes", "impressions")], "columns": ["a", "b"]},
            "first sums",
        ),
        ({"columns": ["a"]}, "column"),
        ({"exposures": []}, "exposure"),
        ({"more": 1}, "unknown field"),
    ],
)
def test_specs_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Both().fresh(**changes)
