"""Paths into records: ``properties.products[0].id``.

A step is a name, ``["odd.name"]``, the number of an element from 0, or ``[key=text]``: the element
of a list of objects whose field ``key`` is that text. ``$`` is the record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamer.errors import SettingsError

_TOKEN = re.compile(
    r"""
    \.(?P<name>[^.\[\]"]+)
    | \[(?P<number>\d+)\]
    | \["(?P<quoted>[^"]+)"\]
    | \[(?P<key>[^\]="]+)=(?P<equals>[^\]]+)\]
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Where:
    """The element of a list whose field ``key`` is the text ``equals``."""

    key: str
    equals: str


Step = str | int | Where
Path = tuple[Step, ...]


def path_of(path: str) -> Path:
    """The steps of a path; SettingsError where it is none. ``$`` is not one of them.

    >>> path_of("properties.products[0].id")
    ('properties', 'products', 0, 'id')
    >>> path_of('event_params[key=page].value["string.value"]')
    ('event_params', Where(key='key', equals='page'), 'value', 'string.value')
    """
    rest = path.removeprefix("$.")
    rest = rest if rest.startswith("[") else f".{rest}"
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        token = _TOKEN.match(rest, at)
        if token is None:
            raise SettingsError(
                f"{path!r} is no path: write it like properties.products[0].id, with "
                '["odd.name"] for a name with dots'
            )
        if token["number"] is not None:
            steps.append(int(token["number"]))
        elif token["key"] is not None:
            steps.append(Where(token["key"], token["equals"]))
        else:
            steps.append(token["name"] or token["quoted"])
        at = token.end()
    return tuple(steps)


def path_to(name: str) -> str:
    """The path of a field at the top of a record.

    >>> path_to("sku"), path_to("item.id")
    ('sku', '["item.id"]')
    """
    return name if re.fullmatch(r'[^.\[\]"$]+', name) else f'["{name}"]'
