"""Rules of ``[clusters.NAME]`` that types cannot say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.clusters import MAIN

if TYPE_CHECKING:
    from streamer.settings.model import Settings

_NAME = re.compile(rf"[a-z0-9_-]{{1,{limits.MAX_CLUSTER_NAME_CHARS}}}")


def validate_clusters(s: Settings) -> None:
    """Raise SettingsError where sources and clusters do not fit together."""
    if len(s.clusters) > limits.MAX_CLUSTERS:
        raise SettingsError(f"{len(s.clusters)} clusters; at most {limits.MAX_CLUSTERS}")
    named = {source.cluster for source in s.sources}
    for name in s.clusters:
        at = f"at clusters.{name}"
        if _NAME.fullmatch(name) is None or name == MAIN:
            raise SettingsError(
                f"bad name {name!r}: 1 to {limits.MAX_CLUSTER_NAME_CHARS} of a-z, 0-9, _ and -, "
                f"and not {MAIN}; {at}"
            )
        if name not in named:
            raise SettingsError(
                f"no source reads this cluster: remove it, or set cluster = {name!r} in "
                f"[[sources]]; {at}"
            )
    for i, source in enumerate(s.sources):
        if source.cluster is not None and source.cluster not in s.clusters:
            there = ", ".join(s.clusters) or "none"
            raise SettingsError(
                f"cluster = {source.cluster!r}: there is no [clusters.{source.cluster}]; there "
                f"are: {there}; without `cluster` it is that of [kafka]; at sources[{i}]"
            )
        if source.cluster is not None and s.kafka.rekeyed:
            raise SettingsError(
                f"kafka.rekeyed = true: sources[{i}] is of cluster {source.cluster!r}, and no "
                "transaction spans clusters: mirror its topics to the cluster of [kafka], or read "
                "it without rekeying"
            )
    if s.sources and None not in named:
        raise SettingsError(
            "all sources are of other clusters: at least one must be of [kafka] (without "
            "`cluster`), as its consumer group shares the partitions out among the workers"
        )
