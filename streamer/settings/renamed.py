"""Metrics whose name has changed: the old one stays on ``/metrics`` for one release.

In the settings an old name stands for the new one, with a warning. The table is emptied with the
release after the renaming.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("streamer")
RENAMED = {
    "hit_rate_ratio": "user_hit_ratio",
    "hit_rate_lower_ratio": "user_hit_lower_ratio",
    "hit_rate_upper_ratio": "user_hit_upper_ratio",
    "experiment_mixed_users": "experiment_users_in_several_arms",
}
"""Old name → new name, without prefix."""


def present_name(name: str) -> str:
    """A metric's name; the new one of an old one, with a warning.

    >>> present_name("ctr_ratio")
    'ctr_ratio'
    """
    new = RENAMED.get(name, name)
    if new != name:
        logger.warning("the metric %r is called %r now: change it in the settings", name, new)
    return new
