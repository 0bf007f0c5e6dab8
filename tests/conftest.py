"""Says which servers the tests ran against, whichever process of a parallel run found them."""

from __future__ import annotations

from typing import Any

import pytest

FOUND = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FOUND] = {}


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["servers"] = session.config.stash[FOUND]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    node.config.stash[FOUND].update(getattr(node, "workeroutput", {}).get("servers", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, what in terminalreporter.config.stash[FOUND].items():
        terminalreporter.write_line(f"{name}: {what}")
