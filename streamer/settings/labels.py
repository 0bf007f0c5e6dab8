"""Labels that streamer or Prometheus sets itself, whose names no dimension may have; and values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.event_fields import ALL_FIELDS

OTHER, UNKNOWN = "other", "unknown"
"""What stands for values of a dimension beyond its bound, and for a missing one."""
OF_READINGS = (
    *("quantile", "le", "upto_seconds", "feedback", "maturity", "position", "topic", "reason"),
    *("dimension", "k", "over", "definition", "convention", "threshold", "bin", "upto", "policy"),
    *("ratio", "composite", "setting"),
    *("experiment", "metric", "arm", "interval", "verdict", "alert", "status"),
)
"""Labels of readings, besides the window and the dimensions."""
UNRESERVED = (
    *("source", "cluster", "format", "recommendation", "metrics", "cause", "rollup"),
    *("prefix", "state", "occasion"),
)
"""Labels of series that have none of dimensions, which may have the same names: `source_info`,
`experiment_recommendation`, `inexact`, `segments_capped_total`, `info`, `action_deliveries` and
`acted_total`."""
OF_PROCESS = ("worker", "phase", "partition", "table")
"""Labels of the processor's own metrics."""
OF_ALERTS = ("baseline", "severity", "alertname")
"""Labels of rules and of what Alertmanager groups by."""
OF_TARGETS = ("job", "instance", "system")
"""Labels that Prometheus adds to a target's series."""
NAME = r"^[a-z_][a-z0-9_]{0,62}\Z"
LOWER = r"^[a-z][a-z0-9_]{0,62}\Z"
RESERVED = frozenset({"window", *OF_READINGS, *OF_PROCESS, *OF_ALERTS, *OF_TARGETS})

VALUE_RULE = f"a text of 1 to {limits.MAX_LABEL_CHARS} characters, and not all, other or unknown"
"""What the settings may name as a value of a dimension."""


def is_value(value: str) -> bool:
    """Whether the settings may name a value of a dimension like this.

    >>> [is_value(x) for x in ("New York", "", "all", "x" * 129)]
    [True, False, False, False]
    """
    reserved = limits.RESERVED_LABELS | {"unknown"}
    return 0 < len(value) <= limits.MAX_LABEL_CHARS and value not in reserved


def validate_names(what: str, names: Sequence[str], most: int, pattern: str) -> None:
    """SettingsError where a list of tables, such as ``alerts``, is too long, or a name in it has
    other characters, or that of another table."""
    if len(names) > most:
        raise SettingsError(f"{len(names)} {what}; at most {most}")
    rule = {NAME: "a-z, 0-9 and _", LOWER: "a-z, 0-9 and _, a letter first"}
    characters = rule.get(pattern, "1 to 64 of A-Za-z0-9_.:-")
    for i, name in enumerate(names):
        if re.match(pattern, name) is None or names.count(name) > 1:
            raise SettingsError(
                f"name = {name!r}: use {characters}, and a different name for each of the {what}; "
                f"at {what}[{i}]"
            )


def validate_dimension_name(name: str, at: str) -> None:
    """SettingsError where a dimension cannot be called so."""
    if re.match(NAME, name) is None:
        raise SettingsError(f"bad name {name!r}: a-z, 0-9 and _; {at}")
    whose = ""
    if name in RESERVED:
        whose = "the name of a label that streamer or Prometheus sets itself"
    elif name.startswith("__"):
        whose = "a name that Prometheus reserves (it begins with __)"
    elif name in ALL_FIELDS:
        whose = "the name of a field of events"
    if whose:
        other = f"event_{name.strip('_')}"
        mapped = "" if name in ALL_FIELDS else f", and [events.fields] {other} = {name!r}"
        raise SettingsError(
            f"dimension {name!r} has {whose}: use another name, e.g. {other!r}{mapped}; {at}"
        )
