"""streamer: live, exact metrics for recommender, ranking and ads teams.

>>> import streamer
>>> log = streamer.read([
...     {"type": "impression", "user_id": "u", "item_id": "a", "ts": 1_760_000_000_000},
...     {"type": "click", "user_id": "u", "item_id": "a", "ts": 1_760_000_001_000},
... ])
>>> log.metrics("ctr", window="24h")["value"]
[1.0]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamer.errors import (
        CodecError,
        SettingsError,
        SourceError,
        StoreError,
        StreamerError,
        UsageError,
    )
    from streamer.library.counter import Counter, read
    from streamer.library.evaluation import Evaluation, evaluate
    from streamer.library.experiment import ExperimentReport
    from streamer.library.live import LiveMetrics, connect
    from streamer.library.planning import plan
    from streamer.library.table import Table

__version__ = "0.2.0"
__all__ = [
    "CodecError",
    "Counter",
    "Evaluation",
    "ExperimentReport",
    "LiveMetrics",
    "SettingsError",
    "SourceError",
    "StoreError",
    "StreamerError",
    "Table",
    "UsageError",
    "connect",
    "evaluate",
    "plan",
    "read",
]

_MODULES = {
    "CodecError": "streamer.errors",
    "Counter": "streamer.library.counter",
    "Evaluation": "streamer.library.evaluation",
    "ExperimentReport": "streamer.library.experiment",
    "LiveMetrics": "streamer.library.live",
    "SettingsError": "streamer.errors",
    "SourceError": "streamer.errors",
    "StoreError": "streamer.errors",
    "StreamerError": "streamer.errors",
    "Table": "streamer.library.table",
    "UsageError": "streamer.errors",
    "connect": "streamer.library.live",
    "evaluate": "streamer.library.evaluation",
    "plan": "streamer.library.planning",
    "read": "streamer.library.counter",
}
"""Public name → its module, which is imported when the name is first used: commands and workers
need none of them."""


if not TYPE_CHECKING:  # a checker knows all names, and finds wrong ones

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'streamer' has no attribute {name!r}")
        found = getattr(importlib.import_module(_MODULES[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
