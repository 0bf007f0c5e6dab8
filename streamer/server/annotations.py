"""``/api/annotations``: marks from outside, read by anyone who may read the page, and written by
who has the token of ``[exporter]``."""

from __future__ import annotations

import asyncio
import hmac
from typing import Any

import msgspec
from aiohttp import web

from streamer.server.api import error_answer, json_answer, without_parameters
from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.settings.load import secret_of
from streamer.settings.model import ExporterSettings
from streamer.state.acted import Acted
from streamer.state.annotations import Annotation

PATH = "/api/annotations"


class _Posted(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    at_ms: int | None = None
    until_ms: int | None = None


class AnnotationsApi:
    """Marks of one exporter's store."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter = exporter
        self._token = token_of(exporter.settings.exporter)

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api``."""
        app.router.add_get(PATH, self.listed)
        app.router.add_post(PATH, self.added)
        app.router.add_delete(f"{PATH}/{{id}}", self.deleted)

    async def listed(self, request: web.Request) -> web.Response:
        """All marks, and what was acted on, the oldest first."""
        if refused := without_parameters(request):
            return refused
        store = self.exporter.store
        found = await store.annotations() if self._token else {}
        found |= Acted.of(await store.acted()).marks()
        found = dict(sorted(found.items(), key=lambda each: each[1].at_ms))
        return json_answer({"annotations": [_document(*each) for each in found.items()]})

    def _refused(self, request: web.Request) -> web.Response | None:
        """Why a request changes no mark."""
        if self._token is None:
            return error_answer(403, "set exporter.annotations_token_file in the settings first")
        if not is_allowed(request, self._token):
            return error_answer(401, "the header must be Authorization: Bearer TOKEN")
        return None

    async def deleted(self, request: web.Request) -> web.Response:
        """Delete the mark of an id, which the list names."""
        if refused := self._refused(request):
            return refused
        if not await self.exporter.store.forget_annotation(name := request.match_info["id"]):
            return error_answer(404, f"no mark has the id {name!r}: GET {PATH} lists them")
        return json_answer({"deleted": name})

    async def added(self, request: web.Request) -> web.Response:
        """Store a mark; without ``at_ms`` it is of now."""
        if refused := self._refused(request):
            return refused
        try:
            async with asyncio.timeout(limits.HEADER_SECONDS):
                body = await _body(request)
            posted = msgspec.json.decode(body, type=_Posted)
        except TimeoutError:
            return error_answer(408, "the body did not arrive in time")
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            return error_answer(400, f"the body must be JSON with text, at_ms, until_ms: {error}")
        now_ms = await self.exporter.store.now_ms()
        at_ms = now_ms if posted.at_ms is None else posted.at_ms
        mark = Annotation(at_ms, posted.text, posted.until_ms)
        if problem := mark.problem(now_ms):
            return error_answer(400, problem)
        return json_answer(_document(await self.exporter.store.annotate(mark), mark))


def _document(name: str, mark: Annotation) -> dict[str, Any]:
    return {"id": name, **msgspec.to_builtins(mark)}


async def _body(request: web.Request) -> bytes:
    """ValueError where it is too long."""
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > limits.MAX_ANNOTATION_BYTES:
            raise ValueError(f"it has more than {limits.MAX_ANNOTATION_BYTES} bytes")
    return bytes(body)


def is_allowed(request: web.Request, token: str) -> bool:
    """Whether a request has the token."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    expected, got = (each.encode("utf-8", "surrogatepass") for each in (token, given.strip()))
    return hmac.compare_digest(expected, got) & (scheme.lower() == "bearer")


def token_of(exporter: ExporterSettings) -> str | None:
    """The token; None where marks are not to be written. SettingsError where it cannot be read."""
    if exporter.annotations_token_file is None:
        return exporter.annotations_token
    return secret_of("exporter.annotations_token_file", exporter.annotations_token_file)


def is_annotation(request: Any) -> bool:
    """Whether a request is answered by its token, whatever password other pages ask for."""
    of_one = request.method == "DELETE" and request.path.startswith(f"{PATH}/")
    return bool(of_one or (request.method == "POST" and request.path == PATH))
