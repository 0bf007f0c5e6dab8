"""The experiments of the core beside those of the oracle, event by event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import msgspec
import numpy as np

from streamer._core import ExperimentsForTests
from streamer.ingest.hash_key import FIXED_KEY
from streamer.ingest.spec import core_spec
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.stats.experiments.trials import CompiledExperiment, cumulated
from tests.oracle import experiments as oracle
from tests.oracle.user_days import Fact, User
from tests.support.experiment_logs import arms_of

DAY = 20_000
T0 = DAY * DAY_MS
LATENESS_MS = 3 * 3_600_000
PEOPLE = [Random(f"u{i}").getrandbits(64) for i in range(400)]
ALL_EPOCHS = (0, 1 << 30)
TABLES = ("user_exposures", "user_days", "user_pending")
TEXTS = [(v, s) for v in ("A", "B", "C", "x", "") for s in ("home", "feed", "y")]
DIMENSIONS = ("variant", "surface")


def experiment(
    name: str, arms: str, first: int, days: int, *metrics: str | tuple[str, float], **more: Any
) -> dict[str, Any]:
    """``metrics``: names, or name and cap."""
    control, *others = arms.split()
    named = [{"name": m} if isinstance(m, str) else {"name": m[0], "cap": m[1]} for m in metrics]
    return {
        "name": name,
        "dimension": "variant" if control in "AB" else "surface",
        "control": control,
        "split": dict.fromkeys([control, *others], 1),
        "start": date_of(DAY + first),
        "end": date_of(DAY + first + days - 1),
        "metrics": named,
        **more,
    }


VALUE_PER_USER, VALUE_PER_CLICK = "conversion_value_per_user", "conversion_value_per_click"
PER_DAY = ("active_days_per_user", "user_return_ratio", "user_hit_ratio")
EXPERIMENTS = [
    experiment("long", "A B", 0, 6, "ctr_ratio", ("clicks_per_user", 2), VALUE_PER_CLICK),
    experiment("short", "A B", 0, 3, (VALUE_PER_USER, 0.9), "ctr_ratio", covariate_days=2),
    experiment(
        *("places", "feed home", 2, 6, (VALUE_PER_USER, 1e9), ("clicks_per_user", 2)),
        covariate_days=3,
    ),
    experiment(
        *("own", "B A", 1, 6, "ctr_ratio", (VALUE_PER_USER, 0.9), "dwell_mean_seconds"),
        covariate_days=1,
        outcomes="attributed",
    ),
    experiment("own.long", "B A", 1, 8, VALUE_PER_CLICK, outcomes="attributed"),
    experiment(
        "days", "A B", 0, 5, *PER_DAY, "clicks_per_user@p50", covariate_days=2, explore=["surface"]
    ),
]


def settings_of(experiments: list[dict[str, Any]], max_values: int = 100) -> Settings:
    dimensions = [{"name": name, "max_values": max_values} for name in DIMENSIONS]
    return parse({"dimensions": dimensions, "experiments": experiments})


class SlowTrial(oracle.Trial):
    """The oracle's, which looks for each user's exposure once."""

    @cached_property
    def _first_ms(self) -> dict[User, int | None]:
        return {user: oracle.Trial.first_ms(self, user) for user in self.did}

    def first_ms(self, user: User) -> int | None:
        return self._first_ms[user]


@dataclass
class Both:
    """The experiments of the core, and what users did."""

    limit: int = 10**6
    rows_a_user: int = limits.MAX_USER_ROWS
    max_values: int = 100
    experiments: list[dict[str, Any]] = field(default_factory=lambda: EXPERIMENTS)
    clock_ms: int = T0
    given: list[tuple[int, int, tuple[str, str], dict[str, int]]] = field(default_factory=list)
    did: list[tuple[int, Fact]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = settings_of(self.experiments, self.max_values)
        catalogue = Catalogue(self.settings)
        self.facts = catalogue.experiment_measures
        self.trials = self.facts.trials
        self.spec = msgspec.json.decode(core_spec(self.settings, catalogue, FIXED_KEY))[
            "experiments"
        ]
        self.core = self.fresh()

    def fresh(self, **changes: Any) -> ExperimentsForTests:
        spec = msgspec.json.encode(self.spec | changes).decode()
        dimensions: list[Any] = [
            (d.name, list(d.values), self.max_values) for d in self.settings.kept_dimensions
        ]
        return ExperimentsForTests(spec, dimensions, (self.limit, self.rows_a_user))

    def segment(self, texts: tuple[str, str]) -> int:
        return self.core.segment(list(texts))

    def add(
        self, user: int, event_ms: int, texts: tuple[str, str], amounts: Mapping[str, int]
    ) -> None:
        """``amounts``: of components; a value in one piece."""
        dims = tuple(text or None for text in texts)
        for name, amount in amounts.items():
            component = "dwell" if name == "dwell_ms" else name
            self.did.append((user, Fact((0, f"user {user}"), event_ms, dims, component, amount)))
            if name == "value":
                self.put(user, event_ms, texts, "value", amount & (1 << 32) - 1)
                self.put(user, event_ms, texts, "value_high", amount >> 32)
            else:
                self.put(user, event_ms, texts, name, amount)

    def put(
        self, user: int, event_ms: int, texts: tuple[str, str], component: str, amount: int
    ) -> None:
        place = user, event_ms, self.segment(texts)
        if amount:
            self.core.add(self.facts.sums.index(component), place, amount)

    def refresh(self) -> None:
        self.core.refresh(self.clock_ms - LATENESS_MS)

    def slow(self, i: int) -> SlowTrial:
        """The oracle of one experiment, over the users of the sample."""
        bits = self.core.state()[1]
        measures = [fact for user, fact in self.did if user >> (64 - bits) == 0]
        kept: Any = Shown([self.core.kept(at) for at in range(len(DIMENSIONS))])
        return SlowTrial(self.settings.experiments[i], measures, kept, self.settings)

    def check(self) -> None:
        for i, trial in enumerate(self.trials):
            slow, sums = self.slow(i), columns(self.core.sums(i))
            for day in (trial.days[0], trial.days[len(trial.days) // 2], trial.days[-1]):
                compare(slow, trial, sums, range(trial.days.start, day + 1))
                none = cumulated(trial, [sums], day).counts[0]
                assert none["mixed"] == slow.mixed_by(day), (i, day)
        assert self.core.state()[2] == 0
        assert self.core.flags() == (False, False, False)

    def check_ranges(self) -> None:
        for i, trial in enumerate(self.trials):
            slow, days = self.slow(i), trial.days
            for a, b in ((0, 1), (1, 3), (2, len(days)), (0, len(days))):
                within = days[a:b]
                for place in map(DIMENSIONS.index, self.settings.user_dimensions):
                    self.check_apart(i, trial, slow.apart(place), within, place)
                found = self.core.of_range(i, (within.start, within.stop), None) or {}
                sums = columns(found.get(""))
                compare(slow, trial, sums, within)
            self.check_before(i, trial, slow)

    def check_before(self, i: int, trial: CompiledExperiment, slow: SlowTrial) -> None:
        found = self.core.before_start(i)
        assert (found is None) == (not trial.covariates), trial.name
        for day in trial.covariates:
            expected = slow.before(day)
            arms = arms_of(trial.before, [columns(found)], day)
            for (metric, arm), sums in arms.items():
                whole = expected[metric] if arm == trial.arms[0] else oracle.ArmTruth()
                assert sums == whole, (trial.name, metric, arm, day)

    def check_apart(
        self, i: int, trial: CompiledExperiment, expected: Mapping[str, Any], within: range, by: int
    ) -> None:
        found = self.core.of_range(i, (within.start, within.stop), by)
        assert found is not None
        assert found.keys() == expected.keys(), (found.keys(), expected.keys())
        for value, sums in found.items():
            arms = arms_of(trial, [columns(sums)], within.stop - 1)
            assert arms == expected[value].sums(within), (trial.name, within, by, value)


@dataclass
class Shown:
    """Which values are shown under their own name."""

    kept: list[list[str]]

    def shown(self, dims: tuple[str | None, ...]) -> tuple[str, ...]:
        return tuple(
            "unknown" if value is None else value if value in kept else "other"
            for value, kept in zip(dims, self.kept, strict=True)
        )


def columns(found: Mapping[str, list[int]] | None) -> dict[str, Any]:
    return {name: np.array(column, np.int64) for name, column in (found or NOTHING).items()}


NOTHING: dict[str, list[int]] = {"key": [], "limb_0": []}


def compare(slow: SlowTrial, trial: CompiledExperiment, sums: dict[str, Any], days: range) -> None:
    """Assert that the sums of some days are the oracle's."""
    day = days.stop - 1
    none = cumulated(trial, [sums], day).counts[0]
    assert (none["early"], none["unexposed"]) == slow.outside(days), (trial.name, days)
    assert arms_of(trial, [sums], day) == slow.sums(days), (trial.name, days)


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
        both.add(user, max(event_ms, both.core.final_ms()), texts, {"impressions": 1})
        return
    if dice < 0.9 or not both.given:
        if dice < 0.5:
            event_ms -= int(random.integers(4)) * DAY_MS
        amounts = {"clicks": 1, "outcomes": 1}
        if dice > 0.65:
            value = int(random.choice([1, 50_000_000, largest, 987_654_321]))
            amounts = {"value": value, "outcomes": 1}
        if dice > 0.85:
            amounts = {"dwell_ms": int(random.integers(1, 10**6)), "viewings": 1, "outcomes": 1}
        row = (user, event_ms, texts, amounts)
        both.given.append(row)
    else:
        user, event_ms, texts, amounts = both.given.pop(int(random.integers(len(both.given))))
        row = (user, event_ms, texts, {name: -amount for name, amount in amounts.items()})
    both.add(*row)
