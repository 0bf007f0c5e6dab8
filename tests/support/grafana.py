"""A server that answers as Grafana's documentation of its HTTP API says, for there is no Grafana
here: folders and dashboards are kept in memory.

https://grafana.com/docs/grafana/latest/developers/http_api/dashboard/ and …/folder/
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from streamer.testing.embedded import HOST
from tests.support.http_servers import serving

TOKEN, VIEWER = "glsa_editor_0123", "glsa_viewer_0123"


class FakeGrafana:
    """What was put into it; ``moved_to``: where it redirects all requests."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}
        self.dashboards: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.moved_to = ""
        self._server = ThreadingHTTPServer((HOST, 0), _handler(self))
        self.url = f"http://{HOST}:{self._server.server_address[1]}"

    @contextlib.contextmanager
    def listening(self) -> Iterator[FakeGrafana]:
        with serving(self._server):
            yield self

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        """Status and document."""
        self.asked.append((method, path))
        if token not in (TOKEN, VIEWER):
            return 401, {"message": "Invalid API key"}
        if method == "POST" and token == VIEWER:
            return 403, {"message": "You'll need additional permissions to perform this action."}
        if method == "GET" and path.startswith("/api/folders?limit="):
            return 200, [{"uid": uid, "title": title} for uid, title in self.folders.items()]
        if path == "/api/folders":
            uid = f"nErXDvCkz{len(self.folders)}"
            self.folders[uid] = body["title"]
            return 200, {"uid": uid, "title": body["title"]}
        if path == "/api/dashboards/db":
            return self._saved(body)
        return 404, {"message": "Not found"}

    def _saved(self, body: Any) -> tuple[int, Any]:
        board, folder = body["dashboard"], body["folderUid"]
        if folder not in self.folders:
            return 404, {"message": "folder not found"}
        uid, title = board["uid"], board["title"]
        kept = self.dashboards.items()
        if any(d["dashboard"]["title"] == title for other, d in kept if other != uid):
            text = "A dashboard with the same name in the folder already exists"
            return 412, {"message": text, "status": "name-exists"}
        if uid in self.dashboards and not body["overwrite"]:
            text = "The dashboard has been changed by someone else"
            return 412, {"message": text, "status": "version-mismatch"}
        self.dashboards[uid] = body
        return 200, {"uid": uid, "url": f"/d/{uid}/{uid}", "status": "success", "version": 1}


def _handler(grafana: FakeGrafana) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", None)

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            self._answer("POST", json.loads(self.rfile.read(size)))

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, method: str, body: Any) -> None:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, document = grafana.answer(method, self.path, token, body)
            text = json.dumps(document).encode()
            self.send_response(302 if grafana.moved_to else status)
            if grafana.moved_to:
                self.send_header("Location", grafana.moved_to + self.path)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    return Handler
