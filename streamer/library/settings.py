"""Settings as a caller gives them, and the events that they are for."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from streamer.errors import SettingsError, UsageError
from streamer.settings.load import load, parse
from streamer.settings.model import Settings
from streamer.sources.files import Readable
from streamer.sources.tables import ArrowTable

SettingsLike: TypeAlias = str | Path | Mapping[str, Any] | Settings | None
"""A settings file, TOML text of several lines, the same as a mapping, or what these were read into;
None: the defaults."""
Events: TypeAlias = Readable | Mapping[str, Any] | Sequence[str | Path | ArrowTable]
"""A path, a data frame or an iterable of mappings; several paths or data frames; or a single event
as a mapping."""


def settings_of(given: SettingsLike) -> Settings:
    """SettingsError where they are wrong. The environment overrides a file, as for commands."""
    if isinstance(given, Settings):
        return given
    if isinstance(given, Mapping):
        return parse(given)
    if isinstance(given, str) and "\n" in given:
        return parse(_of_toml(given))
    return parse({}) if given is None else load(given, os.environ)


def _of_toml(text: str) -> dict[str, Any]:
    """Settings as TOML text; SettingsError where it is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"settings: a text of several lines, and not TOML: {error}") from None


def sources_of(events: object) -> list[Any]:
    """Paths, tables and iterables, one after the other; UsageError where these are no events."""
    if is_whole(events):
        return [events]
    if isinstance(events, Mapping):
        return [cast("list[object]", [events])]
    if isinstance(events, Iterable) and not isinstance(events, bytes | bytearray):
        given = cast("Iterable[object]", events)
        several = isinstance(given, Sequence) and len(given) and is_whole(given[0])
        return list(given) if several else [given]
    raise UsageError(
        f"events are {type(events).__name__}: give a path, a table with __arrow_c_stream__, or an "
        "iterable of mappings"
    )


def is_whole(given: object) -> bool:
    """Whether it is a path or a table, of which a list is several sources."""
    is_row = isinstance(given, Mapping)  # asked first: asking for a protocol takes a while
    return not is_row and isinstance(given, str | Path | ArrowTable)
