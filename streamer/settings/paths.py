"""Paths into records: ``properties.products[].id``.

A step is a name, ``["odd.name"]``, the number of an element from 0, ``[key=text]``, the element of
a list of objects whose field ``key`` is that text, or ``[]``, each element. ``[key=text][]`` is
each element of which that is true; where elements are lists, ``key`` is a number: ``[1=yes][]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamer.errors import SettingsError

_TOKEN = re.compile(
    r"""
    \.(?P<name>[^.\[\]"]+)
    | \[(?P<number>[0-9]{1,9})\]
    | (\[(?P<only>[^\]="]+)=(?P<is>[^\]]+)\])?\[(?P<each>)\]
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


@dataclass(frozen=True, slots=True)
class Each:
    """Each element of a list; ``only``: of those of which that is true."""

    only: Where | None = None


Step = str | int | Where | Each
Path = tuple[Step, ...]
Lists = tuple[tuple[Path, Where | None], ...]
"""The lists that a path goes through: the path to each, from the element of the one before, and
which of its elements count."""


def path_of(path: str) -> Path:
    """The steps of a path; SettingsError where it is none.

    >>> path_of("properties.products[0].id")
    ('properties', 'products', 0, 'id')
    >>> path_of('event_params[key=page].value["string.value"]')
    ('event_params', Where(key='key', equals='page'), 'value', 'string.value')
    >>> path_of("shelves[].items[clicked=true][].id")
    ('shelves', Each(only=None), 'items', Each(only=Where(key='clicked', equals='true')), 'id')
    """
    rest = path if path.startswith("[") else f".{path}"
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        token = _TOKEN.match(rest, at)
        if token is None:
            hint = "write [] for each element, not [*]" if "*" in path[-3:] or "[*]" in path else ""
            raise SettingsError(
                f"{path!r} is no path: "
                + (hint or "write it like properties.products[].id, with ")
                + ("" if hint else '["odd.name"] for a name with dots')
            )
        if token["number"] is not None:
            steps.append(int(token["number"]))
        elif token["each"] is not None:
            only = token["only"]
            steps.append(Each(None if only is None else Where(only, token["is"])))
        elif token["key"] is not None:
            steps.append(Where(token["key"], token["equals"]))
        else:
            steps.append(token["name"] or token["quoted"])
        at = token.end()
    return tuple(steps)


def through_lists(path: Path) -> tuple[Lists, Path]:
    """The lists that a path goes through, and the rest of it, from an element of the last.

    >>> through_lists(path_of("a.b[].c"))
    (((('a', 'b'), None),), ('c',))
    """
    lists: list[tuple[Path, Where | None]] = []
    steps: list[Step] = []
    for step in path:
        if isinstance(step, Each):
            lists.append((tuple(steps), step.only))
            steps = []
        else:
            steps.append(step)
    return tuple(lists), tuple(steps)


def lists_in(path: str) -> Lists:
    """The lists that a path goes through, as settings write it; SettingsError where it is none."""
    return through_lists(path_of(path))[0]


def step_of(key: str) -> Step:
    """The key of `[key=text][]` as a step: of elements that are lists a number.

    >>> step_of("1"), step_of("clicked")
    (1, 'clicked')
    """
    return int(key) if re.fullmatch("[0-9]{1,9}", key) else key


def path_to(name: str) -> str:
    """The path of a field at the top of a record.

    >>> path_to("sku"), path_to("item.id")
    ('sku', '["item.id"]')
    """
    return name if re.fullmatch(r'[^.\[\]"$]+', name) else f'["{name}"]'


def text_of(path: Path) -> str:
    """A path as settings write it.

    >>> text_of(path_of('a["b.c"][].d[k=v][]'))
    'a["b.c"][].d[k=v][]'
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif isinstance(step, Where):
            text += f"[{step.key}={step.equals}]"
        elif isinstance(step, Each):
            text += f"[{step.only.key}={step.only.equals}][]" if step.only else "[]"
        elif re.search(r'[.\[\]"]', step):
            text += f'["{step}"]'
        else:
            text += f".{step}" if text else step
    return text
