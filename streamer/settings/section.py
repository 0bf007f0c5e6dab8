"""Tables of the settings file: what all of them have in common, and the names of their keys: in the
file, and in the environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import msgspec

SECRETS = ("password", "sasl_password", "url")
"""Keys whose values are never shown (a URL may hold a password), nor read as TOML when they come
from the environment."""
PREFIX = "STREAMER_"
"""Of variables of the environment."""
NAME = "NAME"
"""Stands for names of one's own in paths."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A table of the settings file."""

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        hidden = {name: "***" for name in SECRETS if values.get(name) is not None}
        return list((values | hidden).items())


def sections_of(root: type[Section]) -> dict[str, type[Section]]:
    """Path of a table → its type, all below ``root``, which has the path ""; ``NAME`` stands for
    names of one's own."""
    return dict(_sections("", root))


def _sections(path: str, kind: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    yield path, kind
    for field in msgspec.structs.fields(kind):
        for part in (field.type, *get_args(field.type)):
            if isinstance(part, type) and issubclass(part, Section):
                own = f".{NAME}" if get_origin(field.type) is dict else ""
                yield from _sections(f"{path}.{field.encode_name}{own}".lstrip("."), part)


def keys_of(root: type[Section]) -> list[str]:
    """Paths of all keys, also of those that are tables: ``kafka.topics.clicks``."""
    return [
        f"{path}.{field.encode_name}".lstrip(".")
        for path, kind in _sections("", root)
        for field in msgspec.structs.fields(kind)
    ]


def variable_of(path: str) -> str:
    """The variable of the environment that overrides a key.

    >>> variable_of("kafka.topics.clicks")
    'STREAMER_KAFKA__TOPICS__CLICKS'
    """
    return PREFIX + path.replace(".", "__").upper()
