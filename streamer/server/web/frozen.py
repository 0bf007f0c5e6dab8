"""The page's card of an experiment as one file that needs nothing else: style, modules and document
are in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import msgspec

from streamer.server.web import contents

_IMPORTED = re.compile(r'from "([a-z_]+\.js)"')
_IMPORT = re.compile(r'from "\./([a-z_]+\.js)"')
_SCRIPT = re.compile(r'<script type="module">(.*?)</script>', re.DOTALL)
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src data: {hashes}; "
    "require-trusted-types-for 'script'"
)


def frozen(document: Mapping[str, Any]) -> str:
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
        "sentences": "\n".join(f"<p>{escape(text)}</p>" for text in _sentences(document)),
        "document": msgspec.json.encode(document).decode().replace("<", "\\u003c"),
    }
    return re.sub(r"\{([a-z]+)\}", lambda named: texts[named[1]], page)


def _sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """What is said where no script runs, as in a preview of mail."""
    yield f"{document['who']}, {document['when']}"
    if (advice := document["recommendation"]) is not None:
        yield f"{advice['words'].capitalize()}. {advice['reason']}"
    if document["last"] is None:
        return
    yield document["metrics"][0]["split_test"]["words"]
    yield from (*document["warnings"], *document["notes"])
    for metric in document["metrics"]:
        for pair in metric["comparisons"]:
            verdict = pair["verdict"]
            yield f"{metric['title']}, {pair['arm']}: {verdict['outcome']}. {verdict['reason']}"


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
