"""Settings for records of others: found, written, loaded, and tried on the records themselves."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamer.errors import ProposalError, SettingsError
from streamer.ingest.discovery.by_preset import read_by_preset
from streamer.ingest.discovery.dimensions import Dimensions, find_dimensions, with_preset
from streamer.ingest.discovery.drafts import Draft
from streamer.ingest.discovery.evidence import FieldEvidence
from streamer.ingest.discovery.kinds import with_article
from streamer.ingest.discovery.names import VARIANT
from streamer.ingest.discovery.one_day import as_one_day
from streamer.ingest.discovery.profile import Profile, Seen
from streamer.ingest.discovery.questions import Asker, ask_arm, ask_kind, ask_zone
from streamer.ingest.discovery.repair import corrected
from streamer.ingest.discovery.shapes import SampledTopic, Shape, find_shapes
from streamer.ingest.discovery.trying import tried
from streamer.ingest.discovery.writing import comment, toml_value, written
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.settings.model import Settings

_MOST_IGNORED = 0.5
"""Share of records that may be ignored without a question."""
_MOST_DIMENSIONS = 4
"""Of all topics together: every one multiplies series."""


@dataclass(frozen=True)
class Proposal:
    """Settings, as TOML and loaded, with what is not sure about them."""

    toml: str
    settings: Settings
    shapes: tuple[Shape, ...]
    doubts: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Topics of which none would count."""

    @property
    def guesses(self) -> list[str]:
        """Lines of the settings that are guesses."""
        return guesses_in(self.toml)


def guesses_in(toml: str) -> list[str]:
    """Lines of settings that are marked as guesses, apart from an arm that nobody has."""
    lines = [line.strip() for line in toml.splitlines() if "# ? " in line]
    return [line for line in lines if not line.startswith("# ? variant: no field")]


def propose(
    samples: Sequence[SampledTopic],
    origin: str,
    brokers: str | None = None,
    asker: Asker | None = None,
) -> Proposal:
    """Settings that read the records of some files, or topics at ``brokers``, without those topics
    of which none would count. ``origin``: where they come from, for the first comment. ``asker``:
    whoever answers questions. SettingsError where nothing can be proposed."""
    left, useful, reasons = list[str](), list(samples), list[str]()
    while True:
        before = [f"topics: left out {', '.join(left)}", *reasons] if left else []
        try:
            made = _proposed(useful, origin, brokers, before, asker)
        except ProposalError as error:
            kept = [sample for sample in useful if sample.topic not in error.topics]
            if not kept or len(kept) == len(useful):
                raise
            reasons.append(f"topics: {error}")
        else:
            kept = [sample for sample in useful if tried(made.settings, [sample]).total]
            if brokers is None or not kept or len(kept) == len(useful):
                return replace(made, left_out=tuple(left))
        left += [sample.topic for sample in useful if sample not in kept]
        useful = kept


def _proposed(
    samples: Sequence[SampledTopic],
    origin: str,
    brokers: str | None,
    doubts_before: Sequence[str],
    asker: Asker | None,
) -> Proposal:
    shapes = find_shapes(samples)
    if not shapes:
        raise SettingsError(f"no record of {origin} is a JSON object: nothing can be proposed")
    drafts = [Draft(shape) for shape in shapes]
    ask_kind(drafts, asker)
    arms = {id(shape): read_by_preset(shape, samples) for shape in shapes}
    for draft, of in zip(drafts, _dimensions(shapes, arms), strict=True):
        draft.dimensions = of
        as_one_day(draft)
    ask_arm(drafts, asker)
    chosen = [one for draft in drafts for one in draft.dimensions.chosen]
    is_deep = any(one.path not in ((), (one.name,)) for one in chosen)  # a source says where
    if brokers is not None or is_deep or not all(shape.is_ours for shape in shapes):
        for shape in shapes:
            shape.is_ours = False
    head = _opening_comment(origin)
    try:
        settings = corrected(drafts, samples, lambda: written(drafts))
    except ProposalError as error:
        known = written(drafts) if error.is_log else "\n".join(_commented(written(drafts)))
        error.toml = "\n".join([head, comment(f"? {error}"), "", known])
        raise
    evidence = FieldEvidence(settings, samples)
    ask_zone(drafts, evidence, asker)
    read = [draft.shape for draft in drafts if not draft.shape.is_ours]
    for number, shape in enumerate(read):
        shape.doubts += [f"ts: {outside}" for outside in [evidence.outside(number)] if outside]
    made = tried(settings, samples)
    if made.ignored > _MOST_IGNORED * made.records:
        what = f"kind: {made.ignored:,} of {made.records:,} records are ignored"
        doubts_before = [*doubts_before, f"{what}: are they nothing that is shown or clicked?"]
    return _written(drafts, evidence, origin, brokers, doubts_before)


def _commented(toml: str) -> Iterator[str]:
    """Settings that read nothing, for people to see."""
    for line in toml.splitlines():
        yield line if not line or line.startswith("#") else f"# {line}"


def _written(
    drafts: Sequence[Draft],
    evidence: FieldEvidence,
    origin: str,
    brokers: str | None,
    doubts_before: Sequence[str],
) -> Proposal:
    """The proposal of drafts that are corrected, with what is not sure."""
    shapes, dimensions = [d.shape for d in drafts], [d.dimensions for d in drafts]
    doubts = [*doubts_before, *_doubts(shapes)]
    with_variant = [of for of in dimensions if any(one.name == VARIANT for one in of.chosen)]
    has_exposures = any("exposure" in shape.profiles for shape in shapes)
    without = [] if has_exposures else dimensions  # exposures say the arm
    of_variant = [doubt for of in with_variant or without for doubt in of.variant_doubts]
    head = [_opening_comment(origin)]
    of_variant = [f"variant: {doubt}" for doubt in dict.fromkeys(of_variant)]
    in_source = {doubt for shape in shapes for doubt in shape.doubts}
    doubts += [] if with_variant else of_variant
    head += [comment(f"? {doubt}") for doubt in doubts if doubt not in in_source]
    of_fields = [
        f"{name}: not read of {LINE_TYPES[kind]}, {why}"
        for draft in drafts
        for (kind, name), why in draft.left_out.items()
    ]
    if brokers is not None:
        head += ["", "[kafka]", f"brokers = {toml_value(brokers)}"]
    toml = "\n".join(head) + "\n\n" + written(drafts, evidence)
    return Proposal(
        toml,
        parse(tomllib.loads(toml)),
        tuple(shapes),
        (*doubts, *of_fields, *(of_variant if with_variant else ())),
    )


def _opening_comment(origin: str) -> str:
    return comment(f"Proposed by `streamer init` from {origin}: what is marked with ? is a guess.")


def _doubts(shapes: Sequence[Shape]) -> Iterator[str]:
    """What is not sure about shapes, and which kinds there are none of."""
    for shape in shapes:
        yield from dict.fromkeys(shape.doubts)
    for kind in ("impression", "click"):
        if not any(kind in {*shape.profiles, *shape.fields} for shape in shapes):
            yield f"kind: no record looks like {with_article(kind)}"


def _dimensions(
    shapes: Sequence[Shape], by_preset: Mapping[int, Mapping[str, Seen]]
) -> list[Dimensions]:
    """Those of each shape, with those that its preset reads. The names are those of shown records;
    where there are none, of all."""
    found = []
    for shape in shapes:
        profiles = {kind: of for kind, of in shape.profiles.items() if kind != "exposure"}
        if shape.profiles and not profiles:
            found.append(Dimensions((), ()))
            continue
        profile = profiles.get("impression") or next(iter(profiles.values()), None)
        own = find_dimensions(profile or Profile(), shape.taken)
        found.append(with_preset(own, by_preset[id(shape)]))
    shown = [of for of, shape in zip(found, shapes, strict=True) if "impression" in shape.profiles]
    names = [one.name for of in shown or found for one in of.chosen]
    kept = sorted(dict.fromkeys(names), key=lambda name: name != VARIANT)[:_MOST_DIMENSIONS]
    return [replace(of, chosen=tuple(x for x in of.chosen if x.name in kept)) for of in found]


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
