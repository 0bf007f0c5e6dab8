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
from urllib.parse import quote, urlsplit

from streamer.errors import GrafanaError, UsageError

_SECONDS = 30
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
        if parts.scheme == "http" and not may_be_plain and not _is_here(parts.hostname or ""):
            raise UsageError(
                f"the token would go unencrypted to {self._place}: use https, or --plain-http if "
                "nobody can listen"
            )
        self._token = token
        self._opener = urllib.request.build_opener(_Stay())

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
        found = self._ask("/api/dashboards/db", f"the dashboard {board['uid']}", body)
        path = str((found or {}).get("url", f"/d/{board['uid']}"))
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc}{path}"

    def _folder(self, title: str) -> str:
        """The uid of a folder, which is made where there is none."""
        uid = re.sub(r"[^A-Za-z0-9_-]+", "-", title)[:40]
        what = f"the folder {title!r}"
        if self._ask(f"/api/folders/{quote(uid)}", what, missing=True) is None:
            self._ask("/api/folders", what, {"uid": uid, "title": title})
        return uid

    def _ask(
        self, path: str, what: str, body: object = None, *, missing: bool = False
    ) -> dict[str, Any] | None:
        """What it answers; None where there is nothing and that may be."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers)  # noqa: S310 — http(s)
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                text = answer.read(_MAX_BYTES)
        except urllib.error.HTTPError as error:
            said = _message(error)
            if error.code == http.client.NOT_FOUND and missing and said:
                return None
            raise GrafanaError(self._refused(error, what, said)) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise GrafanaError(f"cannot reach Grafana: {reason}; at {self._place}") from None
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise GrafanaError(f"what answers is no Grafana: not JSON; at {self._place}")
        return found

    def _refused(self, error: urllib.error.HTTPError, what: str, said: str) -> str:
        hint = _HINTS.get(error.code, "")
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
