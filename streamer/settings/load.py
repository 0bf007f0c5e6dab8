"""Settings from ``streamer.toml`` and the environment, and secrets from files that they name.

Unknown keys are refused; an error names the path and, for a contradiction, both values. What is
read of a secret goes to a server and nowhere else: errors name the setting and the file, never what
is in it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from streamer.errors import SettingsError
from streamer.settings.event_fields import LINE_TYPES, field_names
from streamer.settings.model import Dimension, Settings
from streamer.settings.names import hint, nearest, refuse_near_misses
from streamer.settings.own_metric_rules import refuse_custom, with_directions
from streamer.settings.section import PREFIX, SECRETS
from streamer.settings.source_rules import refuse_old_forms, with_presets
from streamer.settings.validation import validate

_LISTS = (
    "actions",
    "alerts",
    "composites",
    "dimensions",
    "experiments",
    "policies",
    "ratios",
    "sources",
)
"""Lists of tables, which the environment overrides as a whole: `STREAMER_EXPERIMENTS=[{ … }]`."""


def load(path: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings of a file (none: the defaults) with ``STREAMER_SECTION__KEY`` laid over them."""
    data: dict[str, Any] = {}
    where, text = "the environment", ""
    of_file: dict[str, Any] = {}
    if path is not None:
        where = str(path)
        try:
            text = Path(path).read_text(encoding="utf-8")
            data = tomllib.loads(text)
            of_file = dict(data)
        except OSError as error:
            raise SettingsError(f"cannot read settings: {error.strerror}; at {path}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError(f"not TOML: {error}; at {path}") from error
    refuse_near_misses(environ or {}, Settings)
    for key, value in sorted((environ or {}).items()):
        parts = key.removeprefix(PREFIX).lower().split("__")
        if key.startswith(PREFIX) and (len(parts) > 1 or parts[0] in _LISTS):
            _lay_over(data, parts, value, key)
    try:
        return parse(data, where)
    except SettingsError as error:
        lists = {x: len(of) for x, of in of_file.items() if isinstance(of, list) and data[x] is of}
        raise SettingsError(f"{error}{_line_of(str(error), where, text, lists)}") from error


def _line_of(message: str, path: str, text: str, lists: Mapping[str, int]) -> str:
    """The line of the file where the table begins that a message names. ``lists``: those of the
    file, each with how many tables it has; "" where they are not each under a heading.

    >>> _line_of("no name; at alerts[1]", "s.toml", "[[alerts]]\\n\\n[[alerts]]\\n", {"alerts": 2})
    ' (s.toml, line 3)'
    """
    named = re.search(r"\bat (\w+)\[(\d+)\]", message)
    if named is None:
        return ""
    lines = enumerate(text.splitlines(), 1)
    tables = [at for at, line in lines if line.strip().startswith(f"[[{named[1]}]]")]
    place = int(named[2])
    return f" ({path}, line {tables[place]})" if place < len(tables) == lists.get(named[1]) else ""


def _lay_over(data: dict[str, Any], path: list[str], value: str, key: str) -> None:
    table = data
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise SettingsError(f"{key}: {part!r} is not a table of the settings")
    if path[-1] in SECRETS or value[:1] not in ("[", "{"):
        table[path[-1]] = value
        return
    try:
        table[path[-1]] = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{key}={value!r}: not a TOML value: {error}") from error


def parse(data: Mapping[str, Any], where: str = "the settings") -> Settings:
    """Settings of a TOML document; SettingsError names the path of what is wrong."""
    refuse_old_forms(data)
    refuse_custom(data)
    try:
        settings = msgspec.convert(with_directions(with_presets(data)), Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{error}{hint(str(error), Settings)}; in {where}") from error
    settings = _with_dimensions(settings)
    validate(settings)
    return settings


def _with_dimensions(s: Settings) -> Settings:
    """The settings with a dimension of each name that a source maps and that is no field, nor like
    the name of one."""
    own = (name for fields in s.own_fields.values() for name in fields)
    names = (name for kind in LINE_TYPES.values() for name in field_names(kind))
    known = list(dict.fromkeys((*names, *s.kept_fields, *s.policy_fields, *own, "type", "items")))
    tables = [[source, *(getattr(source, key) for key in LINE_TYPES)] for source in s.sources]
    mapped = dict.fromkeys(name for of in tables for one in of for name in one.fields)
    added = [name for name in mapped if name not in known and nearest(name, known) is None]
    new = tuple(Dimension(name=name) for name in added)
    return msgspec.structs.replace(s, dimensions=(*s.dimensions, *new)) if new else s


def secret_of(key: str, path: str) -> str:
    """What a file holds, without blanks around it; SettingsError where it is empty or cannot be
    read."""
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingsError(f"cannot read {key}: {reason}; at {path}") from None
    if not secret:
        raise SettingsError(f"{key} is an empty file; at {path}")
    return secret


def unusable(key: str, paths: str, error: Exception) -> SettingsError:
    """The error to raise where a certificate or its key cannot be used."""
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return SettingsError(f"cannot use {key}: {reason}; at {paths}")
