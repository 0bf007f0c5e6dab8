"""``streamer readout``: an experiment in words and numbers, from Redis or from files."""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from streamer.cli.files import replayed
from streamer.cli.readout_text import print_readout
from streamer.errors import UsageError
from streamer.ingest.keying import require_users
from streamer.ingest.record import of_texts
from streamer.metrics.catalogue import Catalogue
from streamer.query.experiments import (
    ExperimentReadout,
    StoredExperiment,
    document,
    history,
    stored_experiments,
)
from streamer.settings.experiments import date_of, day_of
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.state.contents import contents_of
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.user_days import sums_of_days


@dataclass(frozen=True)
class Asked:
    """An experiment by name, and the days from ``first`` to ``last``; None: all there are."""

    name: str
    first: datetime.date | None = None
    last: datetime.date | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all days."""
        return self.first is None and self.last is None


def main(args: argparse.Namespace) -> int:
    """Print one experiment; UsageError where the settings have none of that name."""
    settings = load(args.config, os.environ)
    asked = Asked(args.experiment, args.first, args.last)
    stored, found, code = read_experiment(settings, asked, args.file)
    if args.json:
        made = document(stored, found) | ({"history": history(stored)} if asked.is_whole else {})
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(made), indent=1).decode() + "\n")
    else:
        print_readout(stored, found)
    return code


def read_experiment(
    settings: Settings, asked: Asked, files: Sequence[str] | None
) -> tuple[StoredExperiment, ExperimentReadout, int]:
    """What is known of an experiment, its readout, and an exit code: from files, or without any
    from the state in Redis."""
    names = [e.name for e in settings.experiments]
    if asked.name not in names:
        known = ", ".join(names) or "none"
        raise UsageError(f"no experiment {asked.name!r}; the settings have {known}")
    if not files:
        return *asyncio.run(_of_state(settings, asked)), 0
    settings = of_texts(settings)
    replay, code = replayed(settings, files)
    return *_of_replay(replay, asked), code


async def _of_state(settings: Settings, asked: Asked) -> tuple[StoredExperiment, ExperimentReadout]:
    catalogue, store = Catalogue(settings), RedisStore(settings.redis)
    try:
        reader = Reader(store, contents_of(settings, catalogue))
        await reader.refresh()
        require_users(settings, reader.keyed)
        measures = catalogue.experiment_measures
        stored = stored_experiments(settings, measures, reader.views)[asked.name]
        if asked.is_whole:
            return stored, stored.read()
        within = _range(stored, asked)
        parts = await sums_of_days(store, settings, catalogue, stored.trial, within)
        return stored, stored.of_parts(parts, within.start, within.stop - 1)
    finally:
        await store.close()


def _of_replay(replay: Replay, asked: Asked) -> tuple[StoredExperiment, ExperimentReadout]:
    stored = replay.experiments()[asked.name]
    if asked.is_whole:
        return stored, stored.read()
    within = _range(stored, asked)
    parts = replay.sums_of_days(stored.trial, within)
    return stored, stored.of_parts(parts, within.start, within.stop - 1)


def _range(stored: StoredExperiment, asked: Asked) -> range:
    """The days that were asked for; UsageError where the experiment has none of them."""
    first, last = asked.first, asked.last
    days, experiment = stored.trial.days, stored.experiment
    if stored.last_day is None:
        raise UsageError(f"experiment {experiment.name!r} starts only on {experiment.start}")
    start = days.start if first is None else day_of(first)
    stop = stored.last_day + 1 if last is None else day_of(last) + 1
    if last is not None and day_of(last) > stored.last_day:
        raise UsageError(
            f"--to {last}: experiment {experiment.name!r} has events up to "
            f"{date_of(stored.last_day)} so far"
        )
    if not (days.start <= start < stop <= days.stop):
        flags = " ".join(f"--{n} {d}" for n, d in (("from", first), ("to", last)) if d is not None)
        raise UsageError(
            f"{flags}: experiment {experiment.name!r} has the days from {experiment.start} to "
            f"{min(date_of(stored.last_day), experiment.end or datetime.date.max)} so far"
        )
    return range(start, stop)
