"""Error rates of simulations: written with their own error, held to what is promised, in tables."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt


def rate(found: int, runs: int) -> str:
    """A share with its standard error, which is that of one more found and one more not."""
    share = (found + 1) / (runs + 2)
    return f"{found / runs:.1%} ± {sqrt(share * (1 - share) / runs):.1%}"


def hold(what: str, found: int, runs: int, promised: float) -> None:
    """Fail if a rate is above what was promised by more than chance (three standard errors)."""
    if found / runs > promised + 3 * sqrt(promised * (1 - promised) / runs):
        raise AssertionError(f"{what}: {found} of {runs}, promised at most {promised:.2%}")


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table as the documentation has it."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)
