"""Connections to the exporter: how long each may take, and how many there may be.

A connection *waits* until the header of a request has come, and again after each answer. One that
waits too long is closed. When there are as many as there may be, a new one takes the place of the
one that has waited longest, so that clients which send nothing keep nobody out.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from streamer.logs import Notices
from streamer.settings import limits

SERVER = "streamer"
"""The header ``Server``: no version, which would help an attacker."""


class HttpConnections:
    """All connections of one exporter."""

    def __init__(self, server: web.Server, notices: Notices, most: int | None = None) -> None:
        self.server, self.notices = server, notices
        self.most = most_connections() if most is None else most
        self.open: set[HttpConnection] = set()

    def connection(self) -> HttpConnection:
        """For a socket that was accepted."""
        return HttpConnection(self)

    def close_late(self) -> None:
        """Close those whose time is over."""
        now = asyncio.get_running_loop().time()
        for each in [c for c in self.open if c.deadline is not None and c.deadline < now]:
            if each.late:
                self.notices.note(each.late, f"a connection was closed: {each.late}")
            each.abort()

    def make_room(self) -> bool:
        """Close the connection that has waited longest, or else whose client has longest not read
        its answer; False where all are at work, or have only begun to wait."""
        before = asyncio.get_running_loop().time() - limits.GRACE_SECONDS
        waiting = [c for c in self.open if not c.is_at_work and c.since < before]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda c: (c.is_unread, c.since))
        notice = f"{self.most} connections are open: the longest idle are closed for new ones"
        self.notices.note("full", notice)
        oldest.abort()
        return True

    def bound_unread(self) -> None:
        """Close connections whose clients do not read, the oldest first, while their answers take
        too much memory."""
        unread = sorted((c for c in self.open if c.is_unread), key=lambda c: c.since)
        waiting_bytes = sum(c.unread_bytes for c in unread)
        while waiting_bytes > limits.MAX_UNREAD_BYTES and unread:
            oldest = unread.pop(0)
            waiting_bytes -= oldest.unread_bytes
            self.notices.note(
                "unread", "clients do not read their answers: the oldest such connection is closed"
            )
            oldest.abort()


class HttpConnection(RequestHandler):
    """One connection: aiohttp's, with deadlines, and without a word of what a client sent in the
    log."""

    def __init__(self, connections: HttpConnections) -> None:
        super().__init__(
            connections.server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.IDLE_SECONDS,
            lingering_time=limits.LINGER_SECONDS,
            max_headers=limits.MAX_HEADERS,
            access_log=None,  # type: ignore[arg-type]  # which aiohttp's runner passes on, too
        )
        self._connections = connections
        self.deadline: float | None = None
        """When it will be closed, on the loop's clock; None while a request is worked on."""
        self.late = ""
        """What is said when the deadline passes; nothing of an idle connection."""
        self.since = 0.0
        """Since when it waits for a request, or for its client to read."""
        self.is_unread = False
        """Whether an answer, or a part of it, waits for the client."""
        self._is_handled = self._has_more = False

    @property
    def is_at_work(self) -> bool:
        """Whether a request is being answered, and the client is not what that waits for."""
        return self._is_handled and not self.is_unread

    @property
    def unread_bytes(self) -> int:
        """Bytes of answers that the client has not read yet."""
        transport = self.transport
        return 0 if transport is None else transport.get_write_buffer_size()

    def abort(self) -> None:
        """Close it now, whatever is not written yet."""
        self._connections.open.discard(self)
        self.deadline = None
        transport = self.transport
        if transport is not None:
            transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connections.open.add(self)
        self.since = self._loop.time()
        self._expect_header()
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.open.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_handled and not self._has_more:
            self._expect_header()
        self._has_more = True
        super().data_received(data)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.is_unread, self.since = True, self._loop.time()
        text = f"its client did not read an answer within {limits.UNREAD_SECONDS:g} s"
        self._set_deadline(limits.UNREAD_SECONDS, text)
        self._connections.bound_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.is_unread = False
        if self._is_handled:
            self.deadline = None
        else:
            self._set_deadline(limits.IDLE_SECONDS, "")

    async def _handle_request(
        self,
        request: BaseRequest,
        start_time: float | None,
        request_handler: Callable[[BaseRequest], Awaitable[web.StreamResponse]],
    ) -> tuple[web.StreamResponse, bool]:
        self._is_handled, self._has_more, self.deadline = True, False, None
        try:
            return await super()._handle_request(request, start_time, request_handler)
        finally:
            self._is_handled = False
            if not self.is_unread:
                self.since = self._loop.time()
                if self._has_more:
                    self._expect_header()
                else:
                    self._set_deadline(limits.IDLE_SECONDS, "")

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """An answer in words, and one line a minute in the log."""
        if status < 500:
            self._connections.notices.note("bad", f"a request was rejected: {_REFUSED}")
            problem = _REFUSED
        else:
            problem = f"unexpected {type(exc).__name__}"
            self._connections.notices.note(problem, f"a request failed: {problem}")
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has already begun")
        headers = {"Server": SERVER, "X-Content-Type-Options": "nosniff"}
        response = web.Response(status=status, text=f"{problem}\n", headers=headers)
        response.force_close()
        return response

    def log_exception(self, *args: object, **kw: object) -> None:
        """Aiohttp calls it with bytes of a request in the traceback: only the type is logged."""
        exc = kw.get("exc_info")
        text = f"unexpected {type(exc).__name__}" if isinstance(exc, BaseException) else "a fault"
        self._connections.notices.note(text, f"a connection was closed: {text}")

    def _expect_header(self) -> None:
        text = f"no complete request header within {limits.HEADER_SECONDS:g} s"
        self._set_deadline(limits.HEADER_SECONDS, text)

    def _set_deadline(self, seconds: float, late: str) -> None:
        self.deadline, self.late = self._loop.time() + seconds, late


_REFUSED = "it is not valid HTTP/1.1, or its header is too large"


def most_connections() -> int:
    """As many as may be open: fewer than the files that this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits.MAX_CONNECTIONS
    return min(limits.MAX_CONNECTIONS, max(soft // 4, soft - limits.RESERVED_FILES))
