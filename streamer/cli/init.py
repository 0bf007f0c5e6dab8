"""``streamer init``: propose settings for events of any shape, from some of them."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from streamer.cli.files import say_sorted
from streamer.cli.read_table import print_read
from streamer.cli.terminal import console_of, note, print_document, waiting
from streamer.cli.wizard import Wizard, can_ask
from streamer.errors import ProposalError, StreamerError, UsageError
from streamer.ingest.discovery.proposal import Proposal, propose
from streamer.ingest.discovery.shapes import SampledTopic
from streamer.ingest.discovery.trying import Tried, decoded_samples, tried
from streamer.ingest.encoded_samples import as_texts
from streamer.ingest.read_sample import ReadSample
from streamer.ingest.record import of_texts, record_decoder, rekeyer
from streamer.ingest.sampling import sample_last
from streamer.kafka.admin import quiet
from streamer.query.what_was_read import WhatWasRead, of_sample
from streamer.settings.event_fields import ALL_KINDS
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.file_span import spanned
from streamer.sources.files import FileSource
from streamer.sources.lines import STDIN
from streamer.sources.sampled import looked_at, sample_files, without

_SHOWN = 5
"""Records that are shown as they would be counted."""
_SHOWN_CHARS = 400
_REASONS = 5
_ALWAYS_MS = 2**62
_MOST_IGNORED = 0.01
"""Share of records that a strict look lets be ignored."""


def main(args: argparse.Namespace) -> int:
    """Write the proposal; 1 where none of the records would be counted, or strictly where what they
    are read as is implausible."""
    settings = load(args.config, os.environ)
    out = None if args.out is None else Path(args.out)
    if out is not None and out.exists():
        raise UsageError(f"{out} is there already: remove it, or name another file with --out")
    if bool(args.files) == bool(args.brokers or args.topic):
        raise UsageError("name FILEs, or a cluster with --brokers (and --topic), but not both")
    brokers, columns = None, ()
    if args.files:
        columns = tuple(args.columns.split(",")) if args.columns else ()
        samples = sample_files(args.files, settings, columns)
        origin = " ".join(Path(file).name for file in args.files)
    else:
        if "debug" not in args:
            quiet()
        kafka = replace(settings.kafka, brokers=args.brokers or settings.kafka.brokers)
        settings = replace(settings, kafka=kafka)
        brokers = settings.kafka.brokers
        with waiting("reading the last records of the topics"):
            found = asyncio.run(sample_last(settings, args.topic or ()))
            samples = as_texts(found, args.registry)
        origin = ", ".join(sample.topic for sample in samples)
    asks = can_ask() and not args.no_input and STDIN not in args.files
    wizard = Wizard(console_of(is_stderr=True)) if asks else None
    try:
        proposal = propose(samples, origin, brokers, wizard)
    except ProposalError as error:
        if not error.toml:
            raise
        _write(error.toml, out)
        note(str(error))
        step = "write a row for each event (docs/events.md)"
        if error.is_log:
            step = (
                f"complete {out or 'these settings'} where it says missing, then {_command(args)}"
            )
        note(f"next: {step}")
        return error.exit_code
    args.files = without(args.files, proposal.left_out)
    if args.files and STDIN not in args.files:  # the settings say which cells are numbers
        samples = sample_files(args.files, proposal.settings, columns)
    with waiting("trying the settings"):
        made = tried(proposal.settings, samples)
    if made.are_too_many_refused:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in made.reasons.most_common(_REASONS))
        what = f"settings would refuse {len(made.refused):,} of {made.records:,} records"
        raise ProposalError(f"{what}: {reasons}", ())
    _write(proposal.toml, out)
    for line in _report(proposal, made, samples):
        note(line)
    read = _read(args.files, proposal.settings, samples)
    if made.total:
        print_read(console_of(is_stderr=True), proposal.settings, read)
    doubts = [f"not sure: {doubt}" for doubt in (*proposal.doubts, *read.implausible)]
    for line in (*doubts, *_next(args, out)):
        note(line)
    return 1 if not made.total or (args.strict and _is_doubtful(proposal, made, read)) else 0


def _is_doubtful(proposal: Proposal, made: Tried, read: WhatWasRead) -> bool:
    """Whether anything is a guess or looks wrong."""
    is_much_ignored = made.ignored > _MOST_IGNORED * made.records
    return bool(proposal.guesses or read.implausible) or is_much_ignored


def _read(files: Sequence[str], settings: Settings, samples: Sequence[SampledTopic]) -> WhatWasRead:
    """What the settings read of the first lines of files; of topics, and of a pipe, of samples."""
    settings = of_texts(settings)
    sample = ReadSample(settings)
    if not files or STDIN in files:
        for log, record, decoded in decoded_samples(settings, samples):
            sample.add(log, record, decoded)
        return of_sample(settings, sample)
    in_order, settings = spanned(files, settings)
    say_sorted(in_order)
    for _ in looked_at(FileSource(in_order, settings), sample):
        if sample.is_full:
            break
    return of_sample(settings, sample)


def _write(toml: str, out: Path | None) -> None:
    if out is None:
        print_document(toml)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(toml)
    except OSError as error:
        raise StreamerError(f"cannot write settings: {error.strerror}; at {out}") from error


def _report(proposal: Proposal, made: Tried, samples: Sequence[SampledTopic]) -> Iterator[str]:
    """What the records would be, some of them, and what is not sure."""
    names = {"sessions": "session events"}
    kinds = [f"{n:,} {names.get(kind, kind)}" for kind, n in made.accepted.items() if n]
    counted = ", ".join(kinds) or "none"
    refused = len(made.refused)
    ignored = f", {made.ignored:,} ignored" if made.ignored else ""
    more = f", {refused:,} refused" if refused else ""
    head = f"{made.total:,} events of {made.records:,} records would be counted"
    yield f"{head} ({counted}){ignored}{more}"
    for reason, n in made.reasons.most_common(_REASONS):
        yield f"refused: {n:,} {reason}"
    for line in _as_counted(proposal.settings, samples, _SHOWN):
        shown = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
        yield f"counted as {shown}"


def _next(args: argparse.Namespace, out: Path | None) -> Iterator[str]:
    first = "" if out else "save this as streamer.toml"
    if not args.files and args.config:
        yield f"its security is not written: copy [kafka] of {args.config}"
    then = "" if STDIN in args.files else _command(args)
    if first or then:
        yield f"next: {', then '.join(step for step in (first, then) if step)}"


def _command(args: argparse.Namespace) -> str:
    """What reads the sources by the settings that were written."""
    command = f"streamer replay {' '.join(args.files)}" if args.files else "streamer check"
    return f"{command} -c {args.out or 'streamer.toml'}"


def _as_counted(settings: Settings, samples: Sequence[SampledTopic], most: int) -> Iterator[str]:
    """Some records that are events, in our own shape: of each kind in turn."""
    settings = of_texts(settings)
    by_kind: dict[str, list[str]] = {kind: [] for kind in ALL_KINDS}
    for sample in samples:
        for kind, line in _events(settings, sample):
            if len(by_kind[kind]) < most:
                by_kind[kind].append(line)
    shown = 0
    for i in range(most):
        for lines in by_kind.values():
            if i < len(lines) and shown < most:
                shown += 1
                yield lines[i]


def _events(settings: Settings, sample: SampledTopic) -> Iterator[tuple[str, str]]:
    if not settings.reads_sources:
        decoder = record_decoder(settings)
        for record in sample.records:
            for log in settings.logs:
                events = decoder.decode_all(log, record.value, timestamp_ms=record.timestamp_ms)
                if not isinstance(events[0], str):
                    yield log, record.value.decode()
        return
    if sample.topic not in settings.logs:
        return
    rekeying, offset = rekeyer(settings, 1), np.array([0])
    for i, record in enumerate(sample.records):
        times, origin = np.array([record.timestamp_ms]), (sample.topic, i)
        metadata = [(record.key, record.encoded_headers)]
        values = (offset, times, [record.value], metadata, 0, _ALWAYS_MS)
        written, *_ = rekeying.records(sample.topic, origin, *values)
        made_id = f"{sample.topic}/{i}/0"
        for kind, _, events in written:
            for _, _, value in events:
                event = msgspec.json.decode(value).items()
                # Without the id that was made for it.
                own_event = {name: x for name, x in event if x != made_id}
                yield ALL_KINDS[kind], msgspec.json.encode(own_event).decode()
