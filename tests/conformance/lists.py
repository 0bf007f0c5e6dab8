"""Lists to compare metrics of diversity on. It imports nothing of the product: see ``rectools``."""

from __future__ import annotations

from functools import cache
from random import Random

K, ITEMS, CATEGORIES = 5, 400, 7
USERS = 200


@cache
def cases() -> dict[str, list[list[int]]]:
    """Name → a list of items for each user: drawn evenly, and mostly the same ones."""
    return {"even": _lists("even", 0.0), "popular": _lists("popular", 1.2)}


def _lists(name: str, exponent: float) -> list[list[int]]:
    dice, lists = Random(name), []
    for _ in range(USERS):
        left, shown = list(range(ITEMS)), []
        for _ in range(K):
            odds = [(1 + item) ** -exponent for item in left]
            (item,) = dice.choices(left, odds)
            left.remove(item)
            shown.append(item)
        lists.append(shown)
    return lists


def category_of(item: int) -> int:
    """The category of an item."""
    return item % CATEGORIES
