"""How often each sentence about an alert is said, and how often it is false.

    python -m benchmarks.alert_claims                    every world, and its part of docs/claims.md
    python -m benchmarks.alert_claims --world "orders, too" --month 3      one month, look by look

A month of events is written, user by user, counted by the core as a replay does, and looked at once
an hour. Two alerts watch platforms: clicks of impressions, and the value of orders. What happens,
where and when, is known of each world, so each sentence is true or false.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.claims import PAGE, interval
from benchmarks.studies.rates import hold
from streamer.query.checks import watched
from streamer.query.firing import FiringAlert, Pipeline, firing_alerts
from streamer.settings.load import parse
from streamer.sources.files import FileSource
from streamer.sources.line_batch import by_part
from streamer.sources.replay import Replay
from streamer.stats.alerting.baseline import Status

HOUR_MS = 3_600_000
DAYS, WARM = 35, 8
"""Days of a month, of which the first are there to compare with."""
MONTHS = 8
BEGIN_MS = 1_767_571_200_000
"""2026-01-05, a Monday."""
PER_HOUR, USERS, PLATFORMS = 2_000, 900, ("web", "ios", "android")
SHARES, CTR, ORDERED = (0.5, 0.3, 0.2), 0.12, 0.6
WHERE = "ios"
WINDOW_HOURS = 6
SETTINGS = parse(
    {
        "dimensions": [{"name": "platform", "values": list(PLATFORMS)}],
        "metrics": {"families": ["traffic"]},
        "windows": {"lengths": ["6h", "24h"]},
        "time": {"max_lateness": "1m"},
        "attribution": {"click": "10m", "conversion": "1h"},
        "alerts": [
            {"name": name, "metric": metric, "window": "6h", "drop": 0.2, "segments": ["platform"]}
            for name, metric in (("ctr", "ctr_ratio"), ("value", "conversion_value_per_impression"))
        ],
    }
)
SENTENCES = {
    "looks like lost events": "lost",
    "events of ": "lost elsewhere",
    "looks like a real change": "real",
    "cannot tell": "cannot tell",
    "traffic has moved": "traffic",
    "nothing arrives": "traffic",
}


@dataclass(frozen=True)
class World:
    """What happens on one platform, or ``everywhere``, for some hours in the month. ``clicks``,
    ``orders``: the share that is left; ``copies``: how often each impression comes; ``weekend``:
    of the rates; ``true``: sentences that are so."""

    name: str
    hours: int = 0
    clicks: float = 1.0
    orders: float = 1.0
    copies: int = 1
    weekend: float = 1.0
    day: float = 0.0
    everywhere: bool = False
    true: tuple[str, ...] = ()

    def spans(self) -> tuple[int, int]:
        """From which hour on, and up to which."""
        begin = 24 * 20 + 9
        return begin, begin + self.hours


WORLDS = (
    World("nothing"),
    World("days differ", day=0.03),
    World("weekends are a fifth lower", weekend=0.8),
    World("all clicks lost", 30, clicks=0.0, true=("dropped", "lost", "lost elsewhere")),
    World(
        "nine of ten clicks lost",
        12,
        clicks=0.1,
        true=("dropped", "lost", "lost elsewhere", "cannot tell"),
    ),
    World(
        "half of the clicks lost",
        24,
        clicks=0.5,
        true=("dropped", "lost", "lost elsewhere", "cannot tell"),
    ),
    World("clicks and orders halve", 24, 0.5, 0.5, true=("dropped", "real", "cannot tell")),
    World(
        "both halve everywhere",
        24,
        clicks=0.5,
        orders=0.5,
        everywhere=True,
        true=("dropped", "real", "cannot tell"),
    ),
    World(
        "nine of ten clicks lost everywhere",
        12,
        clicks=0.1,
        everywhere=True,
        true=("dropped", "lost", "lost elsewhere", "cannot tell"),
    ),
    World("impressions twice", 24, copies=2, true=("dropped", "traffic", "cannot tell")),
)


def _hours(world: World, dice: np.random.Generator) -> Iterator[tuple[float, float, int, float]]:
    """Of each hour of the month: rates of clicks and orders where it happens, copies, and what
    the rates are times."""
    first, stop = world.spans()
    of_days = np.exp(dice.normal(0, world.day, DAYS)) if world.day else np.ones(DAYS)
    for hour in range(24 * DAYS):
        day = hour // 24
        factor = of_days[day] * (1 + 0.1 * np.sin(hour / 24 * 2 * np.pi))
        factor *= world.weekend if day % 7 >= 5 else 1.0
        if first <= hour < stop:
            yield world.clicks, world.orders, world.copies, factor
        else:
            yield 1.0, 1.0, 1, factor


def write(world: World, month: int, path: Path) -> None:
    """The events of a month."""
    dice = np.random.default_rng([sum(world.name.encode()), month])
    likes = dice.gamma(4, 1 / 4, USERS)
    platform = dice.choice(3, USERS, p=SHARES)
    number, encode = 0, msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for hour, (clicks, orders, copies, factor) in enumerate(_hours(world, dice)):
            n = dice.poisson(PER_HOUR * (1 + 0.3 * np.sin(hour / 24 * 2 * np.pi)))
            at = np.sort(dice.integers(0, HOUR_MS, n)) + BEGIN_MS + hour * HOUR_MS
            who = dice.integers(0, USERS, n)
            is_there = (platform[who] == PLATFORMS.index(WHERE)) | world.everywhere
            rate = np.minimum(0.9, CTR * factor * likes[who])
            wants = dice.random(n) < rate
            stays = np.where(is_there, dice.random(n) < max(clicks, 1e-9), True)
            lost_click = np.where(is_there & wants & ~stays, True, False)
            is_real = orders < 1
            buys = wants & (dice.random(n) < ORDERED) & ~(lost_click & is_real)
            worth = np.round(dice.gamma(2, 10, n), 2)
            lines = _lines(at, who, platform, np.where(is_there, copies, 1), number)
            lines += _feedback(at, who, wants & ~lost_click, buys, worth, number)
            lines.sort(key=lambda one: one[0])
            file.write(b"".join(encode(one) + b"\n" for _, one in lines))
            number += n


def _lines(
    at: NDArray[np.int64],
    who: NDArray[np.int64],
    platform: NDArray[np.int64],
    copies: NDArray[np.int64],
    number: int,
) -> list[tuple[int, dict[str, object]]]:
    made = []
    for i, (ms, user, times) in enumerate(zip(at.tolist(), who.tolist(), copies, strict=True)):
        one = {"type": "impression", "ts": ms, "user_id": f"u{user}", "item_id": f"i{number + i}"}
        one |= {"platform": PLATFORMS[platform[user]]}
        made += [(ms, one)] * int(times)
    return made


def _feedback(
    at: NDArray[np.int64],
    who: NDArray[np.int64],
    clicked: NDArray[np.bool_],
    bought: NDArray[np.bool_],
    worth: NDArray[np.float64],
    number: int,
) -> list[tuple[int, dict[str, object]]]:
    made: list[tuple[int, dict[str, object]]] = []
    for i in np.flatnonzero(clicked | bought).tolist():
        ms = int(at[i])
        one = {"user_id": f"u{who[i]}", "item_id": f"i{number + i}"}
        if clicked[i]:
            made.append((ms + 4_000, {"type": "click", "ts": ms + 4_000, **one}))
        if bought[i]:
            own = {"type": "conversion", "ts": ms + 40_000, "value": float(worth[i])}
            made.append((ms + 40_000, own | one))
    return made


def looks(world: World, month: int) -> Iterator[tuple[int, list[FiringAlert]]]:
    """(hour, what fires) of each hour of a month."""
    names = SETTINGS.dimension_names
    found: list[tuple[int, list[FiringAlert]]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.ndjson"
        write(world, month, path)
        replay = Replay(SETTINGS)
        measures = replay.catalogue.alert_measures

        def look(ms: int) -> None:
            hour = (ms - BEGIN_MS) // HOUR_MS
            if hour < 24 * WARM:
                return
            replay.apply_all()
            verdicts = watched(SETTINGS, measures, replay.views(), ms)
            found.append((hour, firing_alerts(verdicts, measures.ratios, names, Pipeline())))

        source = FileSource([path], SETTINGS)
        for lines in by_part(source, HOUR_MS, look):
            replay.feed(lines)
    yield from found


def claims_of(world: World, hour: int, one: FiringAlert) -> Iterator[tuple[str, bool]]:
    """What one firing alert says, and whether it is false."""
    first, stop = world.spans()
    is_time = first <= hour <= stop + WINDOW_HOURS
    is_there = world.everywhere or one.segment["platform"] in (WHERE, "all")
    happens = bool(world.hours) and is_time and is_there
    if one.status in (Status.DROPPED, Status.RISEN):
        told = "dropped" if one.status is Status.DROPPED else "risen"
        yield told, not (happens and told in world.true)
    kind = next((k for start, k in SENTENCES.items() if one.likely.startswith(start)), "")
    if kind:
        is_so = kind in world.true or (kind == "cannot tell" and "dropped" in world.true)
        yield kind, not (happens and is_so)
    if one.since_ms is not None and happens and None not in (one.since_low_ms, one.since_high_ms):
        began_ms = BEGIN_MS + first * HOUR_MS
        low, high = one.since_low_ms or 0, one.since_high_ms or 0
        yield "since", not low - HOUR_MS // 1000 <= began_ms <= high + HOUR_MS // 1000


Said = tuple[Counter[str], Counter[str], Counter[str], Counter[str]]
"""Of a month: sentences that were ever said, and ever false; looks at which, and falsely."""


def month_of(world: World, month: int) -> Said:
    """What was said in a month."""
    said, false = Counter[str](), Counter[str]()
    for hour, firing in looks(world, month):
        for one in firing:
            for kind, is_false in claims_of(world, hour, one):
                said[kind] += 1
                false[kind] += is_false
    return Counter(dict.fromkeys(said, 1)), Counter({k: 1 for k in false if false[k]}), said, false


def rows_of(world: World, months: Sequence[Said]) -> Iterator[str]:
    """The lines of a world in the table."""
    n = len(months)
    ever, ever_false, looked, looked_false = (
        sum(each, Counter[str]()) for each in zip(*months, strict=True)
    )
    for kind in ("dropped", "risen", "lost", "lost elsewhere", "real", "cannot tell", "traffic"):
        if ever[kind]:
            yield _row(world.name, kind, ever[kind], ever_false[kind], n)
    if looked["since"]:
        share = f"{1 - looked_false['since'] / looked['since']:.0%}"
        yield f"| {world.name} | since: the range holds the begin | {share} of looks | |"


def _row(name: str, kind: str, said: int, false: int, n: int) -> str:
    def told(count: int) -> str:
        low, high = interval(count, n)
        return f"{count / n:.0%} ({low:.0%} to {high:.0%})"

    return f"| {name} | {kind} | {told(said)} | {told(false) if false else ''} |"


MARK = "\n## Alerts\n"
HEAD = """
{months} months of 28 days for each world: three platforms, 2,000 impressions an hour, an eighth of
them clicked; 20 % of six hours are tolerated, looked at each hour, by `python -m
benchmarks.alert_claims`. In the middle something happens on one platform, or everywhere.

| world | sentence | said | false |
| --- | --- | --- | --- |
"""


def main() -> None:
    """Print the table, and write it; with a month what is said in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--months", type=int, default=MONTHS)
    parser.add_argument("--world", choices=[world.name for world in WORLDS])
    parser.add_argument("--month", type=int)
    args = parser.parse_args()
    worlds = [world for world in WORLDS if args.world in (None, world.name)]
    if args.month is not None:
        for hour, firing in looks(worlds[0], args.month):
            for one in firing:
                print(hour, one.alert, one.where, one.headline, one.likely, sep="; ")
        return
    lines: list[str] = []
    for world in worlds:
        began, of_world = time.perf_counter(), list[Said]()
        with ProcessPoolExecutor(2) as pool:
            run: Callable[[int], Said] = partial(month_of, world)
            of_world += pool.map(run, range(args.months))
        rows = list(rows_of(world, of_world))
        lines += rows or [f"| {world.name} | | | |"]
        print(*rows, f"{time.perf_counter() - began:.0f} s", sep="\n", flush=True)
        for kind in ("real", "lost"):
            false = sum(month[1][kind] for month in of_world)
            hold(f"{kind} in {world.name}", false, args.months, 0.01)
    if args.world is None:
        before, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
        text = before + MARK + HEAD.format(months=args.months) + "\n".join(lines) + "\n"
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
