"""The picture of the rooms in docs/architecture.md, drawn from the imports.

python -m tests.docs.rooms            writes it
python -m tests.docs.rooms --check    exits 1 where it is not current
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamer.cli import generated
from tests.test_architecture import FILES, FLOORS, PACKAGE, room_of, rooms_below

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
_BEGIN, _END = "```mermaid\n", "```\n"
_COMMON = {"errors", "formatting", "notices", "encoding", "settings"}
"""What nearly every room imports."""


def page() -> str:
    """The page, with the picture as the imports are now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{picture()}{_END}{after}"


def picture() -> str:
    """An arrow from each room to those that it imports, but for what these import anyhow."""
    lines = ["flowchart TD"]
    below = rooms()
    for floor in reversed(FLOORS):
        for room in sorted(set(floor) - _COMMON):
            lines += [f"    {room} --> {other}" for other in nearest(room, below)]
    return "\n".join(lines) + "\n"


def rooms() -> dict[str, set[str]]:
    """Room → the rooms that its files import."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        if path.parent != PACKAGE or path.stem in ("app", "evaluation", "__main__"):
            found.setdefault(room_of(path), set()).update(rooms_below(path))
    return found


def nearest(room: str, below: Mapping[str, set[str]]) -> list[str]:
    """The imports of a room that none of its other imports has."""
    own = below.get(room, set()) - _COMMON
    further = {deep for other in own for deep in reached(other, below)}
    return sorted(own - further)


def reached(room: str, below: Mapping[str, set[str]]) -> set[str]:
    """All rooms below a room."""
    direct = below.get(room, set())
    return direct.union(*(reached(other, below) for other in direct))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or say that it is not current."""
    is_check = generated.parser("tests.docs.rooms", __doc__ or "").parse_args(argv).check
    return generated.keep({PAGE: page()}, "tests.docs.rooms", is_check, folder="docs")


if __name__ == "__main__":
    sys.exit(main())
