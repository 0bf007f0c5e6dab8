"""Fields of sources whose records have our own names."""

from __future__ import annotations

from typing import Any

from streamer.settings.event_fields import ELEMENT_FIELDS, LINE_TYPES, field_names
from streamer.settings.load import parse
from streamer.settings.model import Settings

Object = dict[str, Any]
DEFAULTS = parse({})


def own_names(settings: Settings = DEFAULTS, *, lists: bool = True, **others: Any) -> Object:
    """`[sources.fields]` of all fields of all kinds, at the top; with ``lists`` those of items in
    `items`, too. ``others``: what stands elsewhere."""
    own = [name for names in settings.own_fields.values() for name in names]
    of_items = {name for names in ELEMENT_FIELDS.values() for name in names}
    of_items |= {*settings.policy_fields, *own}
    names = [name for kind in LINE_TYPES.values() for name in field_names(kind)]
    names += [*settings.dimension_names, *settings.policy_fields, *own]
    fields: Object = {name: name for name in names if name not in ("type", "items")}
    if lists:
        fields |= {name: [f"items[].{name}", name] for name in fields if name in of_items}
        fields["item_id"] = ["items[].item_id", "items[]", "item_id"]
    return fields | others
