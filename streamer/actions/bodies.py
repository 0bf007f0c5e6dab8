"""Requests of actions: bodies by template, each value escaped for its receiver, and signatures."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import string
from dataclasses import dataclass
from pathlib import Path

import msgspec

from streamer.errors import SettingsError
from streamer.formatting import percent, share
from streamer.settings.actions import TEMPLATES, Hook
from streamer.settings.load import secret_of
from streamer.state.acted import ActionRecord

_OF_RECORD = ("key", "kind", "experiment", "arm", "action", "sentence", "reason", "owner", "url")
_OF_NUMBERS = ("metric", "users", "lift", "low", "high")
_NAMES = (*_OF_RECORD, "time", "since", *_OF_NUMBERS)
"""What a template may name."""
_METHODS = ("POST", "PUT", "PATCH", "DELETE")
_HEADER = re.compile(r"^([A-Za-z0-9-]+): *(.*)$")
_OF_SECRET = "secret"  # noqa: S105


@dataclass(frozen=True)
class HttpRequest:
    """What is sent."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class _Template:
    """A file: optionally a method and headers, an empty line, then the body."""

    method: str
    headers: dict[str, str]
    body: str


def request_of(hook: Hook, record: ActionRecord, at_s: int) -> HttpRequest:
    """The request that tells of a record. ``at_s``: epoch seconds, which are signed with the body.
    SettingsError where a template or the secret cannot be used."""
    secret = (
        None if hook.secret_file is None else secret_of("actions.secret_file", hook.secret_file)
    )
    method, headers, body = _made(hook, record, secret)
    headers |= {"Idempotency-Key": record.key, "X-Streamer-Time": str(at_s)}
    headers.setdefault("Content-Type", "application/json")
    if secret is not None:
        headers["X-Streamer-Signature"] = signature(secret, at_s, body)
    return HttpRequest(method, hook.url, headers, body)


def signature(secret: str, at_s: int, body: bytes) -> str:
    """HMAC-SHA256 over the time, a dot and the body.

    >>> signature("s", 1, b"{}")[:20]
    'sha256=b253639bcd705'
    """
    made = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256)
    return f"sha256={made.hexdigest()}"


def _made(
    hook: Hook, record: ActionRecord, secret: str | None
) -> tuple[str, dict[str, str], bytes]:
    if hook.template == "json":
        document = {**msgspec.to_builtins(record), "text": record.sentence}
        return "POST", {}, json.dumps(document).encode()
    if hook.template == "slack":
        return "POST", {}, json.dumps({"text": _slack(record)}).encode()
    template = _read(hook.template)
    values = values_of(record)
    escaped = {name: json.dumps(value)[1:-1] for name, value in values.items()}
    plain = {name: _one_line(value) for name, value in values.items()} | {_OF_SECRET: secret or ""}
    headers = {k: string.Template(v).substitute(plain) for k, v in template.headers.items()}
    return template.method, headers, string.Template(template.body).substitute(escaped).encode()


def values_of(record: ActionRecord) -> dict[str, str]:
    """Each value that a template may name, as it is shown; empty where there is none."""
    numbers = record.numbers
    values = {name: str(getattr(record, name)) for name in _OF_RECORD}
    values |= {"time": str(record.at_ms), "since": str(record.since or "")}
    if numbers is None:
        return values | dict.fromkeys(_OF_NUMBERS, "")
    shown = _share if numbers.is_relative else _plain
    ends = {name: shown(getattr(numbers, name)) for name in ("lift", "low", "high")}
    return values | {"metric": numbers.metric, "users": str(numbers.users), **ends}


def _share(value: float | None) -> str:
    return "" if value is None else percent(value) if value >= 0 else f"-{share(-value)}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _one_line(text: str) -> str:
    """A header must not begin another one."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _slack(record: ActionRecord) -> str:
    """A message: Slack reads &, < and > as its own."""
    lines = [record.sentence, record.reason, record.url]
    text = "\n".join(filter(None, lines))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _read(path: str) -> _Template:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        known = ", ".join(TEMPLATES)
        raise SettingsError(
            f"template is none of {known} and no file: {reason}; at {path}"
        ) from None
    head, empty, body = text.partition("\n\n")
    lines = head.splitlines()
    method = lines[0].strip() if lines and lines[0].strip() in _METHODS else ""
    matches = [_HEADER.match(line) for line in lines[bool(method) :]]
    headers = {match[1]: match[2] for match in matches if match is not None}
    are_headers = all(matches)
    if not (method or (lines and are_headers)):
        return _checked(path, _Template("POST", {}, text))
    if not empty or not are_headers:
        raise SettingsError(f"a method and headers are followed by an empty line; at {path}")
    return _checked(path, _Template(method or "POST", headers, body))


def _checked(path: str, template: _Template) -> _Template:
    for text, more in ((template.body, ()), ("".join(template.headers.values()), (_OF_SECRET,))):
        made = string.Template(text)
        if not made.is_valid():
            raise SettingsError(f"a $ stands alone: write $$; at {path}")
        if unknown := set(made.get_identifiers()) - {*_NAMES, *more}:
            known = ", ".join((*_NAMES, *more))
            raise SettingsError(f"${{{min(unknown)}}} is none of {known}; at {path}")
    return template


def require_usable(hook: Hook) -> None:
    """SettingsError where its template or its secret cannot be used."""
    if hook.template not in TEMPLATES:
        _read(hook.template)
    if hook.secret_file is not None:
        secret_of("actions.secret_file", hook.secret_file)
