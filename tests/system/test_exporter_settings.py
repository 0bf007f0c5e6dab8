"""An exporter begins again with settings that were applied, once they are counted by."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from streamer.cli.main import main
from tests.state.test_redis_access import exporter
from tests.support.cases import PARTITIONS, random_case
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import as_toml, bench, document_of, ends_of, produce, until
from tests.system.test_fill import BEFORE

pytestmark = long


@pytest.mark.timeout(180)
async def test_an_exporter_takes_what_was_applied(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
) -> None:
    case, names = random_case({**BEFORE}, 600, 3), topics(partitions=PARTITIONS)
    old = document_of(kafka, names, redis_url, redis_prefix, BEFORE)
    fewer = {**BEFORE, "dimensions": BEFORE["dimensions"][:1]}
    before = document_of(kafka, names, redis_url, redis_prefix, fewer)
    added = BEFORE["dimensions"][1]["name"]
    await produce(kafka, names, case.log)
    async with bench(tmp_path, before) as made:
        made.start_worker()
        await made.settle(ends_of(case.log))
        async with exporter(made.config) as (url, said), aiohttp.ClientSession() as session:

            async def text() -> str:
                try:
                    async with session.get(url) as answer:
                        return await answer.text()
                except aiohttp.ClientError:  # it begins again
                    return ""

            assert f'{added}="' not in await text()
            made.config.write_text(as_toml(old))
            await asyncio.sleep(5)
            assert f'{added}="' not in await text()  # nobody has applied them
            assert await asyncio.to_thread(main, ["apply", str(made.config)]) == 0

            async def shows() -> bool:
                return f'{added}="' in await text()

            await until(shows, "the exporter shows what is counted", said)
            assert "starting again with the new settings" in said()
