"""A headless Chromium for tests of pages, driven by selenium over loopback."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from streamer.errors import StreamerError

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root, in containers; the pages are ours
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--lang=en-GB",
    "--hide-scrollbars",
)
_LACKS = """
const [done] = arguments;
axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
  done(violations.flatMap(({ id, nodes }) => nodes.map(({ failureSummary, html }) =>
    [id, failureSummary + html]))));"""
WAIT_SECONDS = 60.0
"""Longest wait for the page to show something, on a loaded machine."""


class Node(NamedTuple):
    """What assistive technology gets of an element: its role, its name, its level as a heading."""

    role: str
    name: str
    level: int | None = None


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser; StreamerError where Chromium or its driver is missing."""
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        raise StreamerError(
            "no chromium and chromedriver on PATH (Debian, Ubuntu: apt install chromium "
            "chromium-driver)"
        )
    options = ChromeOptions()
    options.binary_location = str(programs[0])
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(str(programs[1])))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


class Browser:
    """One window: what it shows, and what it asked for."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Load a page, as if for the first time."""
        self.driver.get("about:blank")
        self.requests()
        self.complaints()
        self.driver.get(url)

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a function body of JavaScript."""
        return self.driver.execute_script(script, *arguments)

    def run_with(self, module: str, body: str, *arguments: Any) -> Any:
        """The same of a function that gets the exports of one of the page's modules as ``it``, and
        the list ``given``."""
        script = f"""const given = [...arguments], done = given.pop();
          import("/web/{module}").then((it) => done((() => {{ {body} }})()));"""
        return self.driver.execute_async_script(script, *arguments)

    def command(self, name: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command of the DevTools protocol."""
        found: dict[str, Any] = self.driver.execute_cdp_cmd(name, parameters)
        return found

    def text(self, selector: str) -> str:
        """The text of the first element, as the document has it; empty where there is none."""
        script = "return document.querySelector(arguments[0])?.textContent ?? ''"
        return str(self.run(script, selector))

    def texts(self, selector: str) -> list[str]:
        """The shown texts of all elements."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)"
        found: list[str] = self.run(script, selector)
        return found

    def is_shown(self, selector: str) -> bool:
        """Whether the first element takes any room, and is not folded."""
        script = """const e = document.querySelector(arguments[0]);
          return !!e?.offsetHeight && e.checkVisibility();"""
        return bool(self.run(script, selector))

    def until(self, condition: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
        """The first true value; after the deadline a failure that says ``what``."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > deadline:
                body = self.text("body")[:2000]
                raise AssertionError(f"not within {seconds:.0f} s: {what}\n{body}")
            time.sleep(0.05)
        return value

    def press(self, key: str) -> None:
        """Press a key of selenium's ``Keys``."""
        self.driver.switch_to.active_element.send_keys(key)

    def resize(self, width: int, height: int = 900) -> None:
        """Give the page a width in CSS pixels, below what windows can have, too."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.command("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, **features: str) -> None:
        """Media features, as ``prefer(color_scheme="dark")``; without any, those of the machine."""
        named = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()
        ]
        self.command("Emulation.setEmulatedMedia", features=named)

    def requests(self) -> list[str]:
        """URLs of what pages asked for since the last call."""
        found = []
        for entry in self.driver.get_log("performance"):  # type: ignore[no-untyped-call]
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(str(message["params"]["request"]["url"]))
        return found

    def complaints(self) -> list[str]:
        """What was written to the console since the last call."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def lacks(self) -> list[tuple[str, str]]:
        """What axe-core, by all of its rules, finds that the page lacks for access: the rule of
        each violation, and where."""
        self.run(_axe())
        found = self.driver.execute_async_script(_LACKS)
        return [(rule, where) for rule, where in found]

    def accessible(self) -> list[Node]:
        """What assistive technology gets, in order."""
        nodes = self.command("Accessibility.getFullAXTree")["nodes"]
        by_id = {node["nodeId"]: node for node in nodes}
        return [_node(node) for node in _walk(nodes[0], by_id) if not node.get("ignored")]


@cache
def _axe() -> str:
    """The script of axe-core."""
    script = resources.files("selenium_axe_python") / "axe-core" / "axe.min.js"
    return script.read_text(encoding="utf-8")


def _walk(node: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("childIds", []):
        yield from _walk(by_id[child], by_id)


def _node(node: dict[str, Any]) -> Node:
    properties = {p["name"]: p["value"].get("value") for p in node.get("properties", [])}
    role, name = (node.get(key, {}).get("value", "") for key in ("role", "name"))
    return Node(str(role), str(name), properties.get("level"))
