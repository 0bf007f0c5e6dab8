"""``streamer readout``: an experiment in words and numbers, from Redis or from files."""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from streamer.cli.files import replayed, say_sorted
from streamer.cli.readout_text import print_exploration, print_list, print_pairs, print_readout
from streamer.cli.terminal import print_json, print_line, waiting
from streamer.errors import UsageError
from streamer.ingest.keying import require_users
from streamer.ingest.record import of_texts
from streamer.metrics.catalogue import Catalogue
from streamer.query.experiment_list import (
    Readouts,
    list_of,
    listed,
    only,
    unknown_experiment,
)
from streamer.query.experiment_pairs import interaction_list, pair_list
from streamer.query.experiments import (
    JudgedExperiment,
    StoredExperiment,
    require_user_unit,
    stored_experiments,
)
from streamer.query.exploration import (
    Exploration,
    explored,
    not_explored,
    values_joined,
)
from streamer.query.readout import readout_of
from streamer.settings.durations import date_of, day_of
from streamer.settings.experiments import Experiment
from streamer.settings.file_window import with_windows
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.settings.names import nearest
from streamer.settings.validation import validate
from streamer.sources.file_span import with_times
from streamer.sources.replay import Replay
from streamer.state.contents import contents_of
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.snapshot import View
from streamer.state.user_days import (
    DAY,
    Across,
    Days,
    DaysBefore,
    SumsByValue,
    all_pairs,
    sums_of_days,
)

T = TypeVar("T")
DaysOf = Callable[[StoredExperiment], Days | DaysBefore | None]
"""Of what is known of an experiment, the days over which sums are computed from users' rows; None:
the stored sums will do."""


@dataclass(frozen=True)
class ReadoutRequest:
    """An experiment by name, and the days from ``first`` to ``last``; None: all there are. ``by``:
    the dimension that it is explored by."""

    name: str
    first: datetime.date | None = None
    last: datetime.date | None = None
    by: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all days and users together."""
        return self.first is None and self.last is None and self.by is None

    def days_of(self, stored: StoredExperiment) -> Days | None:
        """The days, if not simply all are asked for."""
        if self.is_whole:
            return None
        require_user_unit(stored, "--from and --to")
        return Days(stored.trial, _range(stored, self), self.by)


def main(args: argparse.Namespace) -> int:
    """Print one experiment, or the list of all; UsageError where there is none of that name."""
    settings = load(args.config, os.environ)
    if args.experiment is None:
        return _list(settings, args)
    if args.across is not None:
        return _across(settings, args)
    request = ReadoutRequest(args.experiment, args.first, args.last, args.by)
    if request.by is not None:
        return _explore(settings, request, request.by, args)
    stored, readout, code = read_experiment(settings, request, args.file)
    made = readout_of(stored, readout, with_history=args.json and request.is_whole)
    if args.json:
        print_json(made)
    else:
        print_readout(made)
    return code


def _list(settings: Settings, args: argparse.Namespace) -> int:
    """Print all experiments, by what they need."""
    if args.first or args.last or args.by:
        raise UsageError("--from, --to and --by are of one experiment: name it")
    if args.across is not None:
        raise UsageError(f"--across {args.across}: name the experiment whose lifts are asked for")
    if args.pairs:
        return _pairs(settings, args)
    stored, code = read_all(settings, args.file)
    every = only(listed(settings, stored, Readouts()), args.only)
    made = list_of(settings, every)
    if args.json:
        print_json(made)
    else:
        print_list(made)
    return code


def _pairs(settings: Settings, args: argparse.Namespace) -> int:
    """Print the pairs of experiments that share users, those with a problem first."""
    if args.file:
        replay, code = _replayed(settings, args.file)
        made = pair_list(replay.experiments(), replay.pairs())
    else:
        (stored, counts), code = _asked(_with_store(settings, all_pairs)), 0
        made = pair_list(stored, counts)
    if args.json:
        print_json(made)
    else:
        print_pairs(made)
    return code


def _across(settings: Settings, args: argparse.Namespace) -> int:
    """Print whether the lifts of an experiment depend on the arm in another one."""

    def rows_of(stored: Mapping[str, StoredExperiment]) -> Across:
        one, two = _named(stored, args.experiment), _named(stored, args.across)
        if one is two:
            raise UsageError(f"--across {args.across}: name another experiment")
        for each in (one, two):
            require_user_unit(each, "--across")
        return Across(one.trial, two.trial, one.so_far)

    if args.file:
        replay, code = _replayed(settings, args.file)
        stored = replay.experiments()
        sums = replay.sums_of_days(rows_of(stored))
    else:
        stored, code = read_all(settings, None)
        rows = rows_of(stored)

        async def read(store: RedisStore, settings: Settings, catalogue: Catalogue) -> SumsByValue:
            return await sums_of_days(store, settings, catalogue, rows)

        stored, sums = _asked(_with_store(settings, read))
    made = interaction_list(stored[args.experiment], stored[args.across], sums)
    if args.json:
        print_json(made)
    else:
        for metric in made.metrics:
            print_line(f"{metric.treatment}: {metric.sentence}")
    return code


def read_exploration(
    settings: Settings, request: ReadoutRequest, by: str, files: Sequence[str] | None
) -> tuple[StoredExperiment, Exploration, int]:
    """What is known of an experiment, its exploration by a dimension, and an exit code."""
    experiment = experiment_of(settings, request.name)
    if files:
        settings = _exploring(settings, experiment, by)
    else:
        dimensions, otherwise = settings.dimension_names, ", or give the events by --file"
        if wrong := not_explored(experiment, by, dimensions, otherwise):
            raise UsageError(f"--by {by}: {wrong}")
    stored, parts, code = read_sums(settings, request.name, request.days_of, files)
    return stored, explored(stored, by, parts or {}, _range(stored, request)), code


def _explore(settings: Settings, request: ReadoutRequest, by: str, args: argparse.Namespace) -> int:
    _, exploration, code = read_exploration(settings, request, by, args.file)
    if args.json:
        print_json(exploration)
    else:
        print_exploration(exploration)
    return code


def _exploring(settings: Settings, experiment: Experiment, by: str) -> Settings:
    """The settings, with the dimension among those that the experiment is explored by."""
    if by == DAY and DAY not in settings.dimension_names:
        return settings
    explore = tuple(dict.fromkeys([*experiment.explore, by]))
    own = msgspec.structs.replace(experiment, explore=explore)
    experiments = tuple(own if e == experiment else e for e in settings.experiments)
    settings = msgspec.structs.replace(settings, experiments=experiments)
    validate(settings)
    return settings


def experiment_of(settings: Settings, name: str) -> Experiment:
    """The experiment of this name; UsageError where the settings have none."""
    known = {e.name: e for e in settings.experiments}
    if name not in known:
        close = nearest(name, known)
        names = f"did you mean {close!r}?" if close else f"the settings have {', '.join(known)}"
        raise UsageError(f"no experiment {name!r}; {names if known else 'the settings have none'}")
    return known[name]


def _replayed(settings: Settings, files: Sequence[str]) -> tuple[Replay, int]:
    """The engine after these files, for readouts: a window of the settings is enough."""
    own = of_texts(settings)
    own = msgspec.structs.replace(own, alerts=())
    in_order, _ = with_times(files, own)
    say_sorted(in_order)
    return replayed(with_windows(own, own.windows.lengths[:1]), in_order)


def read_all(
    settings: Settings, files: Sequence[str] | None
) -> tuple[dict[str, StoredExperiment], int]:
    """What is known of all experiments, and an exit code: from files, or without any from the state
    in Redis."""
    if not files:
        return _asked(_with_store(settings, _nothing))[0], 0
    replay, code = _replayed(settings, files)
    return replay.experiments(), code


def _named(stored: Mapping[str, StoredExperiment], name: str) -> StoredExperiment:
    if name not in stored:
        raise UsageError(unknown_experiment(name, stored))
    return stored[name]


def read_experiment(
    settings: Settings, request: ReadoutRequest, files: Sequence[str] | None
) -> tuple[StoredExperiment, JudgedExperiment, int]:
    """What is known of an experiment, its readout, and an exit code: from files, or without any
    from the state in Redis."""
    stored, parts, code = read_sums(settings, request.name, request.days_of, files)
    if parts is None:
        return stored, stored.read(), code
    within = _range(stored, request)
    return stored, stored.of_parts(parts.get("", []), within.start, within.stop - 1), code


def read_sums(
    settings: Settings, name: str, days_of: DaysOf, files: Sequence[str] | None
) -> tuple[StoredExperiment, SumsByValue | None, int]:
    """What is known of an experiment, the sums of ``days_of`` it, and an exit code: from files, or
    without any from the state in Redis."""
    if not settings.finds_experiments:
        experiment_of(settings, name)  # before anything is read
    if not files:
        return *_asked(_of_state(settings, name, days_of)), 0
    replay, code = _replayed(settings, files)
    stored = _named(replay.experiments(), name)
    days = days_of(stored)
    if days is None:
        return stored, None, code
    sums = replay.sums_of_days(days)
    return stored, _shown(replay.settings, days.by, replay.views(), sums), code


def _asked(answer: Coroutine[Any, Any, T]) -> T:
    """What Redis answers; meanwhile a terminal shows what is waited for."""
    with waiting("reading the state in Redis"):
        return asyncio.run(answer)


async def _with_store(
    settings: Settings, read: Callable[[RedisStore, Settings, Catalogue], Awaitable[T]]
) -> tuple[dict[str, StoredExperiment], T]:
    """What is known of all experiments in the state in Redis, and what is read besides."""
    catalogue, store = Catalogue(settings), RedisStore(settings.redis)
    try:
        reader = await _reader(store, settings, catalogue)
        measures, acted = catalogue.experiment_measures, reader.acted
        stored = stored_experiments(settings, measures, reader.views, acted=acted)
        return stored, await read(store, settings, catalogue)
    finally:
        await store.close()


async def _reader(store: RedisStore, settings: Settings, catalogue: Catalogue) -> Reader:
    reader = Reader(store, contents_of(settings, catalogue))
    await reader.refresh()
    require_users(settings, reader.keyed)
    return reader


async def _nothing(*_: object) -> None:
    return None


async def _of_state(
    settings: Settings, name: str, days_of: DaysOf
) -> tuple[StoredExperiment, SumsByValue | None]:
    catalogue, store = Catalogue(settings), RedisStore(settings.redis)
    try:
        reader = await _reader(store, settings, catalogue)
        measures = catalogue.experiment_measures
        every = stored_experiments(settings, measures, reader.views, acted=reader.acted)
        stored = _named(every, name)
        days = days_of(stored)
        if days is None:
            return stored, None
        sums = await sums_of_days(store, settings, catalogue, days)
        return stored, _shown(settings, days.by, reader.views, sums)
    finally:
        await store.close()


def _shown(
    settings: Settings, by: str | None, views: Sequence[View], sums: SumsByValue
) -> SumsByValue:
    """The sums under values that are shown; those of others together."""
    if by is None:
        return sums
    return values_joined(sums, settings, views, by)


def _range(stored: StoredExperiment, request: ReadoutRequest) -> range:
    """The days that were asked for; UsageError where the experiment has none of them."""
    first, last = request.first, request.last
    days, experiment = stored.trial.days, stored.experiment
    if stored.starts_later:
        raise UsageError(stored.starts_later)
    so_far = stored.so_far
    start = days.start if first is None else day_of(first)
    stop = so_far.stop if last is None else day_of(last) + 1
    if last is not None and stop > so_far.stop:
        raise UsageError(
            f"--to {last}: experiment {experiment.name!r} has events up to "
            f"{date_of(so_far[-1])} so far"
        )
    if not (days.start <= start < stop <= days.stop):
        flags = " ".join(f"--{n} {d}" for n, d in (("from", first), ("to", last)) if d is not None)
        raise UsageError(
            f"{flags}: experiment {experiment.name!r} has the days from {experiment.start} to "
            f"{min(date_of(so_far[-1]), experiment.end or datetime.date.max)} so far"
        )
    return range(start, stop)
