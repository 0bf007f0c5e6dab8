"""The page's card of an experiment as one file that needs nothing else: style, modules and document
are in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from html import escape

import msgspec

from streamer.query.readout_document import Document, heading_of, lines_of
from streamer.server.web import contents

_IMPORTED = re.compile(r'from "([a-z_]+\.js)"')
_IMPORT = re.compile(r'from "\./([a-z_]+\.js)"')
_SCRIPT = re.compile(r'<script type="module">(.*?)</script>', re.DOTALL)
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src data: {hashes}; "
    "require-trusted-types-for 'script'"
)


def frozen(document: Document) -> str:
    """The file; ``document``: what ``query.readout_document.document`` makes, with ``history``. All
    that settings and events say is data, which the page sets as text."""
    files = {name: body.decode() for name, body in contents().items()}
    page = files["report.html"]
    (script,) = _SCRIPT.findall(page)
    modules = _modules(files, _IMPORTED.findall(script))
    hashes = " ".join(f"'sha256-{_digest(each)}'" for each in (modules, script))
    texts = {
        "policy": _POLICY.format(hashes=hashes),
        "title": escape(document["name"]),
        "style": files["style.css"],
        "modules": modules,
        "sentences": "\n".join(f"<p>{escape(text)}</p>" for text in _lines(document)),
        "document": msgspec.json.encode(document).decode().replace("<", "\\u003c"),
    }
    return re.sub(r"\{([a-z]+)\}", lambda named: texts[named[1]], page)


def _lines(document: Document) -> Iterator[str]:
    """What is said where no script runs, as in a preview of mail."""
    yield from heading_of(document)
    for metric in document["metrics"] if document["last"] is not None else ():
        yield from (f"{metric['title']}, {line}" for line in lines_of(metric))


def _modules(files: Mapping[str, str], wanted: list[str]) -> str:
    """An import map: each module that is needed as an address that holds its text. Modules import
    each other by name, as such an address has no folder."""
    found: dict[str, str] = {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            text = _IMPORT.sub(r'from "\1"', files[name])
            encoded = base64.b64encode(text.encode()).decode()
            found[name] = f"data:text/javascript;base64,{encoded}"
            wanted += _IMPORT.findall(files[name])
    return json.dumps({"imports": dict(sorted(found.items()))})


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
