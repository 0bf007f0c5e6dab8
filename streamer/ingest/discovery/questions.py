"""What is asked about a proposal, where somebody answers: three questions at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from streamer.ingest.discovery.dimensions import ProposedDimension
from streamer.ingest.discovery.drafts import Draft
from streamer.ingest.discovery.evidence import FieldEvidence
from streamer.ingest.discovery.kinds import with_article
from streamer.ingest.discovery.names import VARIANT
from streamer.settings.paths import text_of

_MOST_ARMS = 9
NO_ZONE = "ts has no time zone: taken as UTC; set zone"


class Asker(Protocol):
    """Whoever answers; the first choice is the likely one."""

    def choose(self, question: str, choices: Sequence[str]) -> int:
        """The number of the choice, from 0."""
        ...

    def confirm(self, question: str) -> bool:
        """Whether it is so; most likely it is."""
        ...

    def zone(self, question: str) -> str:
        """The name of a time zone."""
        ...


def ask_kind(drafts: Sequence[Draft], asker: Asker | None) -> None:
    """Whether the most frequent kind that is a guess is what it is taken for."""
    guesses = [
        (value.records, draft, value)
        for draft in drafts
        for value in draft.shape.kinds.values
        if value.kind and not value.is_sure
    ]
    if asker is None:
        return
    if guesses:
        _, draft, value = max(guesses, key=lambda guess: guess[0])
        what = f"{value.text!r} ({value.records:,} records)"
        if asker.confirm(f"Is {what} {with_article(value.kind)}?"):
            kinds = draft.shape.kinds
            values = tuple(replace(v, is_sure=True) if v == value else v for v in kinds.values)
            draft.shape.kinds = replace(kinds, values=values)
        else:
            draft.ignore(value.kind, [value.text])
        doubt = f"kind: {value.text!r} is taken for"
        draft.shape.doubts = [d for d in draft.shape.doubts if not d.startswith(doubt)]
        return
    for draft in drafts:
        kinds, topic = draft.shape.kinds, draft.shape.topics[0]
        if kinds.is_sure or kinds.fixed is None:
            continue
        what = " and ".join(map(with_article, kinds.fixed))
        if asker.confirm(f"Is each record of {topic} {what}?"):
            draft.shape.kinds = replace(kinds, is_sure=True)
            doubt = "kind: nothing says for sure"
            draft.shape.doubts = [d for d in draft.shape.doubts if not d.startswith(doubt)]
        return


def ask_arm(drafts: Sequence[Draft], asker: Asker | None) -> None:
    """Which field is the arm of the experiment, where several may be it."""
    of = next((draft.dimensions for draft in drafts if draft.dimensions.arms), None)
    taken = next((one for one in of.chosen if one.name == VARIANT), None) if of else None
    if asker is None or of is None or taken is None:
        return
    arms = [taken, *of.arms][:_MOST_ARMS]
    shown = [f"{_called(one)}: {one.values}" for one in arms]
    answer = asker.choose("Which field is the arm of the experiment?", [*shown, "none of them"])
    path = arms[answer].path if answer < len(arms) else None
    for draft in drafts:
        own = draft.dimensions
        may = [one for one in (*own.chosen, *own.arms) if one.name == VARIANT]
        arm = [one for one in may if one.path == path]
        others = [one for one in own.chosen if one.name != VARIANT]
        left = tuple(one for one in own.others if one.path != path)
        draft.dimensions = replace(own, chosen=(*arm, *others), others=left, arms=(), is_asked=True)


def _called(arm: ProposedDimension) -> str:
    return text_of(arm.path) if arm.path else "that of the preset"


def ask_zone(drafts: Sequence[Draft], evidence: FieldEvidence, asker: Asker | None) -> None:
    """The time zone of times without an offset; without an answer it is not sure."""
    zone = None
    number = 0
    for draft in drafts:
        if draft.shape.is_ours:
            continue
        is_own = any("ts" in fields for fields in draft.shape.fields.values())
        if is_own and evidence.lacks_offset(number):
            if asker is None:
                draft.shape.doubts.append(NO_ZONE)
            else:
                zone = zone or asker.zone("Time zone of times without an offset")
                draft.zone = zone
        number += 1
