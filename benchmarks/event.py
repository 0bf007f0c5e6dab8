"""An event as an ordinary program would decode it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Id = Annotated[str, Meta(max_length=512)]
Label = Annotated[str, Meta(max_length=128)]
Probability = Annotated[float, Meta(ge=0, le=1)]
DwellMs = Annotated[int, Meta(ge=0, le=86_400_000)]


class Event(msgspec.Struct, gc=False, kw_only=True):
    """All fields of synthetic traffic, of any kind."""

    ts: Annotated[int, Meta(ge=0)]
    user_id: Id
    event_id: Id | None = None
    request_id: Id | None = None
    item_id: Id | None = None
    items: list[dict[str, Any]] | None = None
    position: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    score: float | None = None
    propensity: Probability | None = None
    feedback: Label | None = None
    value: Annotated[float, Meta(ge=0)] | None = None
    session_id: Id | None = None
    action: Label | None = None
    dwell_ms: DwellMs | None = None
    variant: Label | None = None
    surface: Label | None = None
