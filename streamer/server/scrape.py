"""Bodies of ``/metrics``: which format and coding a request wants, and the bytes, made once.

A body is the text of a readout, which is rendered and compressed once for each form, and a tail
that differs from scrape to scrape: the processor's own metrics, few lines.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from aiohttp import web

from streamer.query.readings import ReadingSet
from streamer.server import prometheus_text
from streamer.settings import limits

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_LEVEL = 4
"""Of gzip: twice the speed of the default, a few hundredths more bytes."""
_GZIP = 16 + zlib.MAX_WBITS


class Form(NamedTuple):
    """One way to write a body."""

    is_openmetrics: bool
    is_gzip: bool

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the response."""
        kind = OPENMETRICS if self.is_openmetrics else TEXT
        coding = {"Content-Encoding": "gzip"} if self.is_gzip else {}
        return {"Content-Type": kind, "Vary": "Accept, Accept-Encoding", **coding}


def form_of(accept: str, accept_encoding: str) -> Form:
    """What a request's headers ask for: OpenMetrics only where it is named and not below text.

    >>> form_of("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "gzip, br;q=0.5")
    Form(is_openmetrics=True, is_gzip=True)
    >>> form_of("*/*", "identity")
    Form(is_openmetrics=False, is_gzip=False)
    """
    wanted = dict(_weights(accept))
    openmetrics = wanted.get("application/openmetrics-text", 0.0)
    is_openmetrics = openmetrics > 0 and openmetrics >= wanted.get("text/plain", 0.0)
    return Form(is_openmetrics, _is_gzip(accept_encoding))


def accepts_gzip(request: web.Request) -> bool:
    """Whether a request's client reads gzip."""
    return _is_gzip(",".join(request.headers.getall("Accept-Encoding", [])))


def _is_gzip(accept_encoding: str) -> bool:
    codings = dict(_weights(accept_encoding))
    return codings.get("gzip", codings.get("*", 0.0)) > 0


def _weights(header: str) -> Iterator[tuple[str, float]]:
    """(name, weight) of each element, ascending, so that of one name the largest comes last."""
    weights = []
    for element in header.lower().split(","):
        name, *parameters = (part.strip() for part in element.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        weights.append((name, weight))
    yield from sorted(weights, key=lambda pair: pair[1])


class Bodies:
    """The bytes of the last readout in each form that was asked for."""

    def __init__(self) -> None:
        self._readout: ReadingSet | None = None
        self._made: dict[Form, tuple[bytes, Any]] = {}
        self._lock = asyncio.Lock()

    async def body(self, result: ReadingSet, form: Form, tail: bytes) -> tuple[bytes, bytes]:
        """The readout's text, which all requests for it share, and the tail; only what is not there
        yet is made, in a thread."""
        async with self._lock:
            if self._readout is not result:
                self._readout, self._made = result, {}
            if form not in self._made:
                await asyncio.to_thread(self._make, result, form)
            head, stream = self._made[form]
        if stream is None:
            return head, tail
        rest = stream.copy()  # goes on where the text ended: one gzip stream, one checksum
        return head, rest.compress(tail) + rest.flush()

    def _make(self, result: ReadingSet, form: Form) -> None:
        plain = Form(form.is_openmetrics, is_gzip=False)
        if plain not in self._made:
            text = prometheus_text.render(result.blocks, form.is_openmetrics)
            self._made[plain] = text.encode(), None
        if form.is_gzip:
            stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
            head = stream.compress(self._made[plain][0]) + stream.flush(zlib.Z_SYNC_FLUSH)
            self._made[form] = head, stream


class Sending:
    """Answers on their way, each in parts of which a client reads one before it gets the next: a
    slow one costs no copy. Where texts of too many readouts wait for clients, those that read the
    oldest one are cut off."""

    def __init__(self) -> None:
        self._clients: dict[int, tuple[bytes, list[web.Request]]] = {}
        """By ``id`` of the text: itself, and the requests that it is sent to; the oldest first."""

    async def send(
        self, request: web.Request, headers: dict[str, str], head: bytes, tail: bytes
    ) -> web.StreamResponse:
        """Answer with two parts; the connection is closed where that takes too long."""
        response = web.StreamResponse(headers=headers)
        response.content_length = len(head) + len(tail)
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        self._begin(request, head)
        try:
            async with asyncio.timeout(limits.UNREAD_SECONDS):
                for part in (head, tail):
                    for at in range(0, len(part), limits.PART_BYTES):
                        await response.write(part[at : at + limits.PART_BYTES])
        except (ConnectionError, TimeoutError):
            _abort(request)
        finally:
            self._end(request, head)
        return response

    def _begin(self, request: web.Request, head: bytes) -> None:
        self._clients.setdefault(id(head), (head, []))[1].append(request)
        oldest = list(self._clients.values())
        held_bytes = sum(len(text) for text, _ in oldest)
        for text, requests in oldest[:-1]:
            if held_bytes <= limits.MAX_UNREAD_BYTES or text is head:
                return
            held_bytes -= len(text)
            for each in requests:
                _abort(each)

    def _end(self, request: web.Request, head: bytes) -> None:
        requests = self._clients[id(head)][1]
        requests.remove(request)
        if not requests:
            del self._clients[id(head)]


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
