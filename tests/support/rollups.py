"""Settings under which every metric is shown in every usual rollup."""

from __future__ import annotations

from typing import Any


def every(*names: str, **metrics: Any) -> dict[str, Any]:
    """The table [metrics] for dimensions of these names: none, each alone, all together."""
    together = [list(names)] if len(names) > 1 else []
    rollups = [[], *([name] for name in names), *together]
    return {"rollups": rollups, "detailed": rollups, **metrics}
