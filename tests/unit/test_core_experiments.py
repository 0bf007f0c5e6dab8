"""Experiments in the core have the sums of the numpy engine, whatever is refreshed when."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np
import pytest

from streamer.batch import hash_texts
from streamer.config import Dimension
from streamer.engine.caps import EDGES, Quantile, bucket_of
from streamer.engine.experiments import Experiments
from streamer.engine.exposures import Exposure
from streamer.engine.integers import columns, split
from streamer.engine.segments import OTHER, Segments
from streamer.engine.trial_sums import Measure, Trial
from streamer.errors import SumOverflowError
from streamer.experiment_settings import DAY_MS

_core: Any = importlib.import_module("streamer._core")

DIMENSIONS = ("variant", "surface")
COMPONENTS = ("impressions", "outcomes", "clicks", "value", "value_high", "dwell_ms")
SHOWN, OUTCOMES, CLICKS, VALUE, VALUE_HIGH, DWELL = range(6)
DAY = 20_000
T0 = DAY * DAY_MS
LATENESS_MS = 3 * 3_600_000
PEOPLE = hash_texts([[f"u{i}" for i in range(400)]])[0].tolist()
ALL_EPOCHS = (0, 1 << 30)
TABLES = {"user_exposures": "exposures", "user_days": "days", "user_pending": "pending"}
TEXTS = [(v, s) for v in ("A", "B", "C", "x", "") for s in ("home", "feed", "y")]

CTR = Measure("ctr_ratio", CLICKS, SHOWN)
CLICKS_CAPPED = Measure("clicks_per_user", CLICKS, None, cap=2)
VALUES = Measure("conversion_value_per_user", VALUE, None, VALUE_HIGH, Quantile(0.9))
VALUES_CAPPED = Measure("conversion_value_per_user", VALUE, None, VALUE_HIGH, 10**17)
VALUE_PER_CLICK = Measure("conversion_value_per_click", VALUE, CLICKS, VALUE_HIGH)
EXPOSED = Exposure("variant", ("A", "B"), DAY)
SURFACES = Exposure("surface", ("feed", "home"), DAY + 2)
ATTRIBUTED = Exposure("variant", ("B", "A"), DAY + 1, is_attributed=True)


def trial(
    exposure: Exposure, measures: tuple[Measure, ...], days: int = 6, before: int = 0
) -> Trial:
    start = exposure.first_day
    covariates = range(start - before, start) if before else range(0)
    name = f"{exposure.name} {days}"
    all_days = range(start, start + days)
    return Trial(name, exposure.dimension, exposure.arms, all_days, covariates, measures, exposure)


TRIALS = (
    trial(EXPOSED, (CTR, CLICKS_CAPPED, VALUE_PER_CLICK)),
    trial(EXPOSED, (VALUES, CTR), days=3, before=2),
    trial(SURFACES, (VALUES_CAPPED, CLICKS_CAPPED), before=3),
    trial(ATTRIBUTED, (CTR, VALUES, Measure("dwell", DWELL, OUTCOMES)), before=1),
    trial(ATTRIBUTED, (VALUE_PER_CLICK,), days=8),
)


@dataclass
class Facts:
    """Facts are amounts of users themselves."""

    trials: tuple[Trial, ...] = TRIALS
    components: tuple[str, ...] = COMPONENTS

    def per_user(self, fact: Any) -> Any:
        return fact


def spec_of(numpy: Experiments) -> str:
    """What Python says to the core."""
    exposures = list(numpy.wanted)
    names = ["impressions", "outcomes", "clicks", "value", "value_high", "dwell_ms"]

    def cap(measure: Measure) -> Any:
        if isinstance(measure.cap, Quantile):
            return "quantile"
        return "none" if measure.cap is None else {"amount": measure.cap}

    spec = {
        "components": names,
        "columns": list(numpy.days.components),
        "exposures": [
            {
                "dimension": DIMENSIONS.index(e.dimension),
                "arms": e.arms,
                "first_day": e.first_day,
                "is_attributed": e.is_attributed,
                "days": (days.start, days.stop),
                "code": numpy.codes[e],
            }
            for e, days in numpy.wanted.items()
        ],
        "trials": [
            {
                "dimension": DIMENSIONS.index(t.dimension),
                "arms": t.arms,
                "days": (t.days.start, t.days.stop),
                "covariates": (t.covariates.start, t.covariates.stop) if t.covariates else None,
                "exposure": exposures.index(t.exposure),
                "measures": [
                    {"above": m.above, "below": m.below, "high": m.high, "cap": cap(m)}
                    for m in t.measures
                ],
            }
            for t in numpy.trials
        ],
    }
    return msgspec.json.encode(spec).decode()


def lists(found: Mapping[str, Any]) -> dict[str, list[int]]:
    return {name: np.asarray(column).tolist() for name, column in found.items()}


@dataclass
class Both:
    """The experiments of both engines, fed alike. ``absorbs``: whether numpy takes in each event
    at once, so that even its rows are the same."""

    limit: int = 10**6
    max_values: int = 100
    absorbs: bool = True
    trials: tuple[Trial, ...] = TRIALS
    clock_ms: int = T0
    given: list[tuple[int, int, tuple[str, str], dict[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [Dimension(name=n, max_values=self.max_values) for n in DIMENSIONS]
        self.segments = Segments(names, 1000)
        self.numpy = Experiments(Facts(self.trials), self.limit, self.segments)
        self.core = self.fresh()

    def fresh(self) -> Any:
        dimensions: list[Any] = [(name, [], self.max_values) for name in DIMENSIONS]
        return _core.ExperimentsForTests(spec_of(self.numpy), dimensions, self.limit)

    def segment(self, texts: tuple[str, str]) -> tuple[int, int]:
        """The numbers of a segment; numpy folds what the core does."""
        number = self.core.segment(list(texts))
        codes = []
        for at, (values, text) in enumerate(zip(self.segments.values, texts, strict=True)):
            kept = self.core.kept(at)
            for gone in set(values.codes) - set(kept):
                self.segments._fold(values, gone)
                self.segments.take_moves()
                self.numpy.fold()
            if text in kept and text not in values.codes:
                values._add(text)
            codes.append(values.codes.get(text, OTHER) if text else 0)
        return number, self.segments._number(tuple(codes))

    def add(
        self, user: int, event_ms: int, texts: tuple[str, str], amounts: dict[int, int]
    ) -> None:
        number, ours = self.segment(texts)
        for component, amount in amounts.items():
            if amount:
                one = [np.array([x], np.int64) for x in (event_ms, ours, amount)]
                self.numpy.tell([(component, np.array([user], np.uint64), *one)])  # type: ignore[arg-type]
                if self.absorbs:
                    self.numpy.absorb()
                self.core.add(component, (user, event_ms, number), amount)

    def refresh(self) -> None:
        final_ms = self.clock_ms - LATENESS_MS
        self.numpy.file(final_ms)
        self.core.refresh(final_ms)
        assert self.core.final_ms() == self.numpy.final_ms

    def check(self) -> None:
        for i in range(len(TRIALS)):
            assert self.core.sums(i) == lists(columns(self.numpy.sums[i])), i
        _, bits, dropped, _ = self.core.state()
        assert (bits, dropped) == (self.numpy.sample_bits, 0)
        assert self.core.flags() == (False, False, False)

    def check_ranges(self) -> None:
        for i, its in enumerate(TRIALS):
            for a, b in ((0, 1), (1, 3), (2, len(its.days)), (0, len(its.days))):
                within = range(its.days.start + a, its.days.start + b)
                found = self.core.of_range(i, (within.start, within.stop))
                assert found == lists(columns(self.numpy.of_range(its, within))), (i, within)

    def check_rows(self) -> None:
        texts = [tuple(label[name] for name in DIMENSIONS) for label in self.numpy.labels.known]
        for name, attribute in TABLES.items():
            rows = getattr(self.numpy, attribute)
            expected = by_key(lists(rows.versions(*ALL_EPOCHS)), texts)
            assert by_key(self.core.changed(name, *ALL_EPOCHS), self.core.labels()) == expected


def by_key(found: dict[str, list[int]], labels: Iterable[Iterable[str]]) -> dict[Any, Any]:
    """Stored rows by their keys, of which labels are told by their values."""
    texts = [tuple(label) for label in labels]
    keys = [n for n in ("user", "at", "part", "code") if n in found]
    columns = [found[name] for name in keys]
    if "label" in found:
        columns.append([texts[label] for label in found["label"]])  # type: ignore[misc]
    values = [column for name, column in found.items() if name not in (*keys, "label")]
    rows = list(zip(*columns, strict=True))
    assert len(set(rows)) == len(rows)
    return dict(zip(rows, zip(*values, strict=True), strict=True))


def value_of(micros: int, sign: int = 1) -> dict[int, int]:
    high, low = split(np.array([micros], np.int64))
    return {VALUE: int(low[0]) * sign, VALUE_HIGH: int(high[0]) * sign, OUTCOMES: sign}


def step(both: Both, random: np.random.Generator, people: int, pace: int, largest: int) -> None:
    """One event of some kind, often late; now and then an earlier one is retracted."""
    both.clock_ms += int(random.choice([0, pace, pace // 7]))
    person = int(random.integers(people)) ** 2 % people
    user = PEOPLE[person]
    event_ms = both.clock_ms - int(random.choice([0, 1000, LATENESS_MS // 3, LATENESS_MS - 1]))
    texts = TEXTS[int(random.integers(len(TEXTS)))]
    if random.random() < 0.985:
        texts = ("AB"[person % 2], ("home", "feed")[person // 2 % 2])
    if random.random() < 0.2:
        texts = ("", texts[1])
    dice = random.random()
    if dice < 0.4:
        both.add(user, max(event_ms, both.numpy.final_ms), texts, {SHOWN: 1})
        return
    if dice < 0.9 or not both.given:
        if dice < 0.5:
            event_ms -= int(random.integers(4)) * DAY_MS
        amounts = {CLICKS: 1, OUTCOMES: 1}
        if dice > 0.65:
            amounts = value_of(int(random.choice([1, 50_000_000, largest, 987_654_321])))
        if dice > 0.85:
            amounts = {DWELL: int(random.integers(1, 10**6)), OUTCOMES: 1}
        row = (user, event_ms, texts, amounts)
        both.given.append(row)
    else:
        user, event_ms, texts, amounts = both.given.pop(int(random.integers(len(both.given))))
        row = (user, event_ms, texts, {name: -amount for name, amount in amounts.items()})
    both.add(*row)


PACES = (60_000, 2_000_000, 8_000_000)


@pytest.mark.parametrize("absorbs", [True, False])
@pytest.mark.parametrize("people", [1, 12, 300])
@pytest.mark.parametrize("share", [0.3, 0.05, 0.005])
def test_sums_are_those_of_numpy(absorbs: bool, people: int, share: float) -> None:
    random = np.random.default_rng([absorbs, people, int(1000 * share)])
    both = Both(absorbs=absorbs)
    for _ in range(500):
        step(both, random, people, int(random.choice(PACES)), 10**18)
        if random.random() < share:
            both.refresh()
            both.check()
    both.refresh()
    both.check()
    both.check_ranges()
    if absorbs:
        both.check_rows()
    if people > 1:
        assert all(both.numpy.sums)
        assert "limb_2" in both.core.sums(0)


def test_values_may_be_as_large_as_sums_are() -> None:
    random = np.random.default_rng(3)
    both = Both()
    both.add(PEOPLE[0], T0, ("A", "home"), {SHOWN: 1})
    huge = 1 << 55
    for i in range(200):
        user, texts = PEOPLE[i % 5], ("A", "home") if i % 5 else ("B", "feed")
        event_ms = T0 + i * DAY_MS // 40 + i
        both.add(user, event_ms, texts, {SHOWN: 1, CLICKS: huge + i, VALUE: -huge * (i % 2 or -1)})
        both.add(user, event_ms, texts, {VALUE_HIGH: huge - i, OUTCOMES: 1})
        both.add(user, event_ms, texts, {CLICKS: -huge, VALUE_HIGH: -huge * int(i % 4 > 0)})
        if random.random() < 0.1:
            both.refresh()
            both.check()
    both.refresh()
    both.check()
    both.check_ranges()
    assert "limb_4" in both.core.sums(0)


def test_a_sum_that_passes_its_bound_is_an_error() -> None:
    both = Both()
    both.add(PEOPLE[0], T0, ("A", "home"), {CLICKS: 1 << 62})
    with pytest.raises(SumOverflowError):
        both.add(PEOPLE[0], T0, ("A", "home"), {CLICKS: 1})
    with pytest.raises(OverflowError):
        both.core.add(CLICKS, (PEOPLE[0], T0, 0), 1)
    both.core.add(CLICKS, (PEOPLE[0], T0, 0), -1)
    with pytest.raises(OverflowError):
        both.core.add(CLICKS, (PEOPLE[0], T0 + 1, 0), (1 << 62) + 1)


def test_settled_rows_that_meet_may_not_pass_it_either() -> None:
    both = Both(trials=TRIALS[:1])
    for i in range(2):
        both.add(PEOPLE[0], T0 + i, ("A", "home"), {CLICKS: 3 << 60})
    both.clock_ms = T0 + 2 * DAY_MS
    with pytest.raises(SumOverflowError):
        both.numpy.file(T0 + 5)
    with pytest.raises(OverflowError):
        both.core.refresh(T0 + 5)


@pytest.mark.parametrize("seed", range(3))
def test_folds_move_what_users_contribute(seed: int) -> None:
    random = np.random.default_rng(seed)
    both = Both(max_values=4)
    kept = set()
    for i in range(900):
        step(both, random, 30, int(random.choice(PACES[:2])), 10**9)
        if random.random() < 0.02:
            both.segment((f"v{i}", f"s{i}"))
        kept.add(tuple(both.core.kept(0)))
        if random.random() < 0.05:
            both.refresh()
            both.check()
    both.refresh()
    both.check()
    both.check_ranges()
    assert len(kept) > 3


@pytest.mark.parametrize("seed", range(2))
def test_beyond_the_limit_the_same_users_stay(seed: int) -> None:
    random = np.random.default_rng(seed)
    both = Both(limit=200)
    for i in range(1500):
        step(both, random, 400, int(random.choice(PACES[:2])), 10**9)
        if i % 20 == 19:
            is_smaller = both.core.shrink()
            assert both.numpy.shrink() == is_smaller
            if is_smaller:
                both.refresh()
            assert both.core.state()[0] <= 200
            if random.random() < 0.3:
                both.refresh()
                both.check()
                both.check_rows()
    both.refresh()
    both.check()
    assert both.core.state()[1] > 0


def test_rows_are_settled_when_time_moves_on() -> None:
    both = Both()
    for i in range(50):
        both.add(PEOPLE[i], T0 + 1000 * i, ("", "home"), {CLICKS: 1, OUTCOMES: 1})
    both.refresh()
    assert len(both.core.changed("user_pending", *ALL_EPOCHS)["user"]) == 50
    both.core.refresh(both.core.final_ms() + 59_999)
    assert both.core.final_ms() == both.numpy.final_ms
    both.clock_ms = T0 + LATENESS_MS + 30_000
    both.refresh()
    both.check_rows()
    assert 0 < len(both.core.changed("user_pending", *ALL_EPOCHS)["user"]) < 50
    both.clock_ms = T0 + LATENESS_MS + DAY_MS
    both.refresh()
    both.check()
    both.check_rows()
    assert not both.core.changed("user_pending", *ALL_EPOCHS)["user"]


def test_only_experiments_whose_sums_changed_are_written() -> None:
    both = Both()
    both.add(PEOPLE[0], T0 + 3 * DAY_MS, ("A", "home"), {SHOWN: 1})
    assert both.core.take_changed() == []
    before = both.core.sums(0)
    both.refresh()
    assert both.core.sums(0) != before
    assert both.core.take_changed() == [0, 2, 3, 4]
    both.refresh()
    assert both.core.take_changed() == []
    both.add(PEOPLE[0], T0 + 4 * DAY_MS, ("", "y"), {CLICKS: 1})
    before = both.core.sums(0)
    assert both.core.flags() == (True, False, False)
    assert both.core.sums(0) == before
    both.add(PEOPLE[0], T0 + 4 * DAY_MS, ("", "y"), {CLICKS: -1})
    both.refresh()
    assert 1 not in both.core.take_changed()
    both.check()
    both.add(PEOPLE[0], T0 - 50 * DAY_MS, ("A", "home"), {SHOWN: 1})
    assert both.core.flags() == (False, False, False)


def test_buckets_are_those_of_numpy() -> None:
    both = Both()
    edges = [int(e) for e in random_edges()]
    for i, value in enumerate(edges):
        both.add(PEOPLE[i], T0 + i, ("A", "home"), {SHOWN: 1, **value_of(value)})
    both.refresh()
    both.check()
    assert len({int(bucket_of(np.array([e]))[0]) for e in edges}) > 100


def random_edges() -> list[int]:
    random = np.random.default_rng(0)
    some = random.choice(EDGES, 120)
    return [*some.tolist(), *(some[:90] + 1).tolist(), *(some[:90] - 1).tolist(), 0, 10**18]


# Stored form -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loads", ["core", "numpy"])
@pytest.mark.parametrize("seed", range(2))
def test_loaded_rows_give_the_same_sums(seed: int, loads: str) -> None:
    random = np.random.default_rng(seed)
    both = Both()
    epochs: dict[str, list[int]] = {name: [0] for name in TABLES}
    blobs: dict[str, list[Any]] = {name: [] for name in TABLES}
    for i in range(1200):
        step(both, random, 60, 1_000_000, 10**17)
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
    if loads == "numpy":
        both.numpy = numpy_of(both, blobs)
        both.core.restore([], both.core.final_ms(), 0)
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
    both.check_rows()
    return fresh, blobs, new_epochs


def numpy_of(both: Both, blobs: dict[str, list[Any]]) -> Experiments:
    """The numpy engine, with the rows of the core."""
    fresh = Experiments(Facts(), both.limit, both.segments)
    labels = [dict(zip(DIMENSIONS, label, strict=True)) for label in both.core.labels()]
    numpy = both.numpy
    fresh.restore(labels, numpy.since, numpy.scopes, both.clock_ms, both.core.final_ms())
    assert fresh.codes == numpy.codes
    types = {"user": np.uint64, "label": np.int32}
    for name, load in zip(
        TABLES, (fresh.load_exposures, fresh.load_days, fresh.load_pending), strict=True
    ):
        whole = both.core.changed(name, *ALL_EPOCHS)
        load({n: np.array(c, types.get(n, np.int64)) for n, c in whole.items()})
    return fresh


def test_rows_that_are_not_wanted_are_left_out() -> None:
    both = Both()
    both.segment(("A", "home"))
    code = both.numpy.codes[EXPOSED]
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
        **{name: [5 * (name == "clicks since 0")] for name in both.numpy.days.components},
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
    both = Both()
    number = both.core.segment(["", "home"])
    days = DAY_MS // 1000
    for i in range(50_010):  # of each of the two exposures that wait for an impression
        both.core.add(CLICKS, (7, T0 + 2 * DAY_MS + i * (2 * days // 100), number), 1)
    rows, _, dropped, _ = both.core.state()
    assert rows == 100_000
    assert dropped == 20
    both.core.refresh(0)
    both.core.add(SHOWN, (7, T0 + 2 * DAY_MS, both.core.segment(["A", "home"])), 1)
    both.core.add(SHOWN, (8, T0 + 2 * DAY_MS, number), 1)
    both.core.refresh(T0 + 7 * DAY_MS)
    sums, whole = both.core.sums(0), both.core.of_range(0, (DAY, DAY + 6))
    assert sums == whole


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"components": ["outcomes", "impressions"], "columns": ["a", "b"]}, "first components"),
        ({"columns": ["a"]}, "column"),
        ({"exposures": []}, "exposure"),
        ({"more": 1}, "unknown field"),
    ],
)
def test_specs_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    spec = msgspec.json.decode(spec_of(Both().numpy)) | changes
    with pytest.raises(ValueError, match=message):
        _core.ExperimentsForTests(
            msgspec.json.encode(spec).decode(), [(n, [], 10) for n in DIMENSIONS], 100
        )
