"""What people did: users, sessions and dwell, from the whole log at once."""

from __future__ import annotations

from streamer.config import Settings

from .dimensions import Kept, Segment
from .dwell import dwells_of, read_dwells
from .joining import Joins
from .sessions import read_sessions, sessions_of
from .shape import Event
from .sink import Sink
from .span import Span
from .users import read_users, tallies, touches


class Engagement:
    """Everything that windows choose from."""

    def __init__(self, events: list[Event], joins: Joins, kept: Kept, settings: Settings) -> None:
        self.kept = kept
        self.settings = settings
        self.touches = touches(events, joins, kept, settings)
        self.sessions = sessions_of(events, settings)
        self.dwells = dwells_of(events, joins, settings)

    def read(self, out: Sink, span: Span, clicks: dict[Segment, int]) -> None:
        """The series of one window; ``clicks``: how many it has, by segment."""
        tallied = tallies(self.touches, span, self.kept, self.settings)
        read_users(out, span, tallied, clicks, self.settings)
        read_sessions(out, span, self.sessions, self.kept)
        read_dwells(out, span, self.dwells, self.kept)
