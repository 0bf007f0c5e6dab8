"""What people did: users, sessions and dwell, from the whole log at once."""

from __future__ import annotations

from streamer.settings.model import Settings

from . import dwell, sessions
from .acceptance import Acceptance
from .dimensions import Kept, Segment
from .dwell import dwells_of, read_dwell_totals, read_dwells
from .joining import Joins
from .sessions import read_session_totals, read_sessions, sessions_of
from .shape import Event
from .sink import Sink
from .span import Span
from .users import Tally, read_users, tallies, touches


class Engagement:
    """Everything that windows choose from."""

    def __init__(self, events: list[Event], joins: Joins, kept: Kept, settings: Settings) -> None:
        self.kept = kept
        self.settings = settings
        self.touches = touches(events, joins, kept, settings)
        self.sessions = sessions_of(events, settings)
        self.dwells = dwells_of(events, joins, settings)

    def read(self, out: Sink, span: Span, clicks: dict[Segment, int]) -> dict[Segment, Tally]:
        """The series of one window, and its users; ``clicks``: how many its users have, by
        segment."""
        found = tallies(self.touches, span, self.kept, self.settings)
        tallied = {segment: tally for segment, tally in found.items() if tally is not None}
        if len(tallied) < len(found):
            labels = frozenset({"metrics": "users", "cause": "kept_values"}.items())
            out.readings["streamer_inexact", labels] = 1
        read_users(out, span, tallied, clicks, self.settings)
        read_sessions(out, span, self.sessions, self.kept)
        read_dwells(out, span, self.dwells, self.kept)
        return tallied

    def read_totals(self, out: Sink, verdict: Acceptance, joins: Joins, settings: Settings) -> None:
        """The histograms since the state began."""
        ended = [s for s in self.sessions if sessions.is_settled(s, verdict, settings)]
        read_session_totals(out, ended, self.kept)
        over = [d for d in self.dwells if dwell.is_settled(d, verdict, joins, settings)]
        read_dwell_totals(out, over, self.kept)
