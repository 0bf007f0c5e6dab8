"""Settings of bounds of memory and time."""

from __future__ import annotations

from streamer.settings import limits
from streamer.settings.section import Section


class Limits(Section, frozen=True):
    """[limits]: bounds. Where one is hit, `streamer_inexact` names the metrics and the bound."""

    flush_ms: int = limits.FLUSH_MS
    """Longest time from an event to its commit, in milliseconds, when nothing is slow."""
    gather_rows: int = limits.GATHER_ROWS
    """Records gathered before they are applied together."""
    hold_back_ms: int = limits.HOLD_BACK_MS
    """How far a topic may run ahead of the slowest of its siblings, in milliseconds."""
    inbox_records: int = limits.MAX_INBOX_RECORDS
    """Records that may wait in a worker, over its topic-partitions, before fetching pauses."""
    worker_memory_mb: int | None = None
    """Memory of a worker, in MB, beyond which it fetches nothing and says so. Default: 85 % of what
    its container has, or the machine, shared by the workers of one `streamer run`."""
    segments: int = limits.MAX_SEGMENTS
    """Combinations of dimension values in a partition."""
    open_impressions: int = limits.MAX_OPEN_IMPRESSIONS
    """Impressions of a partition that feedback can still join."""
    open_feedback: int = limits.MAX_OPEN_FEEDBACK
    """Feedback of a partition that can still move, or that a conversion may need."""
    open_sessions: int = limits.MAX_OPEN_SESSIONS
    """Sessions of a partition that events can still join; as many viewings of items."""
    user_items: int = limits.MAX_USER_ITEMS
    """(user, item, segment) of a partition in the longest window; beyond it users are sampled."""
    user_days: int = limits.MAX_USER_DAYS
    """Rows of a partition for what users did on each day of each experiment, and as many for events
    of users who are not exposed yet, for `time.max_lateness`; beyond it users are sampled."""
    items: int = limits.MAX_ITEM_ROWS
    """(item, values of `items.dimensions`, pane) of one window in a partition; beyond it items are
    sampled."""
    event_ids: int = limits.MAX_EVENT_IDS
    """Event ids remembered for a topic-partition."""
