"""Logs of another shape count as the same events in ours do: the decoder's paths against a
rewriting of each record, over logs with every trouble."""

from __future__ import annotations

import pytest

from tests.support.shapes import NAMES, SHAPES, counted, shaped


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_another_shape_counts_the_same(shape: str, name: str) -> None:
    log = shaped(7, name, shape)
    assert counted(log.mapped, log.theirs) == counted(log.settings, log.ours)
