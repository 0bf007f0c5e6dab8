"""`streamer plan`: from all users of files, from the control of an experiment, and from all users
before its start."""

from __future__ import annotations

import asyncio
import datetime
import json
import random
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from streamer import formatting
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.redis.store import RedisStore
from tests.oracle.files import records_of_log
from tests.support.agreement import to_log
from tests.support.commands import called
from tests.support.engines import chunks_of
from tests.support.journals import finish, start
from tests.support.visitors import DAY_MS, FIRST, FIRST_MS, Event, experiment, visits, written
from tests.support.workers import as_toml

EXPERIMENT = experiment()
BEFORE = experiment(covariate_days=3, metrics=[{"name": "clicks_per_user"}, {"name": "ctr_ratio"}])
DAYS_BEFORE = range(FIRST_MS // DAY_MS - 3, FIRST_MS // DAY_MS)
NOON_MS = DAYS_BEFORE[1] * DAY_MS + DAY_MS // 2


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Paths of a log and of settings."""
    folder = tmp_path_factory.mktemp("plan")
    return written(folder, 250, EXPERIMENT)


def said(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[int, str, str]:
    return called(capsys, ["plan", *words])


def test_all_users_of_files(site: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever variant they see: each counts once."""
    log, _ = site
    events = [json.loads(line) for line in Path(log).read_text().splitlines()]
    shown = {e["user_id"] for e in events if e["type"] == "impression"}
    code, out, err = said(capsys, ["clicks_per_user", "--lift", "5%", "--file", log])
    assert (code, err) == (0, "")
    assert "clicks_per_user of all users of the files, 2025-06-01 to 2025-06-05: " in out
    assert f"{len(shown)} users" in out
    assert "A lift of 5% is found with a probability of 80% (alpha 0.05, 2 arms of" in out
    assert "For looks at any time set expected_users = " in out
    _, out, _ = said(capsys, ["clicks_per_user", "--lift", "0.05", "--file", log, "--json"])
    plan = json.loads(out)
    exposed: set[str] = set()
    clicks = 0
    for event in sorted(events, key=lambda e: e["ts"]):
        if event["type"] == "impression":
            exposed.add(event["user_id"])
        elif event["type"] == "click" and event.get("feedback", "click") == "click":
            clicks += event["user_id"] in exposed
    assert plan["users"] == len(shown)
    assert plan["value"] == pytest.approx(clicks / len(shown), rel=1e-12)
    assert plan["needed"]["anytime"]["users"] > plan["needed"]["fixed"]["users"] > 0


def test_sources_have_all_users_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, config = tmp_path / "shop.ndjson", tmp_path / "streamer.toml"
    day = 86_400_000
    rows = [
        {"e": "view", "u": f"u{d}-{i}", "t": FIRST_MS + d * day + i, "sku": "s"}
        for d in range(4)
        for i in range(300)
    ]
    rows += [r | {"e": "buy", "t": r["t"] + 60_000} for r in rows[::3]]  # type: ignore[operator]
    rows.sort(key=lambda r: r["t"])  # type: ignore[arg-type, return-value]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {
        "topics": ["shop"],
        "kind": {"field": "e", "impression": ["view"], "click": ["buy"]},
        "fields": {"ts": "t", "user_id": "u", "item_id": "sku"},
    }
    config.write_text(as_toml({"sources": [source]}))
    words = ["clicks_per_user", "--lift", "20%", "-c", str(config), "--file", str(log)]
    code, out, err = said(capsys, words)
    assert (code, err) == (0, "")
    assert "2025-06-02 to 2025-06-05: 0.33333, 1,200 users" in out
    code, out, _ = said(capsys, [*words, "--json"])
    plan = json.loads(out)
    assert plan["needed"]["fixed"]["users"] > 1200
    assert plan["needed"]["fixed"]["days"] > 3


def shoppers(new_a_day: int, at_first: int) -> list[Event]:
    """Of a week, and of every day new users who are seen once, one in ten of whom buys; or of the
    first days users who come and buy on one day in twenty, whoever they are."""
    dice, events, week = random.Random(4), [], range(7)
    first = [0] * at_first + [day for day in week for _ in range(new_a_day)]
    for user, begins in enumerate(first):
        who = {"user_id": f"u{user}", "item_id": "i"}
        for day in range(begins, 7 if at_first else begins + 1):
            ts = FIRST_MS + day * DAY_MS + dice.randrange(DAY_MS // 2)
            if day == begins:
                events.append({"type": "impression", "ts": ts, **who})
            if dice.random() < (0.05 if at_first else 0.1):
                events.append({"type": "conversion", "ts": ts + 1000, **who})
    last = {"type": "click", "ts": FIRST_MS + 7 * DAY_MS - 1, "user_id": "last", "item_id": "i"}
    return sorted([*events, last], key=lambda event: event["ts"])


def planned_of(
    events: Sequence[Event], folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], str]:
    """The plan for a lift of 20 % of the conversions per user, and its text."""
    log = folder / "events.ndjson"
    log.write_text(lines(events))
    words = ["--file", str(log)]
    plan = planned(capsys, "conversions_per_user", *words, lift="20%")
    _, out, _ = said(capsys, ["conversions_per_user", "--lift", "20%", *words])
    return plan, out


def test_days_of_new_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """300 a day: 4 · 0.9 / 0.1 · (2.80 / 0.2)² = 7,064 of them at one look, 24 days."""
    plan, out = planned_of(shoppers(300, 0), tmp_path, capsys)
    fixed, anytime = plan["needed"]["fixed"], plan["needed"]["anytime"]
    assert fixed["days"] == pytest.approx(24, rel=0.15)
    assert anytime["days"] == pytest.approx(24 * (3.88 / 2.80) ** 2, rel=0.15)
    for look in (fixed, anytime):
        its = look["forecast"]
        assert its["users"] == 300 * look["days"]
        assert its["new_users"] == its["users"] - 2100
        assert its["information_by_user"] == pytest.approx(1, abs=0.1)
        today = 2100 / its["users"] / its["information_by_user"]
        information = its["new_information_ratio"] + its["returning_information_ratio"]
        assert information + today == pytest.approx(1, abs=0.05)
    assert plan["expected_users"] == anytime["forecast"]["users"]
    who = f"{anytime['forecast']['users']:,} users: 2,100 of today's and "
    assert f"\nOn day {anytime['days']} there are {who}" in out


def test_days_of_the_same_users_who_return(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """3,000 users, and nobody new: 4 · 0.95 / 0.05 · (2.80 / 0.2)² / 3,000 is 5 days, and at any
    time 10, though no 3,000 of today's find it."""
    plan, out = planned_of(shoppers(0, 3000), tmp_path, capsys)
    anytime = plan["needed"]["anytime"]
    assert plan["needed"]["fixed"]["days"] in (4, 5, 6)
    assert anytime["days"] == pytest.approx(9.5, rel=0.2)
    assert anytime["users"] > 3300
    its = anytime["forecast"]
    assert (its["users"], its["new_users"], its["new_information_ratio"]) == (3000, 0, 0.0)
    assert its["information_by_user"] == pytest.approx(anytime["days"] / 7, rel=0.1)
    assert plan["expected_users"] == 3000
    information, share = its["information_by_user"], its["returning_information_ratio"]
    assert f"\nOn day {anytime['days']} there are 3,000 users, none of them new. " in out
    assert (
        f"Each brings {information:.1f} times as much as now by returning: {share:.0%} of it.\n"
        in out
    )


def test_a_log_of_less_than_two_days_has_no_days(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [e for e in shoppers(300, 0) if e["ts"] < FIRST_MS + 1.5 * DAY_MS]
    plan, out = planned_of(events, tmp_path, capsys)
    assert not plan["days_known"]
    assert plan["expected_users"] == plan["needed"]["anytime"]["users"]
    for look in plan["needed"].values():
        assert look["users"] > 2000
        assert (look["days"], look["forecast"]) == (None, None)
    assert "\nA forecast of days needs events of two days, " in out
    assert "On day" not in out


def test_the_control_of_an_experiment(
    site: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    words = ["ctr_ratio", "--lift", "5%", "--experiment", "ranker", "-c", config, "--file", log]
    code, out, _ = said(capsys, [*words, "--arms", "3", "--power", "90%", "--alpha", "0.01"])
    assert code == 0
    assert "ctr_ratio of the users of A, the control of ranker, 2025-06-02 to 2025-06-05" in out
    assert "with a probability of 90% (alpha 0.01, 3 arms of equal size)" in out


def test_what_cannot_be_planned(
    site: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = site
    of = ["-c", config, "--file", log]
    (tmp_path / "odd").write_text("{}\n")
    for words, code, why in (
        (["ctr_ratio", "--lift", "5%"], 2, "plan needs users to learn from"),
        (["ctr_ratio", "--lift", "5%", "--experiment", "no", *of], 2, "no experiment 'no'"),
        (["mrr", "--lift", "5%", "--experiment", "ranker", *of], 2, "it has ctr_ratio"),
        (
            ["nothing", "--lift", "5%", *of],
            2,
            "metric 'nothing': no such metric: there are ctr_ratio",
        ),
        (["ctr_ratio", "--lift", "120%", *of], 2, "'120%' is not a share like 0.02 or 2%"),
        (["ctr_ratio", "--lift", "much", *of], 2, "--lift"),
        (["ctr_ratio", "--lift", "5%", "--arms", "1", *of], 2, "--arms 1: 2 to 16"),
        (
            ["ctr_ratio", "--lift", "5%", "--power", "0.3", *of],
            2,
            "--power 0.3: from 0.5 to below 1",
        ),
        (["classifier_recall_ratio@0.5", "--lift", "5%", *of], 1, "no plan by class"),
        (["ctr_ratio", "--lift", "5%", "--file", str(tmp_path / "odd")], 1, "nothing is known"),
    ):
        found, _, err = said(capsys, words)
        assert (found, why in err) == (code, True), (words, err)


# Before the start ------------------------------------------------------------------------------


def before_the_start(days: int = 4) -> list[Event]:
    """Visits of whatever variant, on the days before the start of the experiment."""
    events = visits(3, 250, FIRST_MS, 0, 0.2, days)
    for i, event in enumerate(e for e in events if e["type"] == "impression"):
        event["variant"] = ("A", "B", "before", "")[i % 4]
    return events


def with_early_clicks(events: Sequence[Event]) -> list[Event]:
    """And users who click before their first impression, on its day and on the day before, or have
    none."""
    clicks = [
        {"type": "click", "ts": NOON_MS + shift_ms, "user_id": f"early-{i}", "item_id": "i1"}
        for i in range(40)
        for shift_ms in (0, DAY_MS, DAY_MS + 1)
    ]
    shown = [
        {"type": "impression", "ts": NOON_MS + DAY_MS + 5, "user_id": f"early-{i}", "item_id": "i1"}
        for i in range(30)
    ]
    return sorted([*events, *clicks, *shown], key=lambda event: event["ts"])


def lines(events: Sequence[Event]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def planned(
    capsys: pytest.CaptureFixture[str], metric: str, *words: str, lift: str = "5%"
) -> dict[str, Any]:
    code, out, err = said(capsys, [metric, "--lift", lift, "--json", *words])
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document


def recomputed(events: Sequence[Event], metric: str, lift: float) -> dict[str, Any]:
    """What a plan has to say, by the events of each user from the first day with an impression."""
    began: dict[str, int] = {}
    sums: dict[int, dict[str, tuple[int, int]]] = {day: {} for day in DAYS_BEFORE}
    for event in events:
        day, user = event["ts"] // DAY_MS, event["user_id"]
        if event["type"] == "impression" and day in DAYS_BEFORE:
            began[user] = min(began.get(user, day), day)
    for event in events:
        day, user = event["ts"] // DAY_MS, event["user_id"]
        if day in DAYS_BEFORE and user in began and day >= began[user]:
            x = event["type"] == "click"
            y = len(event.get("items", "i")) * (event["type"] == "impression")
            for until in range(day, DAYS_BEFORE.stop):
                had = sums[until].get(user, (0, 0))
                sums[until][user] = had[0] + x, had[1] + y
    first, days = min(began.values()), events[-1]["ts"] / DAY_MS - min(began.values())
    half = int(days) // 2
    then, now = (
        _variance([(x, y if metric == "ctr_ratio" else 1) for x, y in its.values()])
        for its in (sums[first + half - 1], sums[DAYS_BEFORE[-1]])
    )
    both = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    fixed = 4 * now[2] * (both / lift) ** 2
    information = then[2] / now[2]
    users, tells = through(half, then[0], days, now[0]), through(half, 1 / information, days, 1.0)
    found = [day for day in range(1, 3651) if users(day) * tells(day) >= fixed]
    return {
        "users": now[0],
        "value": pytest.approx(now[1], rel=1e-12),
        "fixed": ceil(fixed),
        "days": found[0] if found else None,
        "by_then": round(users(found[0])) if found else None,
    }


def _variance(points: Sequence[tuple[int, int]]) -> tuple[int, float, float]:
    """Users, their ratio, and its variance by the delta method, times users, relative to it."""
    n, value = len(points), sum(x for x, _ in points) / sum(y for _, y in points)
    mean_y = sum(y for _, y in points) / n
    part = sum((x - value * y) ** 2 for x, y in points) / (n - 1) / mean_y**2
    return n, value, part / value**2


def through(t: float, v: float, later: float, last: float) -> Callable[[float], float]:
    """The curve t / (b + a t) through two points, a and b at least 0."""
    a = min(max(0.0, (later / last - t / v) / (later - t)), 1 / last)
    return lambda day: day / (later / last - a * later + a * day)


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Paths of a log that ends before an experiment starts, and of settings that declare it."""
    folder = tmp_path_factory.mktemp("declared")
    (folder / "events.ndjson").write_text(lines(with_early_clicks(before_the_start())))
    (folder / "streamer.toml").write_text(as_toml({"experiments": [BEFORE]}))
    return str(folder / "events.ndjson"), str(folder / "streamer.toml")


@pytest.mark.parametrize("metric", ["clicks_per_user", "ctr_ratio"])
def test_all_users_of_the_days_before_the_start(
    declared: tuple[str, str], metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = declared
    words = ["--experiment", "ranker", "-c", config, "--file", log]
    plan = planned(capsys, metric, *words)
    events = [json.loads(line) for line in Path(log).read_text().splitlines()]
    expected = recomputed(events, metric, 0.05)
    fixed = plan["needed"]["fixed"]
    found = {"users": plan["users"], "value": plan["value"], "fixed": fixed["users"]}
    by_then = fixed["forecast"] and fixed["forecast"]["users"]
    assert found | {"days": fixed["days"], "by_then": by_then} == expected
    assert expected["days"] is not None or expected["fixed"] > 1000
    code, out, _ = said(capsys, [metric, "--lift", "5%", *words])
    assert code == 0
    whose = "all users of the 3 days before ranker starts, 2025-05-30 to 2025-06-01: "
    assert out.startswith(f"{metric} of {whose}")


async def worked(settings: Settings, log: Sequence[bytes], stop: int) -> None:
    """Workers of three partitions under these settings read a log up to a line, and stop."""
    redis = RedisStore(settings.redis)
    run = await start(redis, settings, 3)
    for chunk in chunks_of(to_log(records_of_log(log[:stop], settings, partitions=3)), 5000):
        run.engines.feed(chunk)
    await finish(redis, run)
    await redis.close()


def test_before_the_start_the_store_says_what_files_say(
    declared: tuple[str, str],
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log, _ = declared
    document = {"experiments": [BEFORE], "redis": {"url": redis_url, "prefix": redis_prefix}}
    config, events = tmp_path / "streamer.toml", Path(log).read_bytes().splitlines()
    config.write_text(as_toml(document))
    words = ["--experiment", "ranker", "-c", str(config)]
    found, _, err = said(capsys, ["ctr_ratio", "--lift", "5%", *words])
    assert (found, "begin on 2025-05-30; there are no events yet" in err) == (2, True), err
    asyncio.run(worked(parse(document), events, len(events)))
    plan = planned(capsys, "ctr_ratio", *words)
    assert plan == planned(capsys, "ctr_ratio", *words, "--file", log)
    assert plan["users"] > 200


def test_a_late_beginning_of_the_count_is_said(
    declared: tuple[str, str],
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bare = {"redis": {"url": redis_url, "prefix": redis_prefix}}
    config, events = tmp_path / "streamer.toml", Path(declared[0]).read_bytes().splitlines()
    config.write_text(as_toml({**bare, "experiments": [BEFORE]}))
    words = ["clicks_per_user", "--lift", "5%", "--experiment", "ranker", "-c", str(config)]
    half = next(i for i, line in enumerate(events) if json.loads(line)["ts"] >= NOON_MS)
    asyncio.run(worked(parse(bare), events, half))
    code, _, err = said(capsys, words)
    assert (code, "start the workers with these settings" in err) == (1, True), err
    asyncio.run(worked(parse({**bare, "experiments": [BEFORE]}), events, len(events)))
    _, out, _ = said(capsys, words)
    assert "2025-05-31 to 2025-06-01: " in out
    assert "\nCounting began at 2025-05-31 1" in out


@pytest.mark.parametrize("metric", ["clicks_per_user", "ctr_ratio"])
def test_before_the_start_it_is_the_plan_of_the_events_of_these_days(
    metric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody has an outcome before the first impression on the same day: rows are by day."""
    events, config = before_the_start(), tmp_path / "streamer.toml"
    whole, some = tmp_path / "whole.ndjson", tmp_path / "some.ndjson"
    whole.write_text(lines(events))
    some.write_text(lines([e for e in events if e["ts"] // DAY_MS in DAYS_BEFORE]))
    config.write_text(as_toml({"experiments": [BEFORE]}))
    words = ["-c", str(config), "--file"]
    plan = planned(capsys, metric, "--experiment", "ranker", *words, str(whole), lift="40%")
    of_files = planned(capsys, metric, *words, str(some), lift="40%")
    assert plan | {"of": ""} == of_files | {"of": ""}
    assert plan["needed"]["fixed"]["days"] is not None
    assert plan != planned(capsys, metric, *words, str(whole), lift="40%")


def test_once_it_has_started_the_control_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, config = tmp_path / "events.ndjson", tmp_path / "streamer.toml"
    log.write_text(lines(visits(3, 250, FIRST_MS, 1, 0.2, 3)))
    config.write_text(as_toml({"experiments": [BEFORE]}))
    words = ["--experiment", "ranker", "-c", str(config), "--file", str(log)]
    plan = planned(capsys, "ctr_ratio", *words)
    assert plan["of"] == "the users of A, the control of ranker"
    assert plan["first"] == "2025-06-02"
    assert 50 < plan["users"] < 100


def test_a_sample_of_the_users_is_said(
    declared: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, _ = declared
    config = tmp_path / "streamer.toml"
    config.write_text(as_toml({"experiments": [BEFORE], "limits": {"user_days": 200}}))
    words = ["--experiment", "ranker", "-c", str(config), "--file", log]
    plan = planned(capsys, "ctr_ratio", *words)
    assert plan["user_sample_ratio"] < 1
    assert plan["users"] < 280 * 1.5 * plan["user_sample_ratio"]
    _, out, _ = said(capsys, ["ctr_ratio", "--lift", "5%", *words])
    share = f"{formatting.share(plan['user_sample_ratio'])} of the users"
    assert f"\nAll figures come from a sample of {share}, and so are the needed ones.\n" in out


def test_what_is_not_known_before_the_start(
    declared: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, _ = declared
    later = FIRST + datetime.timedelta(days=40)
    experiments = [
        experiment(name="none", start=later),
        experiment(name="later", start=later, covariate_days=3),
        experiment(name="empty", start=FIRST + datetime.timedelta(days=1), covariate_days=2),
    ]
    config = tmp_path / "streamer.toml"
    config.write_text(as_toml({"experiments": experiments}))
    for name, words in (
        ("none", ("starts only on 2025-07-12 and has covariate_days = 0", "set covariate_days")),
        ("later", ("begin on 2025-07-09; there are events up to 2025-06-01: wait", "by --file")),
    ):
        of = ["--experiment", name, "-c", str(config), "--file", log]
        code, _, err = said(capsys, ["ctr_ratio", "--lift", "5%", *of])
        assert code == 2
        assert all(word in err for word in words), err
        assert err.count("\n") == 1
    (tmp_path / "clicks.ndjson").write_text(
        lines([e for e in with_early_clicks([]) if e["type"] == "click"])
    )
    of = ["--experiment", "empty", "-c", str(config), "--file", str(tmp_path / "clicks.ndjson")]
    code, _, err = said(capsys, ["ctr_ratio", "--lift", "5%", *of])
    assert (code, "of all users of the 2 days before empty starts: no impression" in err) == (
        1,
        True,
    ), err
