"""A log to evaluate offline: lists, and relevant items of which some are not shown.

It imports nothing of the product: RecTools reads it in an environment of its own.
"""

from __future__ import annotations

from functools import cache
from random import Random

K = 5
USERS, ITEMS = 300, 60
Shown = list[tuple[str, str, float]]
Clicked = list[tuple[str, str, int]]


@cache
def log(kind: str) -> tuple[Shown, Clicked]:
    """Rows (user, item, score), whose scores differ within a list, and (user, item, grade); every
    user was shown something, and some clicked nothing. ``kind``: binary, or graded from 1 to 5."""
    dice = Random(f"offline {kind}")
    shown: Shown = []
    clicked: Clicked = []
    for number in range(USERS):
        user = f"u{number:03}"
        items = dice.sample(range(ITEMS), dice.randint(1, 12))
        scores = dice.sample(range(1, 1000), len(items))
        shown += [(user, f"i{i:02}", score / 8) for i, score in zip(items, scores, strict=True)]
        others = [i for i in range(ITEMS) if i not in items]
        wanted = [i for i in items if dice.random() < 0.3] + dice.sample(others, dice.randint(0, 3))
        wanted *= dice.random() < 0.9
        clicked += [
            (user, f"i{i:02}", dice.randint(1, 5) if kind == "graded" else 1) for i in wanted
        ]
    dice.shuffle(shown)
    return shown, clicked
