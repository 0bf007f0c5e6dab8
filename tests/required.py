"""Tests that need a program are skipped by name where it is missing; with `CI=true` they fail."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.components import COMPONENTS, reason


def require(*names: str) -> None:
    """Go on where these components are there: skip the test, or in CI fail it, where one is not."""
    for name in names:
        if not COMPONENTS[name].is_there:
            stop = pytest.fail if os.environ.get("CI") else pytest.skip
            stop(reason(name))


def program(component: str, *names: str) -> str:
    """The path of the first of these programs that is on PATH, after ``require(component)``."""
    require(component)
    return next(path for name in names if (path := shutil.which(name)))
