"""``/runbooks``: a section for each alert, under a policy that its own style fits."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from streamer.server.runbooks import PATH, add_runbooks
from tests.docs.runbooks import page
from tests.monitoring.test_rules import alerts
from tests.support.compose import ROOT


@pytest.fixture
async def answer() -> tuple[str, dict[str, str]]:
    """The text and the headers of the page."""
    app = web.Application()
    add_runbooks(app)
    async with TestClient(TestServer(app)) as client, client.get(PATH) as got:
        assert (got.status, got.content_type) == (200, "text/html")
        return await got.text(), dict(got.headers)


def test_every_alert_has_a_section_by_either_name(answer: tuple[str, dict[str, str]]) -> None:
    """Rules link to lower-case names, tables of Grafana to those of the alerts."""
    ids = re.findall(r'id="([^"]+)"', answer[0])
    assert len(set(ids)) == len(ids)
    names = set(alerts())
    assert names
    assert {*names, *map(str.lower, names)} == set(ids)
    assert set(re.findall(r'href="#([^"]+)"', answer[0])) <= set(ids)


def test_it_is_made_of_the_guide_and_shows_no_markup_of_markdown(
    answer: tuple[str, dict[str, str]],
) -> None:
    text = answer[0]
    assert text == page((ROOT / "docs" / "operations.md").read_text(encoding="utf-8"))
    body = re.sub(r"<style>.*?</style>|<code>.*?</code>", "", text, flags=re.DOTALL)
    assert not re.search(r"\]\(|`|(?<!\w)\*\w|^#", body, re.MULTILINE)
    assert "too many series (docs/how-to/size-it.md)" in text


def test_the_browser_applies_its_style_and_nothing_else(
    answer: tuple[str, dict[str, str]],
) -> None:
    text, headers = answer
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert f"style-src 'sha256-{digest}'" in policy
    assert "<script" not in text
