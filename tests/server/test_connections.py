"""Clients that send nothing, half of something, nonsense, or that do not read."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from streamer.errors import SettingsError
from streamer.logs import Notices
from streamer.server.authentication import guards, is_open
from streamer.server.connections import most_connections
from streamer.server.failures import HEALTH, Handler, add_headers, errors, gate
from streamer.server.host_names import host_guard
from streamer.server.listener import Listener
from streamer.server.scrape import Sending
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.model import ExporterSettings
from streamer.testing.embedded import HOST
from tests.support.secured import Certificates

MOST = 20
LARGE = 32 * 1024 * 1024
SECRET = "c2VjcmV0LXdvcmQ6"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _ok(request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _large(request: web.Request) -> web.Response:
    return web.Response(body=b"x" * LARGE)


async def _slow(request: web.Request) -> web.Response:
    await asyncio.sleep(0.1)
    return web.json_response({})


async def _fails(request: web.Request) -> web.Response:
    raise ValueError(f"with {request.query_string} and {request.headers.get('Authorization')}")


@contextlib.asynccontextmanager
async def served(
    exporter: ExporterSettings | None = None,
    context: ssl.SSLContext | None = None,
    metrics: Handler | None = None,
) -> AsyncIterator[Listener]:
    """The guards of an exporter before pages that are large, slow or at fault."""
    exporter, notices = exporter or ExporterSettings(), Notices()
    middlewares = [errors(notices), host_guard(exporter, is_open), *guards(exporter), gate()]
    app = web.Application(middlewares=middlewares)
    app.on_response_prepare.append(add_headers)
    pages = {"/healthz": _ok, "/large": _large, "/api/slow": _slow, HEALTH: _ok}
    for path, handler in {**pages, "/metrics": metrics or _ok}.items():
        app.router.add_get(path, handler)
    for path in ("/fails", "/api/fails"):
        app.router.add_get(path, _fails)
    runner = web.AppRunner(app)
    await runner.setup()
    site = Listener(runner, HOST, 0, context, notices)
    site.connections.most = MOST
    await site.start()
    try:
        yield site
    finally:
        await runner.cleanup()


async def connect(site: Listener, sent: bytes = b"") -> Stream:
    reader, writer = await asyncio.open_connection(HOST, site.port)
    writer.write(sent)
    return reader, writer


async def ask(site: Listener, path: str, *headers: str, host: str = HOST) -> str:
    """The whole answer to one request."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    reader, writer = await connect(site, ("\r\n".join(lines) + "\r\n\r\n").encode())
    found = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return found.decode()


async def seconds_until_closed(stream: Stream) -> float:
    started = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while await asyncio.wait_for(stream[0].read(65536), 60):
            pass
    stream[1].close()
    return time.monotonic() - started


async def test_connections_that_wait_make_room(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as site:
        silent = [await connect(site) for _ in range(5 * MOST)]
        for _ in range(3):
            assert "200 OK" in await ask(site, "/healthz")
        await asyncio.sleep(0.1)
        assert len(site.connections.open) <= MOST
        for _, writer in silent:
            writer.close()
    assert len(caplog.records) == 1
    assert "20 connections are open" in caplog.text


async def test_a_half_header_is_closed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.5)
    half = b"GET /healthz HTTP/1.1\r\nHost: x"
    whole = f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    async with served() as site:
        began = time.monotonic()
        streams = [await connect(site, sent) for sent in (b"", half, whole, half)]
        await streams[2][0].readuntil(b"ok\n")
        streams[2][1].write(half)

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                for _ in range(100):
                    streams[3][1].write(b"x")
                    await asyncio.sleep(0.1)

        dripping = asyncio.create_task(drip())
        opened = time.monotonic() - began  # a loaded machine may close them before it looks
        took = await asyncio.gather(*map(seconds_until_closed, streams))
        dripping.cancel()
    assert max(took) < 8  # two seconds before the dripping ends
    assert opened + min(took) > 0.3
    assert len([record for record in caplog.records if record.name != "asyncio"]) == 1
    assert "no complete request header within 0.5 s" in caplog.text


async def test_an_idle_connection_is_closed_in_silence(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "IDLE_SECONDS", 0.5)
    async with served() as site:
        request = f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
        stream = await connect(site, request)
        assert 0.3 < await seconds_until_closed(stream) < 3
    assert caplog.records == []


async def test_an_answer_that_nobody_reads_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "UNREAD_SECONDS", 0.5)
    request = f"GET /large HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    async with served() as site:
        reader, writer = await connect(site, request)
        await asyncio.sleep(0.3)
        assert [c.is_unread for c in site.connections.open] == [True]
        await asyncio.sleep(1.5)
        assert len(site.connections.open) == 0
        with contextlib.suppress(ConnectionError):
            assert len(await reader.read()) < LARGE
        writer.close()
    assert "did not read an answer within 0.5 s" in caplog.text


async def test_memory_of_unread_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_UNREAD_BYTES", 2 * LARGE)
    request = f"GET /large HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    async with served() as site:
        streams = [await connect(site, request) for _ in range(6)]
        await asyncio.sleep(1)
        assert sum(c.unread_bytes for c in site.connections.open) <= 2 * LARGE
        assert 1 <= len(site.connections.open) <= 3
        for _, writer in streams:
            writer.close()


async def test_a_text_that_many_read_slowly_is_in_memory_once() -> None:
    sending, text = Sending(), b"x" * LARGE

    async def metrics(request: web.Request) -> web.StreamResponse:
        return await sending.send(request, {}, text, b"end")

    request = f"GET /metrics HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    async with served(metrics=metrics) as site:
        streams = [await connect(site, request) for _ in range(10)]
        await asyncio.sleep(1)
        open_now = list(site.connections.open)
        assert [c.is_unread for c in open_now] == [True] * 10
        assert sum(c.unread_bytes for c in open_now) <= 10 * 4 * limits.PART_BYTES
        reader, _ = streams[0]
        assert b"Content-Length: %d" % (LARGE + 3) in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(LARGE + 3) == text + b"end"
        for _, writer in streams:
            writer.close()


async def test_texts_that_nobody_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_UNREAD_BYTES", 3 * LARGE)
    sending = Sending()

    async def metrics(request: web.Request) -> web.StreamResponse:
        return await sending.send(request, {}, bytes(LARGE), b"")

    request = f"GET /metrics HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    async with served(metrics=metrics) as site:
        streams = [await connect(site, request) for _ in range(6)]
        await asyncio.sleep(1)
        assert len(site.connections.open) == 3
        reader, _ = streams[-1]
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(LARGE) == bytes(LARGE)
        for _, writer in streams:
            writer.close()


async def test_a_text_is_cut_off_where_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNREAD_SECONDS", 0.5)
    sending = Sending()

    async def metrics(request: web.Request) -> web.StreamResponse:
        return await sending.send(request, {}, bytes(LARGE), b"")

    request = f"GET /metrics HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    async with served(metrics=metrics) as site:
        reader, writer = await connect(site, request)
        read = 0
        with contextlib.suppress(ConnectionError):
            while some := await reader.read(256 * 1024):  # each time soon enough
                read += len(some)
                await asyncio.sleep(0.1)
        assert read < LARGE
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\xfc\x03\x03\r\n\r\n",
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"GET /" + b"y" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nAuthorization: Basic " + SECRET.encode() + b"\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nAuthorization : Basic " + SECRET.encode() + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nAuthorization\x01: Basic " + SECRET.encode() + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: " + SECRET.encode() * 1000 + b"\r\n\r\n",
    ],
)
async def test_nonsense_is_refused_in_one_line(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with served() as site:
        for _ in range(5):
            reader, writer = await connect(site, sent)
            with contextlib.suppress(ConnectionError):
                found = await asyncio.wait_for(reader.read(), 60)
                assert found == b"" or found.startswith(b"HTTP/1.")
                assert b" 400 " in found[:20]
                assert SECRET.encode() not in found
                assert b"aiohttp" not in found
                assert b"Traceback" not in found
            writer.close()
    lines = [r for r in caplog.records if r.name != "asyncio"]
    assert len(lines) == 1
    assert lines[0].exc_info is None
    assert SECRET not in caplog.text


async def test_a_malformed_login_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    odd = ("Basic", f"Basic {SECRET}%%%", f"Bearer {SECRET}", f"Basic ü{SECRET}", SECRET)
    async with served(ExporterSettings(username="me", password="long")) as site:
        for header in odd:
            assert "401" in await ask(site, "/large", f"Authorization: {header}")
    assert SECRET not in caplog.text


async def test_a_fault_is_one_line_without_the_query(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as site:
        for path in ("/fails", "/api/fails"):
            for _ in range(3):
                answer = await ask(site, f"{path}?q={SECRET}", f"Authorization: Basic {SECRET}")
                assert "500 Internal Server Error" in answer
                assert "unexpected ValueError at test_connections.py:" in answer
                assert SECRET not in answer
                assert "Traceback" not in answer
    assert len(caplog.records) == 1
    assert "a request for /fails failed: unexpected ValueError" in caplog.text
    assert SECRET not in caplog.text


async def test_requests_below_api_wait_or_are_refused() -> None:
    async with served() as site:
        site.connections.most = 500
        asked = [asyncio.create_task(ask(site, "/api/slow")) for _ in range(100)]
        await asyncio.sleep(0.05)
        started = time.monotonic()
        assert "200 OK" in await ask(site, "/healthz")
        assert "200 OK" in await ask(site, HEALTH)
        assert time.monotonic() - started < 1
        answers = await asyncio.gather(*asked)
    refused = [a for a in answers if "503 Service Unavailable" in a]
    assert len([a for a in answers if "200 OK" in a]) + len(refused) == 100
    assert 100 - len(refused) >= limits.REQUESTS_AT_ONCE + limits.REQUESTS_WAITING
    assert refused
    assert all("Retry-After: 1" in a and '{"error": ' in a for a in refused)


async def test_handshakes_that_never_end_make_room(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server.cert, certificates.server.key)
    async with served(context=context) as site:
        silent = [await connect(site, sent) for sent in (b"", b"\x16\x03\x01") * (2 * MOST)]
        garbage = await connect(site, b"GET / HTTP/1.1\r\n\r\n")
        for _ in range(3):
            reader, writer = await asyncio.open_connection(
                HOST, site.port, ssl=certificates.context()
            )
            request = f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
            writer.write(request.encode())
            assert b"200 OK" in await asyncio.wait_for(reader.read(), 60)
            writer.close()
        for _, writer in (*silent, garbage):
            writer.close()
    assert len(caplog.records) <= 2
    assert all(record.exc_info is None for record in caplog.records)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 404),
        ("[::1]:8000", 404),
        ("10.1.2.3", 404),
        ("localhost:8000", 404),
        ("LocalHost", 404),
        ("exporter:8000", 404),
        ("evil.example:8000", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
async def test_names_that_it_answers_to(host: str, status: int) -> None:
    async with served(ExporterSettings(hosts=("exporter",))) as site:
        answer = await ask(site, "/nothing", host=host)
        assert f" {status} " in answer[:20]
        if status == 421:
            assert "exporter.hosts" in answer
        assert " 200 " in await ask(site, "/healthz", host=host)


@pytest.mark.parametrize("name", ["http://x", "x:8000", "x/y", "", "x" * 300, "ü"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(SettingsError, match=r"exporter\.hosts"):
        parse({"exporter": {"hosts": [name]}})


async def test_headers_of_every_answer() -> None:
    async with served() as site:
        for path in ("/healthz", "/nothing", "/api/slow", "/fails"):
            answer = await ask(site, path)
            head = answer.partition("\r\n\r\n")[0].split("\r\n")
            assert "X-Content-Type-Options: nosniff" in head
            assert "Cache-Control: no-store" in head
            assert "Server: streamer" in head


def test_there_are_fewer_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, most in ((256, 192), (1024, 960), (64, 16), (10**6, limits.MAX_CONNECTIONS)):
        monkeypatch.setattr("resource.getrlimit", lambda _, soft=soft: (soft, soft))
        assert most_connections() == most
