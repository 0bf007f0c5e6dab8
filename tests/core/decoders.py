"""The core's decoder of records by itself."""

from __future__ import annotations

from streamer._core import RecordDecoder
from streamer.ingest.record import record_decoder
from streamer.settings.model import Settings

REASONS = (
    *("json", "object", "too_large", "too_deep", "type", "ts", "user_id", "event_id", "item_id"),
    *("request_id", "position", "score", "propensity", "items", "feedback", "dwell", "value"),
    *("session_id", "action", "future", "reference", "held_out"),
    *("reward_estimate", "item_category", "ratios", "join_id", "rating", "impression_id"),
)
"""Every reason for which a record can be rejected."""


def decoder_of(settings: Settings) -> RecordDecoder:
    """A decoder by the given settings."""
    return record_decoder(settings, (3, 5))
