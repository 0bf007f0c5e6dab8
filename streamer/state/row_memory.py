"""The most memory that the rows of a partition take: by their bounds, at the bytes of a row.

Panes come on top: they take what is counted in them, not what is open.
"""

from __future__ import annotations

from streamer.metrics.catalogue import Catalogue
from streamer.settings.model import Settings

ROW_BYTES = {
    "event_ids": 30,
    "impressions": 75,
    "slates": 140,
    "retained": 175,
    "feedback": 410,
    "sessions": 175,
    "viewings": 275,
    "users": 105,
    "user_days": 140,
    "items": 190,
}
"""Most bytes of a row, tables that grow by doubling included: ``python -m benchmarks.rows``."""
SUM_BYTES = 8
"""Of each sum in a row of a user's day."""


def partition_bytes(settings: Settings) -> dict[str, int]:
    """Bound of ``[limits]`` → bytes of the rows of one partition when it is reached."""
    bounds, catalogue = settings.limits, Catalogue(settings)
    row = ROW_BYTES
    found = {
        "event_ids": bounds.event_ids * row["event_ids"] * len(settings.logs),
        "open_impressions": bounds.open_impressions
        * (row["impressions"] + row["slates"] + row["retained"]),
        "open_feedback": bounds.open_feedback * row["feedback"],
        "open_sessions": bounds.open_sessions * (row["sessions"] + row["viewings"]),
    }
    if catalogue.has_users and "engagement" in settings.metrics.families:
        found["user_items"] = bounds.user_items * row["users"]
    measures = catalogue.experiment_measures
    if settings.experiments:
        sums = SUM_BYTES * len(measures.sums)
        found["user_days"] = 2 * bounds.user_days * (row["user_days"] + sums)
    if catalogue.item_counts is not None:
        found["items"] = bounds.items * row["items"] * len(settings.item_windows)
    return found


def in_gigabytes(size: int) -> str:
    """Bytes as people read them.

    >>> in_gigabytes(4_190_000_000)
    '4.2 GB'
    """
    return f"{size / 1e9:.1f} GB"
