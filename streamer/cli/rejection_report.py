"""Reports of what was refused: how many records for which reason, one of them explained, and what
to do. ``replay``, ``produce`` and ``check`` say the same; none of them shows an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from streamer.cli.terminal import note
from streamer.formatting import printable
from streamer.ingest.discovery.proposal import hints
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.lookup import Beside
from streamer.ingest.rejections import NOTHING, Explainer, Refusal
from streamer.settings.model import Settings

_LOOKED_AT = 100
"""Records of one topic and reason whose fields are looked at."""
_HELD_BYTES = 10_000_000
"""Of refused records that are held, to say what they look like."""
_UNTIMELY = ("late", "future")
_ADVICE = {
    "late": "sort the lines by time, or raise time.max_lateness",
    "future": "correct the clock of its producer, or raise time.max_skew",
    "kind": "add it to [sources.kind], under `ignored` if it should not be counted",
    "json": "write one JSON object in each line",
    "object": 'write one JSON object in each line; for lists of events set each = "[]"',
    "too_large": "leave out fields that are not read",
    "too_deep": "leave out fields that are not read",
    "schema": "correct format and registry of its source",
}
"""Reason → what to do."""
_NAMES, _GROUPS = 20, 10
"""Names of fields, and topics with reasons, that are shown at most."""


@dataclass
class _Group:
    """Records of one topic that were refused for one reason; the first of them explained."""

    refusal: Refusal
    sample: str
    count: int = 0
    names: dict[str, None] = field(default_factory=dict)
    """Names of their fields, as they come."""


class RejectionReport:
    """Counts refusals, and explains the first one of each topic and reason."""

    def __init__(self, settings: Settings) -> None:
        self._explainer = Explainer(settings)
        self._reads_sources = settings.reads_sources
        self._type = settings.events.fields.get("type", "type")
        self._groups: dict[tuple[str, str], _Group] = {}
        self._held: list[FoundRecord] = []
        self._held_bytes = 0

    def add(self, kind: str, raw: bytes | None, reason: str, beside: Beside = ()) -> None:
        """Count a record of a topic ("": of none). ``beside``: as of ``Explainer.explain``."""
        group = self._groups.get((kind, reason))
        if group is None:
            refusal = self._explainer.explain(kind, raw, reason, beside, hides_values=True)
            sample = self._explainer.shape(kind, raw) if refusal.found == NOTHING else ""
            group = self._groups[kind, reason] = _Group(refusal, sample)
        group.count += 1
        if group.count <= _LOOKED_AT and len(group.names) < _NAMES:
            group.names.update(dict.fromkeys(self._explainer.names_seen(kind, raw)))
            self._hold(self._explainer.text_of(kind, raw), reason)

    def _hold(self, raw: bytes, reason: str) -> None:
        if raw and reason not in _UNTIMELY and self._held_bytes + len(raw) <= _HELD_BYTES:
            self._held.append(FoundRecord(raw))
            self._held_bytes += len(raw)

    def are_most(self, records: int) -> bool:
        """Whether most of so many records are none, whatever their time."""
        untimely = sum(self.reasons[reason] for reason in _UNTIMELY)
        return 2 * (self.total - untimely) > records

    def looks_like(self, topic: str) -> str:
        """What the records most likely are, without a value of theirs; "" where nothing is
        found."""
        return "; ".join(hints([SampledTopic(topic, self._held)]))

    @property
    def total(self) -> int:
        """Records refused."""
        return sum(group.count for group in self._groups.values())

    @property
    def reasons(self) -> Counter[str]:
        """Reason → records refused for it."""
        found: Counter[str] = Counter()
        for (_, reason), group in self._groups.items():
            found[reason] += group.count
        return found

    def findings(self) -> list[tuple[str, str, str]]:
        """(topic, what was found, what to do) of each topic and reason, the most frequent first."""
        groups = sorted(self._groups.items(), key=lambda entry: -entry[1].count)
        return [(kind, *self._finding(group)) for (kind, _), group in groups[:_GROUPS]]

    def _finding(self, group: _Group) -> tuple[str, str]:
        refusal = group.refusal
        at = f" at {refusal.field}" if refusal.field not in ("", refusal.reason) else ""
        what = f"{group.count:,} {refusal.reason}{at}: "
        what += f"found {refusal.found}; expected {refusal.expected}"
        advice = self._advice(refusal)
        if refusal.found == NOTHING and refusal.field:
            names = [printable(name, 50) for name in group.names][:_NAMES]
            what += f"; fields seen: {', '.join(names) or 'none'}"
            if refusal.near:
                what += f"; at {refusal.near}: {', '.join(refusal.names) or 'no fields'}"
            what += f"; sample: {group.sample}"
            nearest = self._explainer.nearest(group.names)
            if refusal.field == self._type and "type" not in nearest:
                advice = "these are not streamer's own events: see below"
            elif nearest and self._reads_sources:
                pairs = ", ".join(nearest.values())
                advice = f"correct its path in [[sources]]; there are {pairs}"
            elif nearest:
                pairs = ", ".join(f'{ours} = "{theirs}"' for ours, theirs in nearest.items())
                advice = f"map their names in [events.fields], e.g. {pairs}"
        return what, advice

    def _advice(self, refusal: Refusal) -> str:
        """What to do, by the reason and the place."""
        if refusal.field.startswith("header ") or refusal.field == "the key":
            return "files have no headers and no keys: name a field, or read the topic itself"
        if refusal.reason in _ADVICE:
            return _ADVICE[refusal.reason]
        if self._reads_sources:
            return f"correct where it stands in [[sources]]: {refusal.reason}"
        return f"send {refusal.field or refusal.reason} so, or map another in [events.fields]"

    def report(self, lines: int, accepted: int, is_strict: bool, files: Sequence[str] = ()) -> int:
        """Print to stderr how many lines of the files were late or rejected, and why. Returns the
        exit code: 1 where no line was accepted or most are no events, or where ``is_strict`` and
        any was not."""
        for kind, what, advice in self.findings():
            note(f"not counted, {kind or 'no topic'}: {what}  — {advice}")
        if is_most := self.are_most(lines):
            if shape := self.looks_like("lines"):
                note(shape)
            names = " ".join(files) or "FILE"
            note(f"settings for it: streamer init {names} -o streamer.toml")
        if lines and (is_most or not accepted):
            accepted_words = f"only {accepted:,}" if accepted else "none"
            note(f"{accepted_words} of {lines:,} lines were accepted")
            return 1
        if self.total and is_strict:
            not_counted = f"{self.total:,} of {lines:,} lines were late or rejected"
            note(f"{not_counted}: --strict allows none")
            return 1
        return 0
