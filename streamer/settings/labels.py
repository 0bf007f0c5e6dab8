"""Labels that streamer or Prometheus sets itself: no dimension may have their names."""

from __future__ import annotations

OF_READINGS = (
    *("quantile", "le", "upto_seconds", "feedback", "maturity", "position", "topic", "reason"),
    *("dimension", "k", "over", "definition", "convention", "threshold", "bin", "upto", "policy"),
    *("custom", "composite", "setting"),
    *("experiment", "metric", "arm", "interval", "verdict", "alert", "status"),
)
"""Labels of readings, besides the window and the dimensions."""
OF_PROCESS = ("worker", "phase", "partition")
"""Labels of the processor's own metrics."""
OF_ALERTS = ("baseline", "severity", "alertname")
"""Labels of rules and of what Alertmanager groups by."""
OF_TARGETS = ("job", "instance")
"""Labels that Prometheus adds to a target's series."""
RESERVED = frozenset({"window", *OF_READINGS, *OF_PROCESS, *OF_ALERTS, *OF_TARGETS})
