"""What to do with an experiment, and what is found of an arm, in a few words of one colour."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streamer.formatting import counted
from streamer.stats.experiments.recommendation import Action, Recommendation
from streamer.stats.experiments.verdict import Outcome

GOOD, BAD, WARN, OPEN = "good", "bad", "warn", "open"
_ADVICE: Mapping[Action, tuple[str, str]] = {
    Action.SHIP: (GOOD, "✓"),
    Action.WAIT: (OPEN, "…"),
    Action.STOP_HARM: (BAD, "▼"),
    Action.STOP_NO_EFFECT: (WARN, "■"),
    Action.KEEP_RUNNING: (OPEN, "→"),
    Action.UNDECIDED: (WARN, "?"),
    Action.DO_NOT_USE: (BAD, "✕"),
    Action.DO_NOT_USE_ARMS: (BAD, "✕"),
    Action.CHANGED: (BAD, "✕"),
    Action.MEASURE: (OPEN, "→"),
}
_VERDICTS: Mapping[Outcome, tuple[str, str]] = {
    Outcome.BETTER: (GOOD, "✓"),
    Outcome.WORSE: (BAD, "▼"),
    Outcome.HARM: (BAD, "▼"),
    Outcome.WORSE_WITHIN: (WARN, "▽"),
    Outcome.NO_HARM: (GOOD, "✓"),
    Outcome.TOO_EARLY: (OPEN, "?"),
    Outcome.BROKEN_SPLIT: (BAD, "✕"),
}


class Pill(msgspec.Struct, frozen=True):
    """A word with its sign; ``kind``: good, bad, warn or open."""

    kind: str
    sign: str
    words: str


def verdict_pill(outcome: Outcome) -> Pill:
    """What is found of an arm."""
    return Pill(*_VERDICTS[outcome], outcome.capitalize())


def advice_pill(advice: Recommendation) -> Pill:
    """What to do."""
    words = advice.action.capitalize()
    if advice.action is Action.SHIP:
        words = f"{words} {advice.arm}"
    elif advice.action is Action.WAIT and advice.days is not None:
        words = f"{words} {counted(advice.days, 'more day')}"
    return Pill(*_ADVICE[advice.action], words)
