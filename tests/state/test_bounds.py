"""A commit holds what the largest settings let through: every bound is filled at once."""

from __future__ import annotations

import datetime

import msgspec
import pytest

from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.model import Redis
from streamer.state.manifest import decode
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from tests.support.canonical import canonical
from tests.support.engines import LogRecord, chunks_of
from tests.support.journals import commit, start, take_over
from tests.support.lanes import long

FIRST_MS, DAYS = 1_700_000_000_000, 8
RECORDS = 10_500
DIMENSIONS = [f"dimension_{i}" for i in range(limits.MAX_DIMENSIONS)]
LONG = DIMENSIONS[:6]
"""Those with the longest values."""
WATCHED = (
    *("ctr_ratio", "ctr_attributed_ratio", "cvr_ratio", "cvr_attributed_ratio", "log_loss", "mse"),
    *("conversion_value_per_click", "conversion_value_per_impression", "dwell_mean_seconds"),
    *("positive_rate_ratio", "calibration_ratio"),
)
"""Alerts of ten minutes on these have as many panes as there may be."""
SETTINGS = parse(
    {
        "dimensions": [
            {"name": name, "max_values": limits.MAX_DIMENSION_VALUES} for name in DIMENSIONS
        ],
        "metrics": {
            "families": ["traffic", "engagement", "scores", "diversity"],
            "rollups": [[]],
            "detailed": [[]],
        },
        "windows": {"lengths": ["10m", "1h", "24h", "7d"], "day_before": ["10m", "24h"]},
        "alerts": [
            {"name": metric, "metric": metric, "window": "10m", "segments": LONG}
            for metric in WATCHED
        ],
        "items": {"dimensions": DIMENSIONS[:2]},
        "experiments": [
            {
                "name": f"experiment_{i}",
                "dimension": DIMENSIONS[0],
                "control": "A",
                "split": {"A": 1, "B": 1},
                "start": datetime.date(2023, 11, 14),
                "explore": LONG[1:],
            }
            for i in range(4)
        ]
        + [
            {
                "name": "stores",
                "arm": "prices",
                "unit": "store",
                "control": "A",
                "split": {"A": 1, "B": 1},
                "start": datetime.date(2023, 11, 14),
            }
        ],
    }
)


def longest(number: int, dimension: int) -> str:
    """A value of as many bytes as there may be, which compresses badly."""
    codes = [
        0x20000 + (number * 7919 + dimension * 104_729 + i * i * 31) % 40_000 for i in range(9)
    ]
    return "".join(map(chr, codes)) * 15


def records() -> list[LogRecord]:
    found = []
    for i in range(RECORDS):
        ts = FIRST_MS + i * DAYS * 86_400_000 // RECORDS
        values = {
            name: longest(i, k)[: limits.MAX_LABEL_CHARS] if name in LONG else f"{i}"
            for k, name in enumerate(DIMENSIONS)
        }
        event = {
            "type": "impression",
            "ts": ts,
            "user_id": f"u{i}",
            "item_id": f"i{i}",
            "score": 0.3,
            "prices": "A",
            "store": longest(i, len(DIMENSIONS))[: limits.MAX_LABEL_CHARS],
        }
        found.append(LogRecord("impressions", 0, i, ts, msgspec.json.encode(event | values)))
    return found


@long
@pytest.mark.timeout(300)
async def test_every_bound_may_be_filled_at_once(redis_url: str, redis_prefix: str) -> None:
    store = RedisStore(Redis(url=redis_url, prefix=redis_prefix))
    run = await start(store, SETTINGS, 1)
    for chunk in chunks_of(records(), 2000, 1):
        run.engines.feed(chunk)
    run.engines.finish()
    await commit(store, run, 0)
    stored = (await store.read(0)).manifest
    manifest = decode(stored)
    assert min(map(len, manifest.events)) > limits.MAX_DIMENSION_VALUES
    (texts,) = await store.blobs(0, [manifest.texts])
    assert len(texts or b"") > 1_000_000, "texts alone are more than a manifest is to be"
    assert len(stored) < 500_000 < limits.MAX_MANIFEST_BYTES / 20
    reader = Reader(store)
    await reader.refresh()
    assert len(reader.views[0].header.segments) > limits.MAX_DIMENSION_VALUES
    before = canonical(run.engines.partitions[0])
    await take_over(store, run, 0)
    assert canonical(run.engines.partitions[0]) == before
    await commit(store, run, 0)
    await store.close()
