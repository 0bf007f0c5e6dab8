"""Made-up traffic without an end, from now on: what ``streamer produce --synthetic`` sends.

It has every trouble a real log has, a little of each, so that every panel and counter has
something to show: events out of order, late ones, copies, and records that are no events.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from streamer.ingest.record import record_decoder
from streamer.settings.model import Settings
from streamer.sources.files import Line
from streamer.sources.synthetic import Traffic, generate

BATCHES_PER_SECOND = 4
"""How often the traffic can be stopped."""
_IDS_PER_MS = 1000
"""Ids begin at the start time times this, so that no two runs share one."""


class LiveTraffic:
    """Batches of lines in log order; a line's record timestamp is the largest ``ts`` so far.

    ``rate``: events per second; ``start_ms``: event time of the first, epoch milliseconds.
    """

    total_bytes = None
    read_bytes = 0

    def __init__(self, rate: float, settings: Settings, start_ms: int) -> None:
        self.traffic = Traffic(
            seed=start_ms,
            start_ms=start_ms,
            first_id=start_ms * _IDS_PER_MS,
            events_per_second=rate,
            items_form_share=0.2,
            tested_every=20,
            requestless_click_share=0.1,
            out_of_order_share=0.05,
            late_share=0.002,
            duplicate_share=0.005,
            broken_share=0.002,
        )
        self._batch = max(1, int(rate / BATCHES_PER_SECOND))
        self._decoder = record_decoder(settings)

    def __iter__(self) -> Iterator[list[Line]]:
        running_ms = self.traffic.start_ms
        lines = generate(self.traffic, None)
        while True:
            batch: list[Line] = []
            for kind, raw in islice(lines, self._batch):
                running_ms = max(running_ms, self._decoder.time_of(kind, raw) or 0)
                batch.append((kind, running_ms, raw))
            yield batch
