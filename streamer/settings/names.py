"""What a name may mean that is none of the settings."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

import msgspec

from streamer.errors import SettingsError
from streamer.settings.section import NAME, Section, keys_of, sections_of, variable_of

_LIKENESS = 0.6
_UNKNOWN = re.compile(r"unknown field `([^`]*)`(?: - at `\$\.?([^`]*)`)?")
_ADDRESS = re.compile(r"[a-z]+://")
"""What Kubernetes writes into STREAMER_EXPORTER_PORT for a service called streamer-exporter."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like another one, whatever its case; None where none is like it.

    >>> nearest("Brokerz", ["group", "brokers"]), nearest("x", ["brokers"])
    ('brokers', None)
    """
    found = difflib.get_close_matches(name.lower(), list(known), 1, cutoff=_LIKENESS)
    return found[0] if found else None


def hint(message: str, root: type[Section]) -> str:
    """What to do about msgspec's message of an unknown key; "" where it is about something else."""
    unknown = _UNKNOWN.search(message)
    if unknown is None:
        return ""
    name, path, known_paths = unknown[1], unknown[2] or "", sections_of(root)
    kind = known_paths.get(re.sub(r"\[[^\]]*\]", "", path))
    if kind is None:
        kind = known_paths.get(path.replace("[...]", f".{NAME}"))
    if kind is None:
        return ""
    keys = [field.encode_name for field in msgspec.structs.fields(kind)]
    close = nearest(name, keys)
    if close is not None:
        return f": did you mean {close!r}?"
    elsewhere = [key for key in keys_of(root) if key.rpartition(".")[2] == name]
    if elsewhere:
        return f": did you mean {' or '.join(elsewhere)}?"
    return f": the keys there are {', '.join(keys)}"


def refuse_near_misses(environ: Mapping[str, str], root: type[Section]) -> None:
    """SettingsError for a variable that is a setting's but for an underscore: it would do nothing.

    Other variables that begin with STREAMER_ are not ours to judge: Kubernetes sets some for every
    service near by, among them addresses like tcp://10.0.0.1:8000.
    """
    meant = {variable_of(key).replace("__", "_"): key for key in keys_of(root) if "." in key}
    named = {
        re.compile(name.replace(f"_{NAME}_", r"_+([A-Z0-9_-]+?)_+") + r"\Z"): key
        for name, key in meant.items()
        if f".{NAME}." in key
    }
    for name, value in sorted(environ.items()):
        key = meant.get(name)
        for pattern, key_of_pattern in named.items():
            if match := pattern.match(name):
                key = key_of_pattern.replace(NAME, match[1].lower())
        if key is not None and name != variable_of(key) and not _ADDRESS.match(value):
            raise SettingsError(
                f"{name} is not a setting: {key} is {variable_of(key)}, with two underscores; "
                "in the environment"
            )
