"""Labels that streamer or Prometheus sets itself, whose names no dimension may have; and values."""

from __future__ import annotations

from streamer.settings import limits

ALL, UNKNOWN = "all", "unknown"
"""What stands for all values of a dimension, and for a missing one."""
OF_READINGS = (
    *("quantile", "le", "upto_seconds", "feedback", "maturity", "position", "topic", "reason"),
    *("dimension", "k", "over", "definition", "convention", "threshold", "bin", "upto", "policy"),
    *("custom", "composite", "setting"),
    *("experiment", "metric", "arm", "interval", "verdict", "alert", "status"),
)
"""Labels of readings, besides the window and the dimensions."""
UNRESERVED = ("source", "cluster", "format", "recommendation", "metrics", "cause")
"""Labels of `source_info`, `experiment_recommendation` and `inexact`, which have none of
dimensions: these may have the same names."""
OF_PROCESS = ("worker", "phase", "partition")
"""Labels of the processor's own metrics."""
OF_ALERTS = ("baseline", "severity", "alertname")
"""Labels of rules and of what Alertmanager groups by."""
OF_TARGETS = ("job", "instance")
"""Labels that Prometheus adds to a target's series."""
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
