"""Writes the page on whose events are read: ``python -m tests.foreign.table``. Times are of the
machine that it runs on."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from itertools import takewhile
from pathlib import Path

from streamer.cli.main import main
from streamer.settings.source_rules import PRESETS, SAME_AS
from tests.foreign.settings import LINES
from tests.foreign.shapes import SHAPES
from tests.foreign.test_init import EDITS, NO_VALUE, NOT_READ
from tests.foreign.world import Shape

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "shapes.md"
FOLDER = ROOT / "streamer" / "settings" / "presets"
_HEAD = """\
# Event shapes that were tried

<!-- Written by `python -m tests.foreign.table`; do not edit. -->

The same events were written in the shapes of {count} products, data sets and tables.
`streamer init` proposed settings for each, which were compared with a plain count: {right} are
right at once. *lines* is the number of lines of hand-written settings beyond `topics` and
`preset`. *seconds* is the time of `streamer init` on two cores.

| shape | preset | `init` | lines | seconds | peculiarity |
| --- | --- | --- | --- | --- | --- |
"""
_PRESETS = """
## Presets

A [source](how-to/map-my-events.md#another-shape) with a `preset` starts from the preset's keys; its
own keys override them.

"""


def page() -> str:
    """The page, once each shape was proposed settings for."""
    rows = []
    for name, make in SHAPES.items():
        preset, seconds = proposed(make)
        edited = "one edit" if name in EDITS else "right"
        said = NOT_READ.get(name) or ("right, but for values" if name in NO_VALUE else edited)
        lines = str(LINES[name]) if name in LINES else "none"
        note = make.note.replace("|", "\\\\|")
        cells = (name.replace("_", " "), preset, said, lines, f"{seconds:.1f}", note)
        rows.append(f"| {' | '.join(cells)} |\n")
    right = len(SHAPES) - len({*EDITS, *NOT_READ, *NO_VALUE})
    described = [f"- `{name}`: {comment_of(name)}\n" for name in PRESETS]
    return (
        _HEAD.format(count=len(SHAPES), right=right) + "".join(rows) + _PRESETS + "".join(described)
    )


def comment_of(preset: str) -> str:
    """What a preset reads, as it says itself: the comment at its head."""
    if preset in SAME_AS:
        return f"the same as `{SAME_AS[preset]}`"
    text = (FOLDER / f"{preset}.toml").read_text(encoding="utf-8")
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines)


def proposed(shape: Shape) -> tuple[str, float]:
    """The preset that ``init`` finds, and how long it takes (s)."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in shape.files]
        for path, data in zip(paths, shape.files.values(), strict=True):
            path.write_bytes(data)
        out, began = Path(folder, "streamer.toml"), time.perf_counter()
        silent = io.StringIO()
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            main(["init", *map(str, paths), "-o", str(out)])
        seconds = time.perf_counter() - began
        text = out.read_text(encoding="utf-8") if out.exists() else ""
    presets = [line.split('"')[1] for line in text.splitlines() if line.startswith("preset")]
    return ", ".join(f"`{preset}`" for preset in presets), seconds


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
