"""Where the exporter listens: every socket is accepted by ourselves, so that they can be counted
before anything is read of them (a TLS handshake, too, is a connection that waits)."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator

from aiohttp import web

from streamer.errors import StreamerError
from streamer.logs import Notices
from streamer.server.connections import HttpConnections
from streamer.settings import limits

_BACKLOG = 128
_SWEEP_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
"""Between two looks for room, where there was none."""
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Listener(web.BaseSite):
    """A site of aiohttp on every address that a host name stands for."""

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        context: ssl.SSLContext | None = None,
        notices: Notices | None = None,
    ) -> None:
        super().__init__(runner, ssl_context=context)
        assert runner.server is not None  # BaseSite has looked
        self._address, self._context = (host, port), context
        self.connections = HttpConnections(runner.server, notices or Notices())
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """In the order in which they began."""

    @property
    def name(self) -> str:
        """The URL that it listens on."""
        scheme = "http" if self._context is None else "https"
        return f"{scheme}://{self._address[0]}:{self.port}"

    @property
    def port(self) -> int:
        """The port; a free one was chosen for 0."""
        return int(self._sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen. OSError where an address cannot be used."""
        host, port = self._address
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self._sockets = list(_bound([(family, address) for family, *_, address in addresses]))
        await super().start()
        self._begin(self._sweep())
        for each in self._sockets:
            self._begin(self._accept(each))

    async def stop(self) -> None:
        """Accept no more; connections that are open are the runner's to close."""
        for task in (*self._tasks, *self._handshakes):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._handshakes, return_exceptions=True)
        for each in self._sockets:
            each.close()
        await super().stop()

    def _begin(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.connections.close_late()

    async def _accept(self, listening: socket.socket) -> None:
        notices = self.connections.notices
        while True:
            await self._until_there_is_room()
            try:
                accepted, _ = listening.accept()
            except BlockingIOError:
                await _readable(listening)
                continue
            except OSError as error:
                if error.errno in _FULL:
                    why = error.strerror or str(error)
                    notices.note("accept", f"a connection cannot be accepted: {why}")
                    self.connections.make_room()
                    await asyncio.sleep(_PAUSE_SECONDS)
                continue  # else the client left before it was its turn
            accepted.setblocking(False)
            self._hand_over(accepted)
            await asyncio.sleep(0)  # accepting alone never yields while clients queue

    def _hand_over(self, accepted: socket.socket) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(accepted))
        self._handshakes[task] = None

        def ended(done: asyncio.Task[None]) -> None:
            self._handshakes.pop(done, None)
            if done.cancelled():
                accepted.close()

        task.add_done_callback(ended)

    async def _until_there_is_room(self) -> None:
        while len(self.connections.open) + len(self._handshakes) >= self.connections.most:
            has_many = self._context is not None and (
                len(self._handshakes) > self.connections.most // 2
            )
            if has_many:
                next(iter(self._handshakes)).cancel()
            elif not self.connections.make_room():
                await asyncio.sleep(_PAUSE_SECONDS)
            await asyncio.sleep(0)  # a socket is closed in the next round of the loop

    async def _connect(self, accepted: socket.socket) -> None:
        """Hand a socket to its connection, after the handshake where there is one."""
        seconds = None if self._context is None else limits.HEADER_SECONDS
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self.connections.connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except (OSError, TimeoutError) as error:  # of which those of TLS are some
            accepted.close()
            problem = f"the TLS handshake with a client failed ({type(error).__name__})"
            self.connections.notices.note("handshake", problem)


async def _readable(listening: socket.socket) -> None:
    """Wait for a client. (A loop's ``sock_accept`` loses the socket where it is cancelled late.)"""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def arrived() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(listening, arrived)
    try:
        await ready
    finally:
        loop.remove_reader(listening)


def _bound(addresses: list[tuple[int, tuple[object, ...]]]) -> Iterator[socket.socket]:
    """A listening socket of each address that this machine has. OSError where it has none, or one
    is taken."""
    bound: list[socket.socket] = []
    lacking: OSError | None = None
    for family, address in dict.fromkeys(addresses):
        try:
            made = socket.create_server(address, family=family, backlog=_BACKLOG)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                for each in bound:
                    each.close()
                raise
            lacking = error
        else:
            made.setblocking(False)
            bound.append(made)
    if not bound and lacking is not None:
        raise lacking
    yield from bound


def _advice(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "stop what listens there, or choose another port with --port or exporter.port"
    if error.errno == errno.EACCES:
        return "ports below 1024 need more rights: choose another with --port or exporter.port"
    return "name an address of this machine with --host or exporter.host"


async def listen(
    runner: web.AppRunner, host: str, port: int, context: ssl.SSLContext | None = None
) -> int:
    """Listen, and return the port (a free one for 0). StreamerError where that cannot be."""
    site = Listener(runner, host, port, context)
    try:
        await site.start()
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise StreamerError(
            f"cannot listen on {host}:{port}: {reason}: {_advice(error)}"
        ) from error
    return site.port
