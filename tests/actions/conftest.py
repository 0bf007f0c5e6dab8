"""No test leaves a connection open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.actions.world import LEADERS


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    LEADERS.clear()
    yield
    for leader in LEADERS:
        await asyncio.gather(*leader._sending.values(), return_exceptions=True)
        if leader._session is not None:
            await leader._session.close()
