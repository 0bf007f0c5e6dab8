"""The files of the page: how they are served, what they hold, and what they ask for."""

from __future__ import annotations

import base64
import gzip
import re
import urllib.error
import urllib.request
from email.message import Message

import pytest

from streamer.server import web
from streamer.testing.embedded import EmbeddedRedis
from tests.server.web.conftest import settings_of
from tests.support.all_cases import hold_for_all
from tests.support.browser import Browser
from tests.support.site import Documents, Site

FILES = {name: body.decode() for name, body in web.contents().items() if name != web.TEMPLATE}
NAMES = sorted(name for name in FILES if name.rpartition(".")[2] in ("js", "css", "html"))
MODULES = [name for name in NAMES if name.endswith(".js")]
OF_EXPERIMENTS = {"scorecard.css", "scorecard.js"}
"""What only the pages of experiments ask for."""
MAX_LINES, MAX_FUNCTION_LINES = 400, 50


def path_of(name: str) -> str:
    return "/" if name == "index.html" else f"/web/{name}"


def fetch(url: str, **headers: str) -> tuple[int, Message, str]:
    asked = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def comes_with_its_policy(name: str, url: str) -> None:
    status, headers, text = fetch(url)
    assert (status, text) == (200, FILES[name])
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
    assert headers["Content-Type"] == f"{kinds[name.rpartition('.')[2]]}; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    for kind in ("script-src", "style-src", "connect-src"):
        assert policy[kind] == "'self'"
    assert policy["img-src"] == "'self' data:"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    again, headers, text = fetch(url, **{"If-None-Match": headers["ETag"]})
    assert (again, text) == (304, "")
    assert "Content-Security-Policy" in headers


def test_every_file_comes_with_its_policy(served: Documents) -> None:
    hold_for_all(
        NAMES, lambda name: comes_with_its_policy(name, served.url + path_of(name)), at_least=30
    )


def test_files_come_compressed_where_that_is_understood(served: Documents) -> None:
    asked = urllib.request.Request(served.url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Vary"] == "Accept-Encoding"
        body = answer.read()
    assert gzip.decompress(body).decode() == FILES["index.html"]
    assert len(body) < len(FILES["index.html"]) / 2


@pytest.mark.parametrize(
    "path", ["/web/", "/web/__init__.py", "/web/../exporter.py", "/web/%2e%2e/exporter.py"]
)
def test_nothing_else_is_served(served: Documents, path: str) -> None:
    assert fetch(served.url + path)[0] == 404


def test_the_page_asks_for_the_password_like_every_page(redis: EmbeddedRedis) -> None:
    settings = settings_of(redis, "secured", exporter={"username": "me", "password": "secret"})
    with Site(settings) as site:
        login = base64.b64encode(b"me:secret").decode()
        for name in NAMES:
            url = site.url + path_of(name)
            assert fetch(url)[0] == 401
            assert fetch(url, Authorization=f"Basic {login}")[0] == 200


def test_the_password_may_be_in_the_address(page: Browser, redis: EmbeddedRedis) -> None:
    settings = settings_of(redis, "address", exporter={"username": "me", "password": "secret"})
    with Site(settings) as site:
        page.open(site.url.replace("//", "//me:secret@"))
        page.until(lambda: page.is_shown("#no-events"), "the page")
        assert page.complaints() == []
        page.open("about:blank")


def test_nothing_is_asked_of_others_and_nothing_is_complained_of(page: Browser, site: Site) -> None:
    page.open(site.url)
    page.until(lambda: page.is_shown("#experiments-table a"), "all is shown")
    asked = [url for url in page.requests() if not url.startswith("data:")]
    wanted = {site.url + path_of(name) for name in set(NAMES) - OF_EXPERIMENTS}
    assert wanted <= {u.rstrip("?") for u in asked} | {site.url + "/"}
    assert [url for url in asked if not url.startswith(site.url + "/")] == []
    assert page.complaints() == []


def test_files_name_no_other_host() -> None:
    for name in NAMES:
        found = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s'\"]*", FILES[name]))
        assert found <= {"http://www.w3.org/2000/svg"}, name  # a name, not an address


def test_text_is_only_ever_set_as_text() -> None:
    for name in MODULES:
        risky = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        assert not re.search(risky, FILES[name]), name
    html = FILES["index.html"]
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", html)
    assert re.findall(r"<script[^>]*>[^<]", html) == []


def test_every_module_is_loaded_ahead() -> None:
    ahead = re.findall(r'rel="modulepreload" href="web/([^"]+)"', FILES["index.html"])
    assert sorted([*ahead, "main.js", "scorecard.js"]) == MODULES


def test_files_and_functions_stay_small() -> None:
    for name in NAMES:
        lines = FILES[name].splitlines()
        assert len(lines) <= MAX_LINES, name
        if name in MODULES:
            for first, line in enumerate(lines):
                begins = re.match(
                    r"( *)(?:export |async )*(?:function\b|(?:async )?[#\w]+\(.*\) \{$)", line
                )
                if begins:
                    ends = (
                        i for i in range(first, len(lines)) if lines[i].startswith(begins[1] + "}")
                    )
                    assert next(ends) - first < MAX_FUNCTION_LINES, f"{name}: {line}"
