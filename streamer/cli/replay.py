"""``streamer replay``: the engine over files, then the final readout."""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import msgspec

from streamer.cli.files import feed, say_sorted
from streamer.cli.rejection_report import RejectionReport
from streamer.cli.summary import SUMMARISED, summarise, summarised
from streamer.cli.terminal import console_of, note, print_document, waiting
from streamer.errors import StreamerError, UsageError
from streamer.ingest.discovery.proposal import guesses_in
from streamer.ingest.read_sample import ReadSample
from streamer.ingest.record import of_texts
from streamer.ingest.rejections import Explainer
from streamer.query.alert_history import PastAlerts
from streamer.query.experiment_list import Readouts, list_of, listed
from streamer.query.experiments import StoredExperiment
from streamer.query.readout import readout_of
from streamer.query.what_was_read import of_sample
from streamer.server.prometheus_text import render
from streamer.settings import limits
from streamer.settings.durations import DAY_MS
from streamer.settings.file_window import with_windows
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.file_span import spanned
from streamer.sources.files import FileSource
from streamer.sources.line_batch import by_part
from streamer.sources.replay import Dead, Replay
from streamer.sources.sampled import looked_at

_MOST_READOUTS = 4
"""Experiments of which each readout is printed; of more it is their list."""


def main(args: argparse.Namespace) -> int:
    """Read the files to their end, then print what was asked for."""
    with waiting("reading the times"):
        settings = of_texts(load(args.config, os.environ))
        files, settings = spanned(args.files, settings, as_is=args.as_is)
    say_sorted(files)
    is_whole = args.prom or args.json
    windows = summarised(settings)
    settings = settings if is_whole else with_windows(settings, windows)
    source = FileSource(files, settings)
    refused, sample = RejectionReport(settings), ReadSample(settings)
    with _dead_letters(args.dead_letters, settings) as write:

        def on_dead(dead: Dead) -> None:
            refused.add(dead.topic, dead.value, dead.reason, dead.beside)
            if write is not None:
                write(dead)

        replay = Replay(settings, args.partitions, on_dead, args.hash_key)
        past = PastAlerts(settings, replay.catalogue.alert_measures)

        def look(_: int) -> None:
            replay.apply_all()
            past.look(replay.views())

        lines = looked_at(source, sample)
        is_watched = settings.alerts and not is_whole
        feed(replay, source, by_part(lines, DAY_MS, look) if is_watched else lines)
    with waiting("reading the windows"):
        result = replay.readout(None if is_whole else SUMMARISED)
    read = of_sample(settings, sample, result)
    if args.prom:
        for _, family in groupby(result.blocks, attrgetter("family")):
            print_document(render(list(family)))
    elif args.json:
        for part in result.json_parts():
            print_document(part)
    else:
        past.look(replay.views())
        summarise(settings, windows, result, read, replay.catalogue.alert_measures.ratios, past)
        _print_experiments(settings, replay.experiments())
    sys.stdout.flush()
    for each in read.implausible:
        note(str(each))
    guesses = guesses_in(Path(args.config).read_text("utf-8")) if args.config else []
    for guess in guesses if args.strict else ():
        note(f"a guess in {args.config}: {guess}; correct it, or remove the ?")
    code = refused.report(replay.lines, replay.accepted, args.strict, args.files)
    return 1 if args.strict and (read.implausible or guesses) else code


def _print_experiments(settings: Settings, stored: Mapping[str, StoredExperiment]) -> None:
    """The readout of each, or the list of many."""
    from streamer.cli.readout_text import print_list, print_readout

    every = listed(settings, stored, Readouts())
    if len(every) > _MOST_READOUTS:
        console_of().print()
        print_list(list_of(settings, every))
        return
    readouts = {each.stored.experiment.name: each.readout for each in every}
    for name, its in stored.items():
        console_of().print()
        print_readout(readout_of(its, readouts[name]))


@contextlib.contextmanager
def _dead_letters(path: str | None, settings: Settings) -> Iterator[Callable[[Dead], None] | None]:
    """Gives a function that writes one dead line to the file; None without a file."""
    if path is None:
        yield None
        return

    def failed(error: OSError) -> StreamerError:
        return StreamerError(f"cannot write dead letters: {error.strerror}; at {path}")

    try:
        file = open(path, "xb")  # noqa: SIM115  # closed below, where its errors are told apart
    except FileExistsError:
        raise UsageError(
            f"{path} is there already: remove it, or name another file with --dead-letters"
        ) from None
    except OSError as error:
        raise failed(error) from error

    explainer = Explainer(settings)

    def write(dead: Dead) -> None:
        try:
            file.write(_json_line(dead, settings, explainer))
        except OSError as error:
            raise failed(error) from error

    try:
        yield write
    finally:
        try:
            file.close()
        except OSError as error:
            raise failed(error) from error


def _json_line(dead: Dead, settings: Settings, explainer: Explainer) -> bytes:
    """One JSON line; ``value`` is the line unchanged, or ``value_base64`` where it is not UTF-8.

    A line that belongs to no topic has the topic "", and partition and offset -1.
    Of a line longer than ``limits.MAX_LINE_BYTES`` only that much was read: ``cut`` says so.
    """
    log = settings.logs.get(dead.topic)
    letter: dict[str, str | int | bool] = {
        "topic": "" if log is None else log.topic,
        "partition": dead.partition,
        "offset": dead.offset,
        **asdict(explainer.explain(dead.topic, dead.value, dead.reason, dead.beside)),
    }
    try:
        letter["value"] = dead.value.decode()
    except UnicodeDecodeError:
        letter["value_base64"] = base64.b64encode(dead.value).decode()
    if len(dead.value) >= limits.MAX_LINE_BYTES:
        letter["cut"] = True
    return msgspec.json.encode(letter) + b"\n"
