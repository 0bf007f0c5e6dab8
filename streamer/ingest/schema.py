"""The wire schema: one msgspec type a topic, built from the settings.

Field names can be mapped (``[events.fields]``) and every configured dimension is a field of each
event.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from streamer.settings import limits
from streamer.settings.event_fields import (
    COMMON_FIELDS,
    FIELDS,
    ITEM_FIELDS,
    LINE_TYPES,
    CustomValue,
    Id,
    Probability,
)
from streamer.settings.model import Settings

REASON_OF_FIELD = {"dwell_ms": "dwell", "start_ts": "dwell", "end_ts": "dwell"}
"""Fields whose reason is not their own name."""


def event_type(kind: str, settings: Settings) -> type[msgspec.Struct]:
    """The struct of one topic's events: required fields, optional ones, then the dimensions."""
    names = settings.events.fields
    line_type = next(line for line, k in LINE_TYPES.items() if k == kind)
    of_custom = [(field, CustomValue, None) for field in settings.custom_fields[kind]]
    fields: list[tuple[str, Any, Any]] = [*COMMON_FIELDS, *FIELDS[kind], *of_custom]
    if kind == "impressions":
        of_policies = [(field, Probability, None) for field in settings.policy_fields]
        fields += of_policies
        item = msgspec.defstruct(
            "Item",
            [("item_id", Id, msgspec.NODEFAULT), *ITEM_FIELDS, *of_policies, *of_custom],
            rename=names,
            gc=False,
            kw_only=True,
        )
        shown = Annotated[list[item], Meta(min_length=1, max_length=limits.MAX_ITEMS)]  # type: ignore[valid-type]
        fields.append(("items", shown | None, None))
    fields.append(("type", Literal[line_type] | None, None))
    fields += [(name, Any, None) for name in settings.dimension_names]
    return msgspec.defstruct(
        f"{line_type.title()}Event", fields, rename=names, gc=False, kw_only=True
    )
