"""Metrics whose name has changed: the old one stays on ``/metrics`` for one release.

In the settings an old name stands for the new one, with a warning. The table is emptied with the
release after the renaming.
"""

from __future__ import annotations

import logging
from functools import cache

logger = logging.getLogger("streamer")
RENAMED = {
    "hit_rate_ratio": "user_hit_ratio",
    "hit_rate_lower_ratio": "user_hit_lower_ratio",
    "hit_rate_upper_ratio": "user_hit_upper_ratio",
    "experiment_mixed_users": "experiment_users_in_several_arms",
}
"""Old name → new name, without prefix."""


@cache
def new_name(old: str) -> str:
    """The name that a renamed metric has now; warns once of the old one in the settings."""
    new = RENAMED[old]
    logger.warning("the metric %r is called %r now: change it in the settings", old, new)
    return new
