"""How many users and days an experiment takes."""

from __future__ import annotations

from typing import Any

import msgspec

from streamer.errors import StreamerError, UsageError
from streamer.formatting import printable
from streamer.ingest.record import of_texts
from streamer.library.counter import guessed
from streamer.library.reader import MetricReader
from streamer.library.selection import compared_names
from streamer.library.settings import Events, SettingsLike, settings_of, sources_of
from streamer.query.experiment_plans import (
    PlanBasis,
    SizePlan,
    basis_of,
    plan_lines,
    plan_of,
    require_goal,
)
from streamer.sources.all_users_experiment import NAME, lines_of, over_all_users
from streamer.sources.files import FileSource
from streamer.sources.replay import Replay
from streamer.stats.experiments.sizing import Goal


class ExperimentPlan:
    """Users and days that find a lift. ``print`` shows it in sentences."""

    def __init__(self, plan: SizePlan) -> None:
        self._plan = plan
        self.document: dict[str, Any] = msgspec.to_builtins(plan)
        """All figures, as ``streamer plan --json`` prints them."""

    @property
    def users(self) -> int | None:
        """Users of all arms that looks at any time need; None: no number of users is enough."""
        return self._plan.needed.anytime.users

    @property
    def days(self) -> int | None:
        """Days at the traffic of these events, likewise; None: not known, or not in sight."""
        return self._plan.needed.anytime.days

    def __repr__(self) -> str:
        return "\n".join(map(printable, plan_lines(self._plan)))


def plan(
    events: Events | MetricReader,
    metric: str = "ctr_ratio",
    *,
    lift: float,
    power: float = 0.8,
    alpha: float = 0.05,
    arms: int = 2,
    settings: SettingsLike = None,
    experiment: str | None = None,
) -> ExperimentPlan:
    """How many users and days an experiment takes to find a relative lift, by the users of today.

    ``events``: as of ``streamer.read``, of which all users count; or what ``read`` or ``connect``
    returned, with the name of an ``experiment`` whose control counts. ``metric``: one of
    experiments. ``power``: the probability of finding the lift; ``alpha``: the accepted share of
    false finds; ``arms``: of equal size, with the control.

    UsageError where the goal is out of range or there is no such experiment or metric;
    StreamerError where these users do not allow any figures.

    >>> import streamer
    >>> log = [{"type": kind, "user_id": f"u{i}", "item_id": "a", "ts": 1_760_000_000_000 + i}
    ...        for i in range(400) for kind in ("impression", "click")[: 1 + (i % 4 == 0)]]
    >>> plan = streamer.plan(log, "ctr_ratio", lift=0.1)
    >>> plan.users > 1000
    True
    """
    goal, (metric,) = Goal(lift, power, alpha, arms), compared_names(metric)
    require_goal(goal)
    if isinstance(events, MetricReader):
        basis, whose = _of_experiment(events, experiment, metric)
    elif experiment is not None:
        raise UsageError(
            "experiment: give what streamer.read() or streamer.connect() returned as events"
        )
    else:
        basis, whose = _of_everybody(events, settings, metric), "all users of these events"
    if basis is None:
        raise StreamerError(f"nothing is known of {whose}: no impression was counted")
    return ExperimentPlan(plan_of(metric, basis, whose, goal))


def _of_everybody(events: Events, settings: SettingsLike, metric: str) -> PlanBasis | None:
    sources = sources_of(events)
    if settings is None:
        sources, proposal = guessed(sources)
        own = proposal.settings
    else:
        own = settings_of(settings)
    everybody = over_all_users(of_texts(own), metric)
    replay = Replay(everybody)
    for lines in lines_of(FileSource(sources, everybody), everybody):
        replay.feed(lines)
    replay.finish()
    return basis_of(replay.experiments()[NAME], metric)


def _of_experiment(
    reader: MetricReader, name: str | None, metric: str
) -> tuple[PlanBasis | None, str]:
    if name is None:
        raise UsageError(
            "experiment: name the one to learn from, experiment() lists them; or give the events "
            "themselves, of which all users count"
        )
    stored = reader.stored_experiment(name)
    metrics = [each.name for each in stored.experiment.metrics]
    if metric not in metrics:
        raise UsageError(
            f"no metric {metric!r} in experiment {name!r}; it has {', '.join(metrics)}"
        )
    whose = f"the users of {stored.experiment.control}, the control of {name}"
    return basis_of(stored, metric), whose
