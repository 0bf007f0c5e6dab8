"""Dashboards into a Grafana that runs, by its HTTP API.

https://grafana.com/docs/grafana/latest/developers/http_api/dashboard/
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from streamer.errors import GrafanaError, UsageError

_SECONDS = 30
_FOLDERS = 1000
"""So many are asked for, the most that Grafana gives."""
_MAX_BYTES = 1 << 20
_SHOWN_CHARS = 200
_TOKEN = re.compile(r"[\x21-\x7e]+")
_HINTS = {
    401: "the token is not valid: make a new one for a service account",
    403: "the token may not do this: its service account needs the role Editor",
    404: "there is no such API: is this the address of Grafana, with its path?",
    412: "another dashboard of the folder has its name: rename or remove that",
}


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would send the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""
        return


class Grafana:
    """A Grafana and a token; ``may_be_plain``: the token may go unencrypted to another host.

    UsageError where it would and may not, or where it is no token.
    """

    def __init__(self, url: str, token: str, *, may_be_plain: bool = False) -> None:
        parts = urlsplit(url)
        self._url, self._place = url.rstrip("/"), parts.netloc
        if not _TOKEN.fullmatch(token):
            raise UsageError("--token-file holds no token: one line of ASCII without blanks")
        is_here = _is_here(parts.hostname or "")
        if parts.scheme == "http" and not may_be_plain and not is_here:
            raise UsageError(
                f"the token would go unencrypted to {self._place}: use https, or --plain-http if "
                "nobody can listen"
            )
        self._token = token
        direct = [urllib.request.ProxyHandler({})] if is_here else []  # no proxy sees the token
        self._opener = urllib.request.build_opener(_Stay(), *direct)

    def upload(self, board: Mapping[str, Any], folder: str) -> str:
        """Put a dashboard in a folder, in place of the one with its uid; returns its URL.

        GrafanaError where Grafana cannot be reached or refuses.
        """
        body = {
            "dashboard": {**board, "id": None},
            "folderUid": self._folder(folder),
            "message": "streamer dashboards",
            "overwrite": True,
        }
        answer = self._ask("/api/dashboards/db", f"the dashboard {board['uid']}", body)
        if not isinstance(answer, dict) or "url" not in answer:
            raise GrafanaError(f"what answers is no Grafana: no url; at {self._place}")
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc}{answer['url']}"

    def _folder(self, title: str) -> str:
        """The uid of a folder, which is made where there is none."""
        what = f"the folder {title!r}"
        known = self._ask(f"/api/folders?limit={_FOLDERS}", what)
        if isinstance(known, list):
            for folder in known:
                if isinstance(folder, dict) and folder.get("title") == title:
                    return str(folder.get("uid"))
        made = self._ask("/api/folders", what, {"title": title})
        return str(made["uid"]) if isinstance(made, dict) and "uid" in made else ""

    def _ask(self, path: str, what: str, body: object = None) -> Any:
        """The document that it answers; ``what``: what is asked for, for messages."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers)  # noqa: S310 — http(s)
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                reply = answer.read(_MAX_BYTES)
        except urllib.error.HTTPError as error:
            raise GrafanaError(self._refused(error, what)) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise GrafanaError(f"cannot reach Grafana: {reason}; at {self._place}") from None
        try:
            return json.loads(reply)
        except ValueError:
            raise GrafanaError(f"what answers is no Grafana: not JSON; at {self._place}") from None

    def _refused(self, error: urllib.error.HTTPError, what: str) -> str:
        said, hint = _message(error), _HINTS.get(error.code, "")
        if 300 <= error.code < 400:
            hint = "it sends us elsewhere: give the address it redirects to"
        parts = [part for part in (said and f"({said})", hint and f": {hint}") if part]
        text = f"Grafana answers {error.code} {error.reason} for {what} {''.join(parts)}"
        return f"{text.replace(' : ', ': ').rstrip()}; at {self._place}"


def _message(error: urllib.error.HTTPError) -> str:
    """What Grafana says in words; nothing where the answer is none of its."""
    with contextlib.suppress(ValueError, OSError, http.client.HTTPException):
        found = json.loads(error.read(_MAX_BYTES))
        if isinstance(found, dict):
            return " ".join(str(found.get("message", "")).split())[:_SHOWN_CHARS]
    return ""


def _is_here(host: str) -> bool:
    """Whether a host is this machine.

    >>> [_is_here(host) for host in ("localhost", "127.0.0.1", "::1", "grafana", "10.0.0.1")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
