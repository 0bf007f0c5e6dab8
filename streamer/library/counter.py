"""Counting events in this process: of a file or a table, or as a program gives them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from streamer.errors import CodecError, DamagedError, SourceError, UsageError
from streamer.formatting import percent, printable, span
from streamer.ingest.discovery.proposal import Proposal, propose
from streamer.ingest.discovery.shapes import SampledTopic
from streamer.ingest.discovery.trying import tried
from streamer.ingest.discovery.writing import toml_value
from streamer.ingest.read_sample import ReadSample
from streamer.ingest.record import line_stamper, of_texts
from streamer.library.background import run_apart
from streamer.library.events_read import EventsRead, RejectedEvents
from streamer.library.experiment import ExperimentReport
from streamer.library.reader import CountedEvents, MetricReader
from streamer.library.selection import compared_names
from streamer.library.settings import Events, SettingsLike, is_whole, settings_of, sources_of
from streamer.query.what_was_read import of_sample
from streamer.settings.durations import DAY_MS, date_of
from streamer.settings.experiments import Experiment, ExperimentMetric
from streamer.settings.file_window import FILE, widest, without_file_window
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.settings.validation import validate
from streamer.sources.file_span import spanned
from streamer.sources.files import TABLE, FileSource, opened
from streamer.sources.read_once import PeekedLines, is_read_once
from streamer.sources.replay import Replay
from streamer.sources.sampled import looked_at, sample_files, without
from streamer.state.codec import body_of, framed
from streamer.state.memory import MemoryStore
from streamer.state.snapshot import first_event_ms
from streamer.state.user_days import RowsOfUsers, SumsByValue

_PLACE = "counter"
"""Where a state belongs, for its checksum."""
_GUESSED = {"windows": {"lengths": ["5m", "1h", "24h", "30d"]}}
"""Settings that a guess has besides: the longest window covers most logs."""


class _KeptCounter(msgspec.Struct, array_like=True):
    """A counter as bytes."""

    store: bytes
    settings: bytes
    reasons: dict[str, int]
    of_no_topic: int


class Counter(MetricReader):
    """Counts events exactly as a worker does, in this process, without Kafka and Redis.

    It is for tests of one's own pipeline, simulations, and services that count by themselves. What
    it holds is lost with the process, unless ``state`` is kept. One thread at a time may use it.

    >>> import streamer
    >>> counter = streamer.Counter()
    >>> counter.add({"type": "impression", "user_id": "u", "item_id": "a", "ts": 1_760_000_000_000})
    >>> counter.add({"type": "click", "user_id": "u", "item_id": "a", "ts": 1_760_000_001_000})
    >>> counter.metrics("window_clicks")["value"]
    [1]
    """

    def __init__(self, settings: SettingsLike = None) -> None:
        """``settings``: a file, a mapping, or None for the defaults. SettingsError where they are
        wrong."""
        self.settings = of_texts(settings_of(settings))
        self._rejected = RejectedEvents(self.settings)
        self.proposal: Proposal | None = None
        """The settings that ``read`` guessed, with what is not sure about them."""
        self._sample = ReadSample(self.settings)
        self._replay = Replay(self.settings, on_dead=self._rejected.add)
        self._read: CountedEvents | None = None
        self._again: list[Any] | None = []
        """What all was counted of, if it can be read again."""
        self._stamper = line_stamper(self.settings, TABLE)

    def add(self, events: Events) -> None:
        """Count events: a path or several, a table (anything with Arrow's PyCapsule interface), a
        mapping, or an iterable of mappings.

        Events are those of one log, in the order in which they come; several sources of one call
        are merged by time. A bad event is in ``rejected``, and the others count. SourceError where
        a file or a table cannot be read; then what was read before counts.
        """
        sources = sources_of(events)
        can_again = all(is_whole(each) and not is_read_once(each) for each in sources)
        self._feed(sources, sources if can_again else None)

    def _feed(self, sources: Sequence[Any], again: Sequence[Any] | None) -> None:
        """Count sources. ``again``: what gives the same events a second time; None: nothing."""
        if again is None or self._again is None:
            self._again = None
        else:
            self._again.extend(again)
        self._read = None
        is_table = len(sources) == 1 and not isinstance(sources[0], str | Path)
        source = FileSource(
            sources,
            self.settings,
            begin_ms=self._replay.last_ms,
            stamper_of=(lambda _: self._stamper) if is_table else None,
        )
        for lines in looked_at(source, self._sample):
            self._replay.feed(lines)

    @property
    def rejected(self) -> RejectedEvents:
        """Events that do not count, each with the reason."""
        self._settle()
        return self._rejected

    @property
    def what_was_read(self) -> EventsRead:
        """How many events of each topic and kind there were, and what about them is implausible."""
        read = of_sample(self.settings, self._sample, self._readout(self._counted()))
        return EventsRead(read, self._rejected.of_no_topic, list(self._windows_note()))

    def _windows_note(self) -> Iterator[str]:
        """That no window covers all that was counted."""
        counted, lengths = self._counted(), self.settings.windows.lengths_ms
        longest = widest(self.settings)
        span_ms = counted.stream_ms - first_event_ms(counted.views)
        if span_ms > lengths[longest] and longest != FILE:
            share = lengths[longest] / span_ms
            yield (
                f"the longest window, {longest}, covers the last {percent(share)} of the events: "
                f"for all of them add one of {-(-span_ms // DAY_MS) + 1}d to windows.lengths"
            )

    def compare(
        self,
        dimension: str,
        *,
        control: str,
        treatment: str,
        metrics: str | Sequence[str] = ("ctr_ratio",),
        split: tuple[float, float] = (1.0, 1.0),
    ) -> ExperimentReport:
        """Two values of a dimension as the arms of an experiment, without settings for it: all
        events are read again.

        ``metrics``: the first one decides; each is better if higher. ``split``: the planned shares
        of control and treatment, in any unit. UsageError where no event has an arm, where there is
        no such metric, or where the events cannot be read again: those of an iterator, a pipe or a
        state, and mappings that were added.
        """
        self._require_values(dimension, (control, treatment))
        if self._again is None:
            raise UsageError(
                "compare() reads the events again, and those of iterators, pipes and states, and "
                "mappings that were added, are not kept: give streamer.read() a list or a file, or "
                "declare the experiment in [[experiments]]"
            )
        first_ms = first_event_ms(self._counted().views)
        experiment = Experiment(
            name=dimension,
            dimension=dimension,
            control=control,
            split={control: split[0], treatment: split[1]},
            start=date_of(first_ms // DAY_MS),
            metrics=tuple(ExperimentMetric(name=name) for name in compared_names(metrics)),
        )
        replaced = {"experiments": (experiment,), "alerts": ()}
        settings = msgspec.structs.replace(without_file_window(self.settings), **replaced)
        validate(settings)
        again = _counted(self._again, settings)
        if again._replay.lines != self._replay.lines:
            raise UsageError(
                f"compare() reads the events again, and there are {again._replay.lines:,} now, of "
                f"which {self._replay.lines:,} were counted: keep the events as they were"
            )
        return again.experiment(dimension)

    def _require_values(self, dimension: str, values: Sequence[str]) -> None:
        """UsageError where there is no such dimension, or no event with one of these values."""
        if dimension not in self.settings.dimension_names:
            known = ", ".join(self.settings.dimension_names) or "none"
            raise UsageError(f"no dimension {dimension!r}: there are {known}")
        there = {str(v) for v in self.metrics("impressions_total", by=dimension)[dimension]}
        for value in values:
            if value not in there:
                known = ", ".join(sorted(there)) or "none"
                raise UsageError(f"no event has {dimension} = {value!r}: there are {known}")

    # State ---------------------------------------------------------------------------------------

    def state(self) -> bytes:
        """All that is counted, as workers store it, with the settings. ``from_state`` goes on with
        it."""
        self._settle()
        store: MemoryStore = run_apart(self._replay.store())
        rejected = dict(self._rejected.reasons), self._rejected.of_no_topic
        own = msgspec.json.encode(without_file_window(self.settings))
        kept = _KeptCounter(store.dump(), own, *rejected)
        return framed(msgspec.msgpack.encode(kept), _PLACE)

    @classmethod
    def from_state(cls, state: bytes, settings: SettingsLike = None) -> Counter:
        """A counter that goes on where ``state`` was taken, with its settings or with others. What
        those counted is mapped to these, as workers do it: a window or metric that is new counts
        from here on. Of rejected events there are the counts. CodecError where these bytes are no
        state, SettingsError where the settings cannot go on with it.

        >>> import streamer
        >>> counter = streamer.Counter()
        >>> shown = {"type": "impression", "user_id": "u", "item_id": "a"}
        >>> counter.add({**shown, "ts": 1_760_000_000_000})
        >>> streamer.Counter.from_state(counter.state()).metrics("window_impressions")["value"]
        [1]
        """
        try:
            kept = msgspec.msgpack.decode(body_of(state, _PLACE), type=_KeptCounter)
            own = msgspec.json.decode(kept.settings, type=Settings)
        except (DamagedError, msgspec.MsgspecError) as error:
            raise CodecError(f"no state of a counter: {error}") from None
        counter = cls(own if settings is None else settings)
        store = MemoryStore.loaded(kept.store)
        restored = Replay.of_store(counter.settings, store, counter._rejected.add)
        counter._replay, counter._again = run_apart(restored), None
        counter._rejected.count(kept.reasons, kept.of_no_topic)
        return counter

    # Reading -------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Everything that was added is counted, as by a worker that has caught up."""
        if self._read is None:
            self._replay.finish()
            self._read = CountedEvents(self._replay.views(), {})

    def _counted(self) -> CountedEvents:
        self._settle()
        assert self._read is not None
        return self._read

    def _sums_of_days(self, rows: RowsOfUsers) -> SumsByValue:
        self._settle()
        return self._replay.sums_of_days(rows)

    def __repr__(self) -> str:
        return "\n\n".join([*self._span(), repr(self.what_was_read), *self._notes()])

    def _span(self) -> Iterator[str]:
        """From when to when events are, and the windows."""
        counted = self._counted()
        if counted.stream_ms:
            times = span(first_event_ms(counted.views), counted.stream_ms)
            yield f"{times}; windows {', '.join(self.settings.windows.lengths)}"

    def _repr_html_(self) -> str:
        from html import escape

        span = (f"<p>{escape(text)}</p>" for text in self._span())
        notes = (f"<pre>{escape(note)}</pre>" for note in self._notes())
        return "".join([*span, self.what_was_read._repr_html_(), *notes])

    def _notes(self) -> Iterator[str]:
        if len(self.rejected):
            yield f"{self.rejected!r}: see .rejected"
        if self.proposal is not None:
            doubts = "".join(f"\n  not sure: {printable(doubt)}" for doubt in self.proposal.doubts)
            yield f"The settings are a guess: see .proposal.toml{doubts}"


def read(source: Events, settings: SettingsLike = None) -> Counter:
    """Count the events of a log: what ``streamer replay`` does, for a notebook.

    ``source``: a path or several (JSON lines, CSV, TSV, Parquet; also ``.gz`` and ``.zst``), a data
    frame of pandas, Polars or pyarrow, or an iterable of mappings; what is not in the order of time
    is sorted. ``settings``: a file or a mapping; None: they are guessed from some events, as
    ``streamer init`` does, and ``.proposal`` has them. A mapping that reads none of the events, as
    it has no ``sources``, completes the guess.

    SourceError where a file or a table cannot be read, SettingsError where the settings are wrong
    or nothing can be guessed.

    >>> import streamer
    >>> log = streamer.read([
    ...     {"type": "impression", "user_id": "u", "item_id": "a", "ts": 1_760_000_000_000},
    ...     {"type": "click", "user_id": "u", "item_id": "a", "ts": 1_760_000_001_000},
    ... ])
    >>> log.what_was_read.topics["accepted"]
    [1, 1, 0, 0]
    """
    sources = sources_of(source)
    if settings is not None and not isinstance(settings, Mapping):
        return _counted(sources, settings_of(settings))
    sources, samples = _sampled(sources)
    if settings is not None:
        own = of_texts(settings_of(settings))
        if "sources" in settings or tried(own, samples).total:
            return _counted(sources, own)
    proposal = _completed(_proposal(samples), settings or {})
    counter = _counted(without(sources, proposal.left_out), proposal.settings)
    counter.proposal = proposal
    return counter


def _counted(sources: Sequence[Any], settings: Settings) -> Counter:
    """A counter of these events. What is not in the order of time is sorted."""
    once = any(map(is_read_once, sources))
    sources, settings = spanned(sources, of_texts(settings))
    counter = Counter(settings)
    counter._feed(sources, None if once else sources)
    return counter


def guessed(sources: Sequence[Any]) -> tuple[list[Any], Proposal]:
    """The sources, of which those that are read once have not lost what was looked at, and settings
    that read them. SourceError where there are no events, SettingsError where there are no such
    settings."""
    kept, samples = _sampled(sources)
    proposal = _proposal(samples)
    return without(kept, proposal.left_out), proposal


def guessed_unless(own: Settings, sources: Sequence[Any]) -> Proposal | None:
    """Settings that read sources of which ``own`` read no event; None where they read some. Raises
    what ``guessed`` raises."""
    _, samples = _sampled(sources)
    return None if tried(own, samples).total else _proposal(samples)


def _sampled(sources: Sequence[Any]) -> tuple[list[Any], list[SampledTopic]]:
    """The sources, and some of their events; SourceError where there are none."""
    none = Settings()
    kept = [PeekedLines(opened(s, none)) if is_read_once(s) else s for s in sources]
    samples = sample_files(kept, none)
    if not any(sample.records for sample in samples):
        named = ", ".join(str(each) for each in sources if isinstance(each, str | Path))
        raise SourceError(f"there are no events{f'; at {named}' if named else ': 0 rows'}")
    return kept, samples


def _proposal(samples: Sequence[SampledTopic]) -> Proposal:
    """A guess, with windows that cover most logs."""
    return _completed(propose(samples, "the first events"), _GUESSED)


def _completed(proposal: Proposal, more: Mapping[str, Any]) -> Proposal:
    """A proposal with sections besides, which replace its own."""
    own = tomllib.loads(proposal.toml)
    document = {**own, **more}
    if own.keys() & more.keys():
        toml = "\n".join(f"{key} = {toml_value(value)}" for key, value in document.items())
    else:
        lines = (f"{key} = {toml_value(value)}" for key, value in more.items())
        toml = "\n".join([*lines, "", proposal.toml])
    return replace(proposal, toml=toml, settings=parse(document))
