"""A TCP proxy in front of Redis or Kafka: it delays, cuts, damages, swallows, and hangs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from streamer.testing.embedded import HOST

_BLOCK = 65536


@dataclass
class Proxy:
    """Forwards to ``target`` (a port); what is wrong now is in its attributes.

    ``swallow``: share of commits (scripts) whose reply is thrown away and the connection cut.
    ``cut``: share of blocks of bytes at which the connection is cut, in either direction.
    ``delay_seconds``: longest delay of a block.
    ``damage``: what becomes of a block of bytes of a reply.
    """

    target: int
    seed: int = 1
    swallow: float = 0.0
    cut: float = 0.0
    delay_seconds: float = 0.0
    swallowed: int = 0
    cuts: int = 0
    delayed: int = 0
    port: int = 0
    damage: Callable[[bytes], bytes] | None = None
    _hanging: set[asyncio.StreamWriter] = field(default_factory=set)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def __aenter__(self) -> Proxy:
        self.dice = Random(self.seed)
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._server.close()
        self.cut_all()
        await self._server.wait_closed()

    @property
    def brokers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def calm(self) -> None:
        self.swallow = self.cut = self.delay_seconds = 0.0

    def hang_all(self) -> None:
        """Let nothing more through on the present connections, and leave them open."""
        self._hanging |= self._writers

    def cut_all(self) -> None:
        """Cut every connection; what comes next goes to the present target."""
        for writer in list(self._writers):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            upstream, onward = await asyncio.open_connection(HOST, self.target)
        except OSError:
            self._writers.discard(writer)
            writer.close()
            return
        self._writers.add(onward)
        doomed = asyncio.Event()
        there = asyncio.create_task(self._pump(reader, onward, doomed, is_request=True))
        back = asyncio.create_task(self._pump(upstream, writer, doomed, is_request=False))
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        for side in (writer, onward):
            self._writers.discard(side)
            side.close()
        await asyncio.gather(there, back, return_exceptions=True)
        for side in (writer, onward):
            with contextlib.suppress(OSError):
                await side.wait_closed()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        doomed: asyncio.Event,
        is_request: bool,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_BLOCK):
                if self.delay_seconds:
                    self.delayed += 1
                    await asyncio.sleep(self.dice.random() * self.delay_seconds)
                if self.dice.random() < self.cut:
                    self.cuts += 1
                    return
                if is_request and b"EVALSHA" in data and self.dice.random() < self.swallow:
                    doomed.set()
                if not is_request and doomed.is_set():
                    self.swallowed += 1
                    return
                if writer in self._hanging:
                    continue
                if self.damage is not None and not is_request:
                    data = self.damage(data)
                writer.write(data)
                await writer.drain()
