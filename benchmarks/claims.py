"""How often each sentence about an experiment is said, and how often it is false.

    python -m benchmarks.claims                     every world, and docs/claims.md anew
    python -m benchmarks.claims --months 20         the same, coarser
    python -m benchmarks.claims --world "a bad day" --month 7      one month of a line, day by day
    python -m benchmarks.claims --messages          how long until `streamer act` tells of a fall,
                                                    and what it tells of where there is none

A month of 28 days is drawn user by user; what is kept of users is added up as the core does, and
all the rest is done by streamer.query.experiments, at the end of each day. Where arms do not differ
over whole weeks, every claim of a difference is false.
"""

from __future__ import annotations

import argparse
import datetime
import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from benchmarks.studies.rates import hold, table
from streamer.actions.occasions import occasions_of
from streamer.encoding.limbs import Columns
from streamer.metrics.catalogue import Catalogue
from streamer.query.experiment_list import ListedExperiment
from streamer.query.experiments import StoredExperiment
from streamer.query.losses import ArmLoss
from streamer.settings.actions import OCCASIONS
from streamer.settings.durations import DAY_MS, day_of
from streamer.settings.load import parse
from streamer.stats.experiments.caps import DENOMINATOR_EDGES, Denominator
from streamer.stats.experiments.converters import converters
from streamer.stats.experiments.loss import loss_of
from streamer.stats.experiments.plan import Plan
from streamer.stats.experiments.recommendation import Action
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.trials import ACTIVE, AGES, CompiledExperiment, Measure

Ints = NDArray[np.int64]
DAYS, MONDAY = 28, datetime.date(2026, 1, 5)
MONTHS = 60
PAGE = Path(__file__).parents[1] / "docs" / "claims.md"
CLEAN, DIRTY = 0.001, 0.005
"""Largest shares of months in which `ship` may be false."""


@dataclass
class Month:
    """Users: arm (0, 1), first day, and what they did by day: impressions and outcomes; ``count``:
    how many are alike."""

    arm: Ints
    first: Ints
    shown: Ints
    done: Ints
    count: Ints = field(default_factory=lambda: np.ones(1, np.int64))

    def __post_init__(self) -> None:
        self.count = np.broadcast_to(self.count, self.arm.shape)

    def of(self, who: NDArray[np.bool_]) -> Month:
        """Some of them."""
        every = (self.arm, self.first, self.shown, self.done, self.count)
        return Month(*(each[who] for each in every))

    @staticmethod
    def bought(dice: np.random.Generator, buyers: int, fall: float) -> Month:
        """Ten times as many users a day as there are buyers, who come once; of B fewer buy."""
        arm, first, buys = (each.ravel() for each in np.mgrid[0:2, 0:DAYS, 0:2])
        users = dice.poisson(5 * buyers, (2, DAYS))
        bought = dice.binomial(users, np.array([[0.1], [0.1 * (1 - fall)]]))
        count = np.where(buys, bought[arm, first], (users - bought)[arm, first])
        is_first = np.arange(DAYS) == first[:, None]
        return Month(arm, first, is_first.astype(np.int64), is_first * buys[:, None], count)

    @staticmethod
    def drawn(
        dice: np.random.Generator,
        users: int = 4000,
        share: float = 0.5,
        lift: Callable[[Ints, Ints], Any] = lambda day, age: 1.0,
    ) -> Month:
        """Users come on any day and again on one of five; ``share`` of them are of B, which has
        ``lift`` times as many clicks, by day and days since the first."""
        arm = (dice.random(users) < share).astype(np.int64)
        first = dice.integers(0, DAYS, users)
        day = np.arange(DAYS)
        age = day - first[:, None]
        comes = (age == 0) | ((age > 0) & (dice.random((users, DAYS)) < 0.2))
        shown = np.where(comes, dice.poisson(9, (users, DAYS)) + 1, 0)
        likes = dice.beta(0.5, 4.5, users)[:, None] * np.ones(DAYS)
        likes[arm == 1] *= np.broadcast_to(lift(day, age), likes.shape)[arm == 1]
        return Month(arm, first, shown, dice.binomial(shown, np.minimum(likes, 1.0)))


def crawlers(dice: np.random.Generator) -> Month:
    month = Month.drawn(dice)
    month.first[:3] = 0
    month.shown[:3], month.done[:3] = 500, 0
    return month


def delays(dice: np.random.Generator) -> Month:
    """One of five buys once, after a day in A and three in B in the mean."""
    month = Month.drawn(dice)
    wait = dice.exponential(np.where(month.arm, 3.0, 1.0)) + dice.random(len(month.arm))
    when = month.first + np.floor(wait).astype(np.int64)
    month.done[:] = 0
    buys = np.flatnonzero((dice.random(len(wait)) < 0.2) & (when < DAYS))
    month.done[buys, when[buys]] = 1
    return month


def bad_day(dice: np.random.Generator) -> Month:
    """Of B nine of ten impressions, or clicks, are lost for a day."""
    month, day = Month.drawn(dice), dice.integers(0, DAYS)
    of = month.shown if dice.random() < 0.5 else month.done
    of[month.arm == 1, day] //= 10
    np.maximum(month.shown[:, day], month.done[:, day] > 0, out=month.shown[:, day])
    return month


def weekends(dice: np.random.Generator) -> Month:
    """More on weekdays, as many fewer at weekends; the start is on any day."""
    turn = dice.integers(0, 7)
    return Month.drawn(dice, lift=lambda day, age: np.where((day + turn) % 7 < 5, 1.15, 0.625))


def novelty(dice: np.random.Generator) -> Month:
    """Half as many again on a user's first day, and what makes up for it later."""
    return Month.drawn(dice, lift=lambda day, age: np.where(age == 0, 1.5, 0.85))


def heavy_tails(dice: np.random.Generator) -> Month:
    """Buyers, one in ten, spend Pareto 1.1."""
    month = Month.drawn(dice)
    spends = np.where(dice.random(len(month.arm)) < 0.1, dice.pareto(1.1, len(month.arm)) + 1, 0)
    month.done[:] = 0
    month.done[np.arange(len(spends)), month.first] = np.minimum(spends * 1000, 10**9)
    return month


def ramp(dice: np.random.Generator) -> Month:
    """One of a hundred is in B on four days, then half of all; everybody clicks half as much before
    a sale that begins on one of these days."""
    month, sale = Month.drawn(dice, 8000), dice.integers(0, 8)
    month.arm[:] = dice.random(8000) < np.where(month.first < 4, 0.01, 0.5)
    month.done[:, :sale] = dice.binomial(month.done[:, :sale], 0.5)
    return month


def lossy(dice: np.random.Generator) -> Month:
    """One of ten users of B is never logged."""
    month = Month.drawn(dice)
    stays = (month.arm == 0) | (dice.random(len(month.arm)) > 0.1)
    return month.of(stays)


@dataclass(frozen=True)
class World:
    """What months are drawn from; ``true``: the claims that are true in it."""

    name: str
    drawn: Callable[[np.random.Generator], Month]
    true: Sequence[str] = ("no effect",)
    split: dict[int, dict[str, float]] = field(default_factory=lambda: {0: {"A": 1, "B": 1}})
    """First day → planned shares."""
    metric: str = "ctr_ratio"
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More settings of the experiment."""


LESS = ("harm", "no effect")
CHANGED = ("no effect", "the effect changed")
WORLDS = (
    World("no difference", Month.drawn),
    World("+10 %", lambda dice: Month.drawn(dice, 8000, lift=lambda *_: 1.1), ("ship",)),
    World(
        "−10 %", lambda dice: Month.drawn(dice, 8000, lift=lambda *_: 0.9), ("harm", "no effect")
    ),
    World("crawlers", crawlers),
    World("few people", lambda dice: Month.drawn(dice, 300)),
    World("99 : 1", lambda dice: Month.drawn(dice, 20_000, 0.01), split={0: {"A": 99, "B": 1}}),
    World("heavy tails", heavy_tails, metric="conversion_value_per_user"),
    World("delays", delays, CHANGED, metric="user_conversion_ratio"),
    World("a bad day", bad_day, CHANGED),
    World("weekends", weekends, CHANGED),
    World("novelty", novelty, CHANGED),
    World("a ramp", ramp, split={0: {"A": 99, "B": 1}, 4: {"A": 1, "B": 1}}),
    World("lost users", lossy, ("no effect", "broken split", "unusual split")),
)
SAID = {
    Action.SHIP: "ship",
    Action.STOP_HARM: "harm",
    Action.STOP_NO_EFFECT: "no effect",
    Action.DO_NOT_USE: "broken split",
    Action.CHANGED: "the effect changed",
}


# Sums as the core adds them up --------------------------------------------------------------------


def stored_of(world: World, month: Month, start: datetime.date) -> StoredExperiment:
    """What readers know at the end of a month."""
    metric = {"name": world.metric, "primary": True}
    periods = [
        {"from": start + datetime.timedelta(days=day), **shares}
        for day, shares in world.split.items()
    ]
    split = periods if len(periods) > 1 else world.split[0]
    settings = parse(
        {
            "dimensions": [{"name": "variant"}],
            "experiments": [
                {
                    **{"name": "x", "dimension": "variant", "control": "A", "start": start},
                    **{"split": split, "metrics": [metric], "min_lift": 0.05, **world.more},
                }
            ],
        }
    )
    measures = Catalogue(settings).experiment_measures
    (trial,), (experiment,) = measures.trials, settings.experiments
    first = day_of(start)
    return StoredExperiment(
        *(experiment, trial, measures.ratios, [columns_of(trial, month, first)]),
        *((first + DAYS) * DAY_MS, 0, 0),
        periods=[
            (period.shares, its, [columns_of(its, month, first)])
            for period, its in zip(experiment.periods, measures.periods.get("x", ()), strict=False)
        ],
    )


def columns_of(trial: CompiledExperiment, month: Month, start: int) -> Columns:
    """The differences of each day of an experiment, or of a period of it, of every statistic that
    is not 0."""
    day = np.arange(DAYS)
    begin, end = trial.days.start - start, min(trial.days.stop - start, DAYS)
    came = (month.first >= begin) & (month.first < end)
    month = month.of(came)
    month.shown[:, end:] = month.done[:, end:] = 0
    is_in = day >= month.first[:, None]
    counts = np.zeros((2, DAYS, trial.stats), np.int64)
    for arm in (0, 1):
        own = month.of(month.arm == arm)
        counts[arm, :, 0] = np.bincount(own.first, own.count, DAYS)
        counts[arm, :, ACTIVE] = own.count @ (own.shown + own.done > 0)
    for measure, first in zip(trial.measures, trial.firsts, strict=False):
        sums = standing(trial, measure, month, is_in)
        counts[:, :, first : first + sums.shape[2]] = np.diff(sums, axis=1, prepend=0)
    arm_at, day_at, stat = np.nonzero(counts)
    key = ((arm_at + 1) * len(trial.days) + day_at - begin) * trial.stats + stat
    return {"key": key, "limb_0": counts[arm_at, day_at, stat]}


def standing(
    trial: CompiledExperiment, measure: Measure, month: Month, is_in: NDArray[np.bool_]
) -> Ints:
    """By arm and day the sums over users of what they come to by then, by bucket and moment."""
    start, stop = AGES[measure.age] if measure.age else (0, DAYS)
    age = np.arange(DAYS) - month.first[:, None]
    is_of_age = (age >= start) & (age < stop)
    x = (month.done * is_of_age).cumsum(axis=1)
    y = np.ones_like(x)
    if measure.below is not None:
        y = (month.shown * is_of_age).cumsum(axis=1)
    elif measure.cap == "any":
        x = np.minimum(x, 1)
    bucket = np.zeros_like(x)
    if isinstance(measure.cap, Denominator):
        bucket = np.searchsorted(np.array(DENOMINATOR_EDGES, np.float64), y)
    values = {"x": x, "y": y, "xx": x.astype(float) ** 2, "xy": x * y, "yy": y * y}
    values |= {"nz": x != 0, "ny": y != 0}
    names = trial.moments_of(measure)
    size = measure.buckets * len(names)
    place = ((month.arm[:, None] * DAYS + np.arange(DAYS)) * measure.buckets + bucket)[is_in]
    weighed = {name: values[name] * month.count[:, None] for name in names}
    found = [np.bincount(place, weighed[name][is_in], 2 * DAYS * measure.buckets) for name in names]
    sums: Ints = np.rint(np.stack(found, axis=1)).astype(np.int64).reshape(2, DAYS, size)
    return sums


# Claims -------------------------------------------------------------------------------------------


def looks_of(world: World, number: int) -> Iterator[tuple[datetime.date, str, str]]:
    """What a month says on its days: date, claim, sentence."""
    dice = np.random.default_rng([WORLDS.index(world), number])
    start = MONDAY + datetime.timedelta(days=int(dice.integers(0, 7)))
    stored = stored_of(world, world.drawn(dice), start)
    for date, advice in stored.looks():
        yield date, SAID.get(advice.action, "too early"), advice.reason
    found = stored.read()
    assert found.last is not None
    assert found.recommendation is not None
    yield (
        found.last,
        SAID.get(found.recommendation.action, "too early"),
        found.recommendation.reason,
    )
    split = found.metrics[0].found.split
    claim = "broken split" if split.is_wrong else "as planned"
    yield found.last, "unusual split" if split.is_unusual else claim, split.sentence


def ledger(world: World, months: int) -> Counter[str]:
    """In how many months each claim is ever said."""
    said: Counter[str] = Counter()
    for number in range(months):
        said.update({claim for _, claim, _ in looks_of(world, number)})
    return said


def interval(found: int, runs: int) -> tuple[float, float]:
    """Of Clopper and Pearson (95 %)."""
    low = beta.ppf(0.025, found, runs - found + 1) if found else 0.0
    return low, beta.ppf(0.975, found + 1, runs - found) if found < runs else 1.0


def share(found: int, runs: int) -> str:
    """With its interval."""
    low, high = interval(found, runs)
    return f"{found / runs:.1%} ({low:.1%} to {high:.1%})"


def rows_of(world: World, said: Counter[str], months: int) -> Iterator[str]:
    """The lines of a world."""
    true = {*world.true, "too early", *(["as planned"] if "broken split" not in world.true else [])}
    for claim in (*SAID.values(), "unusual split", "as planned"):
        count = said[claim]
        false = "" if claim in true else share(count, months)
        if count or claim == "ship":
            yield f"| {world.name} | {claim} | {share(count, months)} | {false} |"


# Messages -----------------------------------------------------------------------------------------

FALLS = {"everything": 1.0, "a half": 0.5, "a tenth": 0.1}
BUYERS = (1_000, 10_000)
"""A day, of both arms together where nothing falls."""
BOUGHT, MOST = "conversions_per_user", 50
RUNS = 10_000
LOST_MONTHS, QUIET_MONTHS, HARM_MONTHS = 20_000, 400, 60
_EACH, _LONGEST = 500, 40_000


def most_told() -> Ints:
    """By the number of buyers, the most of the treatment's at which a loss is told of: that of each
    up to ``_EACH``, then every hundredth part further on, and straight lines between."""
    plan = Plan("A", {"A": 1, "B": 1})

    def is_told(treated: int, buyers: int) -> bool:
        users = 10 * buyers
        own, control = (
            ArmSums(users, y=users, yy=users, nonzero=n) for n in (treated, buyers - treated)
        )
        (who,) = converters(plan, [("B", own, control)])
        assert who is not None
        lost = loss_of(who, 0.5, 1.0)
        return ArmLoss(cast(Any, None), "B", lost, MOST, "conversions", 1).is_too_much

    at = [*range(1, _EACH), *np.geomspace(_EACH, _LONGEST, 440).round().astype(int).tolist()]
    most = [bisect(range(n), False, key=lambda k, n=n: not is_told(k, n)) - 1 for n in at]  # type: ignore[misc]
    known: Ints = np.floor(np.interp(np.arange(_LONGEST + 1), at, most)).astype(np.int64)
    return known


def first_told(dice: np.random.Generator, most: Ints, fall: float, runs: int, longest: int) -> Ints:
    """The buyer at whom each run is told of, looked at each; 0 where none is."""
    share, found = (1 - fall) / (2 - fall), np.zeros(runs, np.int64)
    for run in range(runs):
        told = np.cumsum(dice.random(longest) < share) <= most[1 : longest + 1]
        found[run] = told.argmax() + 1 if told.any() else 0
    return found


def messages(world: World, number: int, *, until: str = "", days: int = DAYS) -> dict[str, int]:
    """Kind → the first day at whose end there is something of it to tell."""
    dice = np.random.default_rng([17, number])
    start = MONDAY + datetime.timedelta(days=number % 7)
    stored, first = stored_of(world, world.drawn(dice), start), day_of(start)
    found: dict[str, int] = {}
    for day in range(days):
        now = replace(stored, stream_ms=(first + day + 1) * DAY_MS)
        listed = ListedExperiment(now, now.read(first + day), {})
        for occasion in occasions_of(listed):
            found.setdefault(occasion.kind, day + 1)
        if until in found:
            break
    return found


def buyers_lost() -> int:
    """The buyers of the control at which it is a harm that the treatment has none."""
    for buyers in range(1, 100):
        one = np.zeros((3, DAYS), np.int64)
        one[:, 0] = 1
        month = Month(
            *(np.array([0, 0, 1]), np.zeros(3, np.int64), one, one * np.eye(3, 1, dtype=np.int64)),
            np.array([1, 9, 10]) * buyers,
        )
        world = World("", lambda _, month=month: month, metric=BOUGHT)  # type: ignore[misc]
        if "harm" in messages(world, 0, days=1):
            return buyers
    raise AssertionError


def waits(dice: np.random.Generator, most: Ints) -> Iterator[tuple[object, ...]]:
    """How long it takes until a fall is told of: by what is lost, and as a harm."""
    lost_at = buyers_lost()
    for buyers in BUYERS:
        for name, fall in FALLS.items():
            at = first_told(dice, most, fall, RUNS, _LONGEST if fall < 0.5 else 4_000)
            assert at.all()
            days = dice.gamma(at) / (buyers * (1 - fall / 2))
            lost = np.quantile(days * fall * buyers / 2, (0.5, 0.9))
            harm = dice.gamma(lost_at, size=RUNS) / (buyers / 2)
            if fall < 1:
                world = World(name, partial(Month.bought, buyers=buyers, fall=fall), metric=BOUGHT)
                found = [messages(world, n, until="harm") for n in range(HARM_MONTHS)]
                harm = np.array([each.get("harm", np.inf) for each in found])
            cells = (_times(days), "; ".join(f"{each:.0f}" for each in lost), _times(harm))
            yield f"{buyers:,}", name, *cells


def _times(days: NDArray[np.float64]) -> str:
    """Median and the longest of nine in ten."""
    half, late = np.quantile(days, (0.5, 0.9), method="higher")
    if late < 0.1:
        return f"{1440 * half:.0f}; {1440 * late:.0f} min"
    return f"{24 * half:.1f}; {24 * late:.1f} h" if half < 1 else f"{half:.1f}; {late:.1f} d"


def print_messages() -> None:
    """The tables of docs/benchmarks.md."""
    dice, most = np.random.default_rng(17), most_told()
    head = ("buyers a day", "falls by", "`loss` after (median; 9 of 10)", "lost", "`harm` after")
    table("Until a fall is told of", head, list(waits(dice, most)))
    at = first_told(dice, most, 0.0, LOST_MONTHS, 28_000)
    rows = [("`loss`, at each of 28,000 buyers", *_told(int((at > 0).sum()), LOST_MONTHS))]
    metrics = [{"name": "ctr_ratio", "primary": True}, {"name": "clicks_per_user", "margin": 0.02}]
    quiet = World("quiet", Month.drawn, more={"metrics": metrics, "max_loss": f"{MOST} clicks"})
    told = Counter(kind for n in range(QUIET_MONTHS) for kind in messages(quiet, n))
    rows += [
        (f"`{kind}`, at the end of each day", *_told(told[kind], QUIET_MONTHS))
        for kind in OCCASIONS
        if kind != "withdrawn"
    ]
    table("Months without a difference", ("kind", "told in", "share"), rows)


def _told(count: int, months: int) -> tuple[str, str]:
    low, high = interval(count, months)
    return f"{count:,} of {months:,}", f"{low:.2%} to {high:.2%}"


HEAD = """<!-- Written by benchmarks/claims.py -->
# How often each sentence is false

{months:,} months of 28 days for each world, read at the end of each day. *Said*: the share of
months in which a sentence is ever said; *false*: where it is not true; both with intervals of 95 %.
In all worlds but two the arms have the same clicks over whole weeks (in *weekends* nearly, for
traffic grows).

`python -m benchmarks.claims --world "a bad day" --month 7` prints a month, day by day.

| world | sentence | said | false |
| --- | --- | --- | --- |
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--months", type=int)
    parser.add_argument("--world", choices=[world.name for world in WORLDS])
    parser.add_argument("--month", type=int)
    parser.add_argument("--messages", action="store_true")
    args = parser.parse_args()
    if args.messages:
        print_messages()
        return
    worlds = [world for world in WORLDS if args.world in (None, world.name)]
    if args.month is not None:
        for date, claim, sentence in looks_of(worlds[0], args.month):
            print(f"{date} {claim}: {sentence}")
        return
    months = args.months or MONTHS
    lines: list[str] = []
    ships: dict[str, int] = {}
    for world in worlds:
        began = time.perf_counter()
        said = ledger(world, months)
        lines += rows_of(world, said, months)
        seconds = f"{time.perf_counter() - began:.0f} s"
        print(*rows_of(world, said, months), seconds, sep="\n", flush=True)
        if "ship" not in world.true:
            ships[world.name] = said["ship"]
    if args.world is None:
        _, mark, of_alerts = PAGE.read_text(encoding="utf-8").partition("\n## Alerts\n")
        text = HEAD.format(months=months) + "\n".join(lines) + "\n"
        PAGE.write_text(text + mark + of_alerts, encoding="utf-8")
    for name, count in ships.items():
        hold(f"ship in {name}", count, months, CLEAN if name == WORLDS[0].name else DIRTY)


if __name__ == "__main__":
    main()
