"""Tests that need a program are skipped by name where it is missing; with `CI=true` they fail."""

from __future__ import annotations

import importlib.util
import os

import pytest

from tests.support.components import COMPONENTS, SKIPPED, reason, where


def require(*names: str) -> None:
    """Go on where these components are there: skip the test, or in CI fail it, where one is not."""
    for name in names:
        if not COMPONENTS[name].is_there:
            stop = pytest.fail if os.environ.get("CI") else pytest.skip
            stop(reason(name))


def program(component: str, *names: str) -> str:
    """The path of the first of these programs that is on PATH, after ``require(component)``."""
    require(component)
    return next(path for name in names if (path := where(name)))


def require_package(*names: str, extra: str) -> None:
    """The same for Python packages, which an optional dependency group of this project brings."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            stop = pytest.fail if os.environ.get("CI") else pytest.skip
            stop(f"{SKIPPED}{name}: pip install -e '.[{extra}]'")
