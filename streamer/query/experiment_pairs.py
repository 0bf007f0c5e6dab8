"""Between experiments: pairs whose splits depend on each other, layers and holdouts whose users are
shared, and whether the lifts of two experiments interact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import msgspec

from streamer.encoding.limbs import Columns
from streamer.formatting import counted
from streamer.query.experiment_metrics import by_arm, plan_of
from streamer.query.experiments import StoredExperiment
from streamer.query.readout import with_more
from streamer.state.user_days import Arm
from streamer.stats.experiments.interaction import Crossing, interactions
from streamer.stats.experiments.pairs import CrossTable, Independence, Overlap, independence
from streamer.stats.experiments.trials import cumulated

Stored = Mapping[str, StoredExperiment]


@dataclass(frozen=True)
class ExperimentPair(Independence):
    """Two experiments that share users. ``problem``: what is wrong with it, a sentence."""

    first: str
    second: str
    problem: str | None


class PairList(msgspec.Struct, frozen=True):
    """All pairs, those with a problem first, and how many there are in words."""

    words: str
    pairs: Sequence[ExperimentPair]


class InteractionReading(msgspec.Struct, frozen=True):
    """Whether the lift of a treatment by one metric depends on the arm of another experiment."""

    name: str
    treatment: str
    differs: bool
    p_adjusted: float | None
    sentence: str


class InteractionList(msgspec.Struct, frozen=True):
    """The lifts of an experiment by the arms of another one."""

    name: str
    across: str
    metrics: Sequence[InteractionReading]


def pairs(stored: Stored, counts: Counter[tuple[Arm, Arm]]) -> list[ExperimentPair]:
    """All pairs of experiments with users in both, those with a problem first. ``counts``: users by
    the arms of both, as events call the experiments."""
    tables = _tables(stored, counts)
    found = independence(tables)
    every = []
    for (first, second), table in tables.items():
        its = found[first, second]
        overlap = _overlap(stored[first], stored[second], table)
        problem = overlap or (its.sentence(first, second) if its.is_dependent else None)
        pair = with_more(ExperimentPair, its, first=first, second=second, problem=problem)
        every.append(pair)
    return sorted(every, key=lambda p: (not p.problem, p.p_value, p.first, p.second))


def _tables(stored: Stored, counts: Counter[tuple[Arm, Arm]]) -> dict[tuple[str, str], CrossTable]:
    names = {its.experiment.called if its.is_found else name: name for name, its in stored.items()}
    users: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for ((one, a), (two, b)), n in counts.items():
        if one in names and two in names:
            users[names[one], names[two]][a, b] += n
    shares = {name: plan_of(its.experiment, is_over=False).shares for name, its in stored.items()}
    tables = {}
    for first, second in combinations(stored, 2):  # in the order of the settings
        both = users[first, second] + Counter(
            {(a, b): n for (b, a), n in users[second, first].items()}
        )
        if both:
            tables[first, second] = CrossTable(both, shares[first], shares[second])
    return tables


def _overlap(first: StoredExperiment, second: StoredExperiment, table: CrossTable) -> str:
    """Users whom two experiments of a layer share, or whom a holdout should have kept out."""
    one, two = first.experiment, second.experiment
    if one.layer and one.layer == two.layer:
        shared = Overlap(sum(table.users.values()), first.users, second.users)
        return f"Layer {one.layer}: {shared.sentence(one.name, two.name)}"
    for holdout, other, place in ((one, two, 0), (two, one, 1)):
        held = sum(n for arms, n in table.users.items() if arms[place] == holdout.control)
        if holdout.holdout and not other.holdout and held:
            return (
                f"{counted(held, 'user')} whom {holdout.name} holds out (its arm "
                f"{holdout.control}) {'is' if held == 1 else 'are'} in {other.name}."
            )
    return ""


def pair_list(stored: Stored, counts: Counter[tuple[Arm, Arm]]) -> PairList:
    """All pairs as every face shows them."""
    every = pairs(stored, counts)
    wrong = sum(bool(pair.problem) for pair in every)
    shared = counted(len(every), "pair")
    words = f"{shared} of experiments {'shares' if len(every) == 1 else 'share'} users"
    return PairList(f"{words}; {counted(wrong, 'problem')}.", every)


# Interactions ------------------------------------------------------------------------------------


def interaction_list(
    stored: StoredExperiment, other: StoredExperiment, sums: Mapping[str, Sequence[Columns]]
) -> InteractionList:
    """Whether the lifts of an experiment depend on the arm of another one. ``sums``: arm of the
    other one → sums in every partition."""
    plan = plan_of(stored.experiment, is_over=False)
    crossings = {
        name: Crossing(plan, dict(_cells(stored, name, sums)))
        for name in (metric.name for metric in stored.experiment.metrics)
        if not stored.ratios[name].parts
    }
    found = interactions(crossings, stored.experiment.alpha)
    first, second = stored.experiment.name, other.experiment.name
    metrics = [
        InteractionReading(
            *(metric, each.treatment, each.differs, each.p_adjusted),
            each.sentence(metric, second, stored.ratios[metric].form),
        )
        for metric, tests in found.items()
        for each in tests
    ]
    return InteractionList(first, second, metrics)


def _cells(
    stored: StoredExperiment, metric: str, sums: Mapping[str, Sequence[Columns]]
) -> Iterator[tuple[str, Any]]:
    last = stored.last_day
    for arm, parts in sums.items():
        if last is not None:
            cell = cumulated(stored.trial, parts, last)
            yield arm, by_arm(stored.trial, stored.ratios[metric], cell)
