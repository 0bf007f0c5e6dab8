"""Write docs/conformance.md.

python -m tests.conformance            writes it
python -m tests.conformance --check    exits 1 if it is not current
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from streamer.cli import generated
from tests.conformance.page import page

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or with ``--check`` compare it."""
    is_check = generated.parser("tests.conformance", __doc__ or "").parse_args(argv).check
    return generated.keep({PAGE: page()}, "tests.conformance", is_check)


if __name__ == "__main__":
    sys.exit(main())
