"""What to do with an experiment, and what is found of an arm, in a few words of one colour."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streamer.formatting import counted
from streamer.stats.experiments.recommendation import Action, Recommendation
from streamer.stats.experiments.verdict import Outcome

GOOD, BAD, WARN, OPEN = "good", "bad", "warn", "open"
_ADVICE: Mapping[Action, tuple[str, str, str]] = {
    Action.SHIP: (GOOD, "✓", "Ship {arm}"),
    Action.WAIT: (OPEN, "…", "Wait"),
    Action.STOP_HARM: (BAD, "▼", "Stop: harm"),
    Action.STOP_NO_EFFECT: (WARN, "■", "Stop: no effect worth shipping"),
    Action.KEEP_RUNNING: (OPEN, "→", "Keep running"),
    Action.UNDECIDED: (WARN, "?", "Ended without a decision"),
    Action.DO_NOT_TRUST: (BAD, "✕", "Do not use: broken split"),
    Action.DO_NOT_TRUST_ARMS: (BAD, "✕", "Do not use: users in several arms"),
    Action.MEASURE: (OPEN, "→", "Holdout"),
}
_VERDICTS: Mapping[Outcome, tuple[str, str, str]] = {
    Outcome.BETTER: (GOOD, "✓", "Better"),
    Outcome.WORSE: (BAD, "▼", "Worse"),
    Outcome.HARM: (BAD, "▼", "Harmed"),
    Outcome.WORSE_WITHIN: (WARN, "▽", "Worse, perhaps tolerated"),
    Outcome.NO_HARM: (GOOD, "✓", "Not harmed"),
    Outcome.KEEP_RUNNING: (OPEN, "?", "Too early"),
    Outcome.INVALID: (BAD, "✕", "Broken split"),
}


class Pill(msgspec.Struct, frozen=True):
    """A word with its sign; ``kind``: good, bad, warn or open."""

    kind: str
    sign: str
    words: str


def verdict_pill(outcome: Outcome) -> Pill:
    """What is found of an arm."""
    return Pill(*_VERDICTS[outcome])


def advice_pill(advice: Recommendation) -> Pill:
    """What to do."""
    kind, sign, words = _ADVICE[advice.action]
    if advice.action is Action.WAIT and advice.days is not None:
        words = f"Wait {counted(advice.days, 'more day')}"
    return Pill(kind, sign, words.format(arm=advice.arm))
