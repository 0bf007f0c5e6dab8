"""Bugs can be planted: what they change stands in the product."""

from __future__ import annotations

from tests.planted import BUGS, ROOT


def test_the_text_of_every_bug_stands_in_its_file() -> None:
    stale = [
        f"{bug.path}: {bug.old}"
        for bug in BUGS
        if bug.old not in (ROOT / bug.path).read_text(encoding="utf-8")
    ]
    assert not stale
    assert len(BUGS) >= 30
