"""Sums as partitions store them, before anything is read of them."""

from __future__ import annotations

import numpy as np

from streamer.encoding.arrays import I64
from streamer.encoding.packed import ring_and_pane, segment_and_stat
from tests.support.engines import Engines


def by_segment(engines: Engines, ring: int) -> dict[tuple[str, ...], I64]:
    """Texts of a segment by all dimensions → what the panes of a ring add up to in the only
    partition, as the layout has it."""
    (partition,) = engines.partitions
    core, size = partition.core, engines.catalogue.layout.size
    panes = [pane for pane in core.live_panes(None) if ring_and_pane(pane)[0] == ring]
    _, code, value = core.dump_panes(panes, None)
    segment, stat = segment_and_stat(code)
    texts = partition.segments
    matrix = np.zeros((len(texts), size), np.int64)
    np.add.at(matrix, (segment, stat), value)
    found = zip(texts, matrix, strict=True)
    return {values: sums for values, sums in found if "all" not in values}
