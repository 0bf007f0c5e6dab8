"""Write docs/conformance.md.

python -m tests.conformance            writes it
python -m tests.conformance --check    exits 1 if it is not current
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.page import page

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or with ``--check`` compare it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        description=textwrap.dedent(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args(argv)
    text = page()
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if arguments.check:
        print(f"{PAGE} is not current: run `python -m tests.conformance`", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
