"""``/api/decisions`` and ``/decisions.atom``: what was acted on, as a feed."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from aiohttp import web

from streamer.formatting import moment
from streamer.server.api import error_answer, json_answer, without_parameters
from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.state.acted import Acted, ActionRecord, DecisionList

_ATOM = "http://www.w3.org/2005/Atom"


class DecisionsApi:
    """What the store keeps of actions, the newest last."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter = exporter

    def add_routes(self, app: web.Application) -> None:
        """Answer below ``/api``, and the feed."""
        app.router.add_get("/api/decisions", self.listed)
        app.router.add_get("/decisions.atom", self.feed)

    async def listed(self, request: web.Request) -> web.Response:
        """All, or those after ``since``: epoch milliseconds."""
        if unknown := set(request.query) - {"since"}:
            return error_answer(400, f"unknown parameter {min(unknown)!r}: it takes 'since'")
        since = request.query.get("since", "0")
        if not (since.isascii() and since.isdigit() and int(since) <= limits.MAX_MS):
            return error_answer(400, "since must be milliseconds since 1970")
        acted = Acted.of(await self.exporter.store.acted())
        after = [record for record in acted.ordered() if record.at_ms > int(since)]
        return json_answer(DecisionList([acted.told_of(record) for record in after]))

    async def feed(self, request: web.Request) -> web.Response:
        """As Atom, the newest first."""
        if refused := without_parameters(request):
            return refused
        acted = Acted.of(await self.exporter.store.acted())
        body = atom(self.exporter.settings.redis.prefix, acted.ordered())
        return web.Response(body=body, content_type="application/atom+xml", charset="utf-8")


def atom(prefix: str, records: Sequence[ActionRecord]) -> bytes:
    """A feed by RFC 4287."""
    ET.register_namespace("", _ATOM)
    feed = ET.Element(f"{{{_ATOM}}}feed")

    def add(parent: ET.Element, name: str, text: str, **attributes: str) -> None:
        ET.SubElement(parent, f"{{{_ATOM}}}{name}", attributes).text = text

    add(feed, "id", f"urn:streamer:{prefix}")
    add(feed, "title", f"Decisions on the experiments of {prefix}")
    add(feed, "updated", moment(max((each.at_ms for each in records), default=0)))
    author = ET.SubElement(feed, f"{{{_ATOM}}}author")
    add(author, "name", "streamer")
    for record in reversed(records):
        entry = ET.SubElement(feed, f"{{{_ATOM}}}entry")
        add(entry, "id", f"urn:streamer:{prefix}:{record.key}")
        add(entry, "title", record.sentence)
        add(entry, "updated", moment(record.at_ms))
        add(entry, "summary", record.reason or record.sentence)
        if record.url:
            ET.SubElement(entry, f"{{{_ATOM}}}link", {"href": record.url})
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True))
