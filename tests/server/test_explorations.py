"""Explorations over the JSON API: what is refused, and how often all users are read."""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from streamer.server import experiments
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.state.user_days import sums_of_days
from tests.support.site import Site
from tests.support.visitors import FIRST, FIRST_MS, experiment, visits

DAY_MS = 86_400_000
SLOT_MS = DAY_MS // 4
VISITS = visits(3, 40, FIRST_MS, 2, 0.2)
LATER = FIRST + datetime.timedelta(days=40)
EXPERIMENTS = [
    experiment(explore=["surface"]),
    experiment(name="later", start=LATER, explore=["surface"]),
    experiment(name="whole"),
    {
        "name": "surge",
        "control": "A",
        "split": {"A": 1, "B": 1},
        "start": FIRST,
        "end": FIRST + datetime.timedelta(days=1),
        "switchback": {"by": "surface", "slot": "6h", "schedule": ["A", "B", "B", "A", "B", "A"]},
    },
]


class Reads:
    """How often all users were read; while ``may_go`` is not set, reading waits."""

    def __init__(self) -> None:
        self.count = 0
        self.may_go, self.has_begun = threading.Event(), threading.Event()
        self.may_go.set()

    async def __call__(self, *arguments: Any) -> Any:
        self.count += 1
        self.has_begun.set()
        await asyncio.to_thread(self.may_go.wait, 30)
        return await sums_of_days(*arguments)


@pytest.fixture(scope="module")
def site(redis_url: str) -> Iterator[Site]:
    document = {
        "redis": {"url": redis_url, "prefix": "explorations"},
        "dimensions": [{"name": "variant"}, {"name": "surface"}, {"name": "device"}],
        "windows": {"lengths": ["24h"]},
        "experiments": EXPERIMENTS,
    }
    with Site(parse(document)) as made:
        made.add(VISITS)
        yield made


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    found = Reads()
    monkeypatch.setattr(experiments, "sums_of_days", found)
    return found


def get(site: Site, path: str) -> tuple[int, Any]:
    """What the API says of an experiment, or of another path below ``/api``."""
    path = path if path.startswith("/") else f"/experiments/{path}"
    try:
        with urllib.request.urlopen(f"{site.url}/api{path}", timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        (
            "ranker?by=device",
            400,
            "by = 'device': experiment 'ranker' has explore = surface; add 'device' to it in "
            "[[experiments]] and restart workers and exporters",
        ),
        ("whole?by=surface", 400, "has explore = nothing; add 'surface' to it"),
        (
            "ranker?by=variant",
            400,
            "it cannot be explored by 'variant': use one of surface",
        ),
        (f"ranker?by={'x' * 3000}", 400, "use one of surface"),
        ("ranker?by=", 400, "by = '': experiment 'ranker' has explore = surface"),
        ("ranker?by=surface&by=surface", 400, "by is given 2 times"),
        ("ranker?by=surface&day=1", 400, "unknown parameter 'day': /api/experiments/ranker takes"),
        ("later?by=surface", 400, f"experiment 'later' starts only on {LATER}"),
        ("none?by=surface", 404, "no experiment 'none'; there are ranker, later, whole"),
    ],
)
def test_what_cannot_be_explored_is_said(
    site: Site, reads: Reads, path: str, status: int, said: str
) -> None:
    found, error = get(site, path)
    assert found == status
    assert said in error
    assert len(error) < 500
    assert reads.count == 0


def test_all_users_are_read_once_a_commit_and_seldom(
    site: Site, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EXPLORATION_SECONDS", 0.0)
    _, first = get(site, "ranker?by=surface")
    assert (reads.count, get(site, "ranker?by=surface")[1]) == (1, first)
    assert reads.count == 1, "nothing was committed"
    site.add(visits(4, 30, FIRST_MS + 2 * DAY_MS, 1, 0.2))
    monkeypatch.setattr(limits, "EXPLORATION_SECONDS", 60.0)
    assert get(site, "ranker?by=surface")[1] == first, "it is too early"
    assert reads.count == 1
    monkeypatch.setattr(limits, "EXPLORATION_SECONDS", 0.0)
    assert get(site, "ranker?by=surface")[1] != first
    assert reads.count == 2


def test_one_at_a_time_is_explored_and_others_are_answered(
    site: Site, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EXPLORATION_SECONDS", 0.0)
    site.add(visits(5, 30, FIRST_MS + 3 * DAY_MS, 1, 0.2))
    reads.may_go.clear()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(get, site, "ranker?by=surface")
        try:
            assert reads.has_begun.wait(30)
            status, error = get(site, "ranker?by=surface")
            assert (status, "being explored already: try again" in error) == (503, True)
            assert get(site, "ranker")[0] == 200
        finally:
            reads.may_go.set()
        assert slow.result()[0] == 200
    assert reads.count == 1
    assert get(site, "ranker?by=surface")[0] == 200
    assert reads.count == 1


def test_the_list_pairs_and_interactions(site: Site) -> None:
    status, made = get(site, "/experiments")
    assert status == 200
    assert [each["name"] for each in made["experiments"]] == ["ranker", "whole", "surge", "later"]
    assert made["needs"]["not-started"] == 1
    some = get(site, "/experiments?only=not-started")[1]["experiments"]
    assert [each["name"] for each in some] == ["later"]
    assert get(site, "/experiments?only=x") == (
        400,
        "only 'x': one of harm, broken, ship, no-effect, running, holdout, not-started",
    )
    assert get(site, "/experiments?first=1")[0] == 400
    status, pairs = get(site, "/pairs")
    assert status == 200
    assert pairs["words"].startswith("1 pair of experiments shares users; ")
    assert get(site, "/pairs?only=x")[0] == 400
    status, found = get(site, "ranker?across=whole")
    assert (status, found["across"], len(found["metrics"])) == (200, "whole", 1)
    assert get(site, "ranker?across=ranker") == (
        400,
        "across names itself: name another experiment",
    )
    assert get(site, "ranker?across=none") == (
        400,
        "no experiment 'none'; there are ranker, later, whole, surge",
    )


def test_a_switchback_says_its_unit_and_has_no_users(site: Site) -> None:
    status, made = get(site, "surge")
    assert (status, made["unit"]) == (200, "a slot of 6h of a value of surface")
    assert sum(made["users"].values()) == len(
        {(event["surface"], event["ts"] // SLOT_MS) for event in VISITS if "surface" in event}
    )
    assert any(note["text"].startswith("The unit is a slot of 6h") for note in made["notes"])
    why = "and the unit of experiment 'surge' is a slot of 6h of a value of surface"
    assert get(site, "ranker?across=surge") == (
        400,
        f"across: it is made of rows of users, {why}",
    )
    assert get(site, "ranker")[1]["unit"] == "user"
