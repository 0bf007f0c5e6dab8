"""Settings for records of others: found, written, loaded, and tried on the records themselves."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamer.errors import SettingsError
from streamer.ingest.discovery.dimensions import Dimensions, find_dimensions
from streamer.ingest.discovery.names import VARIANT
from streamer.ingest.discovery.profile import Profile
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic, Shape, find_shapes
from streamer.ingest.discovery.writing import comment, toml_value, written
from streamer.ingest.record import IGNORED, of_texts, record_decoder
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.settings.model import Settings

_MOST_DIMENSIONS = 4
"""Of all topics together: every one multiplies series."""


@dataclass(frozen=True)
class Proposal:
    """Settings, as TOML and loaded, with what is not sure about them."""

    toml: str
    settings: Settings
    shapes: tuple[Shape, ...]
    doubts: tuple[str, ...]


@dataclass
class Tried:
    """What the records are under some settings."""

    records: int = 0
    total: int = 0
    """Records with events."""
    accepted: Counter[str] = field(default_factory=Counter)
    """Kind → events; a record may be several."""
    ignored: int = 0
    refused: list[tuple[str, bytes, str]] = field(default_factory=list)
    """(log, record, reason) of each that is none."""

    @property
    def reasons(self) -> Counter[str]:
        """Reason → records refused for it."""
        return Counter(reason for _, _, reason in self.refused)


def propose(samples: Sequence[SampledTopic], origin: str, brokers: str | None = None) -> Proposal:
    """Settings that read the records of some files, or topics at ``brokers``, without those of
    which none would count. ``origin``: where they come from, for the first comment. SettingsError
    where nothing can be proposed."""
    made = _proposed(samples, origin, brokers)
    if brokers is None:
        return made
    useful = [sample for sample in samples if tried(made.settings, [sample]).total]
    left = [sample.topic for sample in samples if sample not in useful]
    if not useful or not left:
        return made
    return _proposed(useful, origin, brokers, [f"topics: left out {', '.join(left)}"])


def _proposed(
    samples: Sequence[SampledTopic],
    origin: str,
    brokers: str | None,
    doubts_before: Sequence[str] = (),
) -> Proposal:
    shapes = find_shapes(samples)
    if not shapes:
        raise SettingsError(f"no record of {origin} is a JSON object: nothing can be proposed")
    if brokers is not None or not all(shape.is_ours for shape in shapes):
        for shape in shapes:
            shape.is_ours = False
    dimensions = _dimensions(shapes)
    doubts = [*doubts_before, *_doubts(shapes)]
    with_variant = [of for of in dimensions if any(one.name == VARIANT for one in of.chosen)]
    of_variant = [doubt for of in with_variant or dimensions for doubt in of.variant_doubts]
    head = [
        comment(f"Proposed by `streamer init` from {origin}: what is marked with ? is a guess.")
    ]
    of_variant = [f"variant: {doubt}" for doubt in dict.fromkeys(of_variant)]
    in_source = {doubt for shape in shapes for doubt in shape.doubts}
    doubts += [] if with_variant else of_variant
    head += [comment(f"? {doubt}") for doubt in doubts if doubt not in in_source]
    if brokers is not None:
        head += ["", "[kafka]", f"brokers = {toml_value(brokers)}"]
    toml = "\n".join(head) + "\n\n" + written(shapes, dimensions)
    return Proposal(
        toml,
        parse(tomllib.loads(toml)),
        tuple(shapes),
        (*doubts, *(of_variant if with_variant else ())),
    )


def _doubts(shapes: Sequence[Shape]) -> Iterator[str]:
    """What is not sure about shapes, and which kinds there are none of."""
    for shape in shapes:
        yield from dict.fromkeys(shape.doubts)
    for kind in ("impression", "click"):
        if not any(kind in shape.profiles for shape in shapes):
            yield f"kind: no record looks like {_A[kind]}"


_A = {"impression": "an impression", "click": "a click"}


def _dimensions(shapes: Sequence[Shape]) -> list[Dimensions]:
    """Those of each shape. The names are those of shown records; where there are none, of all."""
    found = []
    for shape in shapes:
        profile = shape.profiles.get("impression") or next(iter(shape.profiles.values()), None)
        found.append(find_dimensions(profile or Profile(), shape.taken))
    shown = [of for of, shape in zip(found, shapes, strict=True) if "impression" in shape.profiles]
    names = [one.name for of in shown or found for one in of.chosen]
    kept = sorted(dict.fromkeys(names), key=lambda name: name != VARIANT)[:_MOST_DIMENSIONS]
    return [replace(of, chosen=tuple(x for x in of.chosen if x.name in kept)) for of in found]


def tried(settings: Settings, samples: Sequence[SampledTopic]) -> Tried:
    """What the settings make of the records of topics that they read. Of files without sources the
    log is what `type` says, as it is when they are replayed."""
    made = Tried()
    for log, record, events in decoded_samples(of_texts(settings), samples):
        made.records += 1
        reasons = [event for event in events if isinstance(event, str)]
        refused = next((reason for reason in reasons if reason != IGNORED), None)
        if refused is not None:
            made.refused.append((log, record.value, refused))
        made.ignored += len(reasons) == len(events) and refused is None
        made.total += len(reasons) < len(events)
        made.accepted.update(event["kind"] for event in events if not isinstance(event, str))
    return made


def decoded_samples(
    settings: Settings, samples: Sequence[SampledTopic]
) -> Iterator[tuple[str, FoundRecord, list[Any]]]:
    """(log, record, its events, each a dict or the reason why it is none) of the records of topics
    that are read, which are texts."""
    decoder = record_decoder(settings)
    for sample in samples:
        if settings.reads_sources and sample.topic not in settings.logs:
            continue
        logs = (sample.topic,) if settings.reads_sources else KINDS
        for record in sample.records:
            beside = (record.key, record.encoded_headers, record.timestamp_ms)
            answers = [(log, decoder.decode_all(log, record.value, *beside)) for log in logs]
            log, events = next((x for x in answers if not isinstance(x[1][0], str)), answers[0])
            yield log, record, events


def hints(samples: Sequence[SampledTopic]) -> Iterator[str]:
    """What records most likely are, in short: for those whom nearly all were refused."""
    for shape in find_shapes(samples):
        if shape.is_ours and all(shape.said_of(kind) == {} for kind in shape.fields):
            continue
        what = f"events of {shape.preset}" if shape.preset else "events"
        yield f"the records look like {what}, whose kind is said by {shape.kinds.at}"
        mapped: dict[str, str] = {}
        for kind in shape.fields:
            for ours, where in shape.said_of(kind).items():
                mapped.setdefault(ours, toml_value(where))
        if mapped:
            yield ", ".join(f"{ours} = {where}" for ours, where in mapped.items())
