"""What a request is answered that cannot be: too many of them, a store that is away, a fault."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from streamer.errors import StreamerError
from streamer.logs import Notices
from streamer.server.connections import SERVER
from streamer.settings import limits

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
API = "/api/"
EXPERIMENTS = "/experiments/"
HEALTH = "/api/health"


def failure(request: web.Request, status: int, text: str, **headers: str) -> web.Response:
    """An error in words: below /api a document, elsewhere a line."""
    if request.path.startswith(API):
        return web.json_response({"error": text}, status=status, headers=headers)
    return web.Response(status=status, text=f"{text}\n", headers=headers)


def errors(notices: Notices) -> Any:
    """Middleware of aiohttp: 503 where the store cannot be read, 500 for what nobody expected."""

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except StreamerError as error:
            return failure(request, 503, str(error))
        except web.HTTPException:
            raise
        except Exception as error:
            failed = f"unexpected {place_of(error)}"
            resource = request.match_info.route.resource
            page = resource.canonical if resource else "an unknown page"
            notices.note(failed, f"a request for {page} failed: {failed}")
            return failure(request, 500, failed)

    return answer


def place_of(error: Exception) -> str:
    """The kind of an exception and where it was raised; not its text, which may hold input.

    >>> try:
    ...     "secret".index("x")
    ... except ValueError as error:
    ...     place_of(error).partition(" at ")[0]
    'ValueError'
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


def gate() -> Any:
    """Middleware of aiohttp: a few requests for what is computed at a time, some that wait, no
    more. The one that says whether all is well never waits: it computes nothing that a scrape does
    not."""
    free = asyncio.Semaphore(limits.REQUESTS_AT_ONCE)
    waiting = 0

    @web.middleware
    async def pass_or_refuse(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal waiting
        if not request.path.startswith((API, EXPERIMENTS)) or request.path == HEALTH:
            return await handler(request)
        if free.locked() and waiting >= limits.REQUESTS_WAITING:
            refusal = f"{waiting} requests are waiting already: try again in a second"
            return failure(request, 503, refusal, **{"Retry-After": "1"})
        waiting += 1
        try:
            await free.acquire()
        finally:
            waiting -= 1
        try:
            return await handler(request)
        finally:
            free.release()

    return pass_or_refuse


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """On every answer: no version of the server, no guess at types, nothing kept in caches unless
    the answer says so itself."""
    response.headers["Server"] = SERVER
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Cache-Control", "no-store")
