"""A table of the settings file: what all of them have in common."""

from __future__ import annotations

from typing import Any

import msgspec

SECRETS = ("password", "sasl_password", "url")
"""Keys whose values are never shown (a URL may hold a password), nor read as TOML when they come
from the environment."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A table of the settings file."""

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        hidden = {name: "***" for name in SECRETS if values.get(name) is not None}
        return list((values | hidden).items())
