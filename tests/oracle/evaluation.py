"""Offline evaluation, written apart from the product: one list at a time, in exact fractions where
formulas have any. Rows are dicts; ids are texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log1p, log2, sqrt
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class OfflineList:
    """``grades``: of the distinct items in the order shown; ``scores``: theirs; ``unshown``: grades
    of relevant items that the list does not show."""

    user: str
    label: str
    grades: list[float]
    scores: list[float | None]
    unshown: list[float]

    @property
    def relevant(self) -> list[int]:
        """Ranks of the relevant items shown."""
        return [rank for rank, grade in enumerate(self.grades, 1) if grade > 0]

    @property
    def r(self) -> int:
        """How many items are relevant."""
        return len(self.relevant) + len(self.unshown)


def lists_of(
    shown: Sequence[Row], clicked: Sequence[Row], by: str, counts_unshown: bool
) -> list[OfflineList]:
    """The lists of a log, whose rows have a request or none."""
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in shown:
        rows[str(row["user_id"]), str(row.get("request_id"))].append(row)
    found = []
    for (user, request), some in rows.items():
        gains: dict[str, float] = {}
        for row in clicked:
            is_of_list = row.get("request_id", request) == request or "request_id" not in some[0]
            if str(row["user_id"]) == user and is_of_list:
                item = str(row["item_id"])
                gains[item] = max(gains.get(item, 0), row.get("grade", 1))
        first: dict[str, Row] = {}
        for row in some:
            first.setdefault(str(row["item_id"]), row)
        members = sorted(first.values(), key=_order)
        items = [str(row["item_id"]) for row in members]
        unshown = [g for item, g in gains.items() if item not in first and g > 0]
        label = some[0].get(by)
        found.append(
            OfflineList(
                user,
                "unknown" if label is None else str(label),
                [gains.get(item, 0) for item in items],
                [row.get("score") for row in members],
                unshown if counts_unshown else [],
            )
        )
    return found


def _order(row: Row) -> float:
    if "position" in row:
        return inf if row["position"] is None else row["position"]
    if "score" in row:
        return inf if row["score"] is None else -row["score"]
    return 0


# Values of one list ---------------------------------------------------------------------------


def hits(of: OfflineList, k: int) -> int:
    return sum(rank <= k for rank in of.relevant)


def dcg(grades: Sequence[float], k: int, gain: Callable[[float], float] = float) -> float:
    return sum(gain(g) / log2(i + 1) for i, g in enumerate(grades[:k], 1) if g > 0)


def ndcg(of: OfflineList, k: int, cut: int, gain: Callable[[float], float] = float) -> float:
    best = dcg(sorted([*of.grades, *of.unshown], reverse=True), cut, gain)
    return dcg(of.grades, k, gain) / best if best else 0


def average_precision(of: OfflineList, k: int, divisor: int) -> float:
    total = sum(hits(of, rank) / rank for rank in of.relevant if rank <= k)
    return total / divisor if divisor else 0


def average_recall(of: OfflineList, k: int, divisor: int) -> float:
    total = sum(hits(of, rank) / of.r for rank in of.relevant if rank <= k)
    return total / divisor if divisor else 0


def pairs(of: OfflineList) -> Iterator[int]:
    """1 for a pair whose higher grade comes first, -1 for one whose higher grade comes last."""
    for i, first in enumerate(of.grades):
        for last in of.grades[i + 1 :]:
            yield (first > last) - (first < last)


def leads(of: OfflineList) -> list[float]:
    """Score of each relevant item over each other one."""
    scored = [(g, s) for g, s in zip(of.grades, of.scores, strict=True) if s is not None]
    return [s - t for g, s in scored for h, t in scored if g > 0 and h == 0]


def auc(of: OfflineList) -> float:
    above = leads(of)
    return sum((lead > 0) + (lead == 0) / 2 for lead in above) / len(above)


def tau(of: OfflineList) -> float:
    return sum(pairs(of)) / (len(of.grades) * (len(of.grades) - 1) / 2)


def fcp(of: OfflineList) -> float:
    signs = list(pairs(of))
    return signs.count(1) / (signs.count(1) + signs.count(-1))


def bpr(of: OfflineList) -> float:
    above = leads(of)
    return sum(log1p(exp(-lead)) for lead in above) / len(above)


def is_contrasted(of: OfflineList) -> bool:
    return len(set(of.grades)) > 1


def first_rank(of: OfflineList, k: int) -> float:
    return next((1 / rank for rank in of.relevant if rank <= k), 0)


Value = Callable[[OfflineList], float]
Over = Callable[[OfflineList], bool]
WHOLE = 10**6


def is_engaged(of: OfflineList) -> bool:
    return of.r > 0


def values(k: int) -> dict[str, tuple[Value, Over]]:
    """Metric → its value of a list, and the lists that it is over."""
    engaged: dict[str, Value] = {
        f"precision@{k}": lambda of: hits(of, k) / k,
        f"precision@{k}.shown": lambda of: hits(of, k) / min(k, len(of.grades)),
        f"recall@{k}": lambda of: hits(of, k) / of.r,
        f"hit@{k}": lambda of: hits(of, k) > 0,
        "mrr": lambda of: first_rank(of, WHOLE),
        f"mrr@{k}": lambda of: first_rank(of, k),
        f"arhr@{k}": lambda of: sum(1 / rank for rank in of.relevant if rank <= k),
        f"map@{k}": lambda of: average_precision(of, k, of.r),
        f"map@{k}.jurity": lambda of: average_precision(of, k, min(k, of.r)),
        f"map@{k}.primer": lambda of: average_precision(of, k, hits(of, k)),
        "map": lambda of: average_precision(of, WHOLE, of.r),
        f"mar@{k}": lambda of: average_recall(of, k, of.r),
        f"cg@{k}": lambda of: sum(of.grades[:k]),
        f"dcg@{k}": lambda of: dcg(of.grades, k),
        f"ndcg@{k}": lambda of: ndcg(of, k, k),
        f"ndcg@{k}.jurity": lambda of: ndcg(of, k, WHOLE),
        f"ndcg@{k}.exponential": lambda of: ndcg(of, k, k, lambda g: 2**g - 1),
        "ndcg": lambda of: ndcg(of, WHOLE, WHOLE),
    }
    found: dict[str, tuple[Value, Over]] = {n: (v, is_engaged) for n, v in engaged.items()}
    found[f"ndcg@{k}.all"] = (engaged[f"ndcg@{k}"], lambda of: True)
    found[f"hit@{k}.all"] = (engaged[f"hit@{k}"], lambda of: True)
    found |= {"fcp": (fcp, is_contrasted), "kendall": (tau, is_contrasted)}
    found |= {name: (value, lambda of: bool(leads(of))) for name, value in
              {"gauc": auc, "bpr": bpr}.items()}  # fmt: skip
    return found


@dataclass(frozen=True)
class OfflineMean:
    """A mean, its standard error by users, lists and users."""

    value: float | None
    stderr: float | None
    lists: int
    users: int


def mean(lists: Sequence[OfflineList], value: Value, over: Over) -> OfflineMean:
    """A mean over lists; its error is that of a ratio of sums over users."""
    by_user: dict[str, list[float]] = defaultdict(list)
    for of in lists:
        if over(of):
            by_user[of.user].append(float(value(of)))
    n = sum(map(len, by_user.values()))
    if not n:
        return OfflineMean(None, None, 0, 0)
    m = sum(map(sum, by_user.values())) / n
    users = len(by_user)
    if users < 2:
        return OfflineMean(m, None, n, users)
    residuals = sum((sum(x) - m * len(x)) ** 2 for x in by_user.values())
    return OfflineMean(m, sqrt(users / (users - 1) * residuals) / n, n, users)
