"""A person who is erased: nothing stored is made of the id any more, and all else stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import date
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from streamer._core import hash_of
from streamer.ingest.hash_key import FIXED_KEY
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.state import codec
from streamer.state.manifest import Texts, decode
from streamer.state.memory import MemoryStore

PEOPLE, ITEMS, T0 = [f"person-{n}" for n in range(12)], ["a", "b", "c", "d"], 1_700_000_000_000
ERASED = PEOPLE[3]
WORD = (1 << 64) - 1
MIX, JOIN = 0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93
EXPERIMENT = {
    "control": "A",
    "split": {"A": 1, "B": 1},
    "start": date(2023, 11, 14),
    "dimension": "variant",
}


def settings(**more: Any) -> Settings:
    document = {
        "dimensions": [{"name": "variant"}],
        "windows": {"lengths": ["1h"]},
        "experiments": [
            {
                **EXPERIMENT,
                "name": "users",
                "dimension": "variant",
                "metrics": [{"name": "clicks_per_user"}],
            },
            {
                **EXPERIMENT,
                "name": "accounts",
                "dimension": "variant",
                "unit": "account",
                "metrics": [{"name": "ctr_ratio"}],
            },
        ],
    }
    return parse({**document, **more})


def events(identity: str = "user_id") -> list[bytes]:
    """Open and retained impressions, some with an id by which they are clicked, feedback of all
    ages, sessions, viewings, orders."""
    dice = Random(5)
    found: list[dict[str, Any]] = []
    for n in range(600):
        who, ms = dice.choice(PEOPLE), T0 + 3000 * n
        common = {
            "ts": ms,
            identity: who,
            "account": who,
            "request_id": f"r{n // 2}{who}",
            "variant": "AB"[PEOPLE.index(who) % 2],
        }
        shown = dice.sample(ITEMS, 2)
        named = [{"impression_id": f"i{n}-{at}"} if n % 3 == 0 else {} for at in range(2)]
        for at, item in enumerate(shown):
            of = {**named[at], "item_id": item, "position": at + 1}
            found.append({**common, "type": "impression", **of})
        if dice.random() < 0.7:
            on = {"item_id": shown[0], **named[0]} if n % 2 else named[0] or {"item_id": shown[0]}
            by = (
                dice.choice(PEOPLE) if n % 3 == 0 else who
            )  # an impression may be clicked by anybody
            click = {**common, identity: by, "account": by, "type": "click", **on, "ts": ms + 900}
            found.append({**click, "dwell_ms": 4000} if dice.random() < 0.5 else click)
        if dice.random() < 0.3:
            found.append({**common, "type": "conversion", "item_id": shown[0], "ts": ms + 2000})
        if dice.random() < 0.5:
            session = {"type": "session", "session_id": f"s-{who}", "action": "view"}
            found.append({**common, **session, "item_id": shown[0], "ts": ms + 950})
    found.sort(key=lambda event: event["ts"])
    return [json.dumps(event).encode() for event in found]


def mix(a: int, b: int) -> int:
    h = (a ^ b * MIX) * MIX & WORD
    h = (h ^ h >> 32) * MIX & WORD
    return max(h, 1)


def derived(identity: str) -> set[int]:
    """All hashes that are made of the id, by the rules of joins, written apart from the core."""
    own = hash_of(FIXED_KEY, ERASED)
    apart = own if identity == "user_id" else mix(own, JOIN)
    pairs = {mix(apart, hash_of(FIXED_KEY, item)) for item in ITEMS}
    impressions = {mix(apart, hash_of(FIXED_KEY, f"i{n}-0")) for n in range(0, 600, 3)}
    slates = {mix(apart, hash_of(FIXED_KEY, f"r{n}{ERASED}")) for n in range(300)}
    sessions = {mix(apart, hash_of(FIXED_KEY, f"s-{ERASED}"))}
    viewings = {mix(slate, pair) for slate in slates for pair in pairs}
    return {own, apart, *pairs, *impressions, *slates, *sessions, *viewings}


def stored(store: MemoryStore) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Everything but texts, by what it is of."""
    manifest, blobs = decode(store.states[0].manifest), store.held[0]
    for name in manifest.blob_names() - {manifest.texts}:
        of = next((t for t, refs in manifest.tables.items() if name in [r.name for r in refs]), "")
        for column, values in codec.decode(blobs[name], name).items():
            yield f"{of or 'sums'}.{column}", np.asarray(values)


def found_in(store: MemoryStore, hashes: set[int]) -> set[str]:
    wanted = np.array(sorted(hashes), np.uint64)
    return {
        of
        for of, values in stored(store)
        if values.dtype.itemsize == 8 and np.isin(values.view(np.uint64), wanted).any()
    }


def texts_of(store: MemoryStore) -> bytes:
    name = decode(store.states[0].manifest).texts
    return msgspec.msgpack.encode(Texts.decode(store.held[0][name], name))


def feed(replay: Replay, lines: list[bytes]) -> None:
    parsed = [(json.loads(line), line) for line in lines]
    replay.feed([(f"{event['type']}s", event["ts"], line) for event, line in parsed])
    replay.finish()


def readings_of(replay: Replay) -> dict[str, float]:
    return {
        f"{r.name}{json.dumps(r.labels, sort_keys=True)}": float(r.value)
        for r in replay.readout().readings
    }


@pytest.mark.parametrize("identity", ["user_id", "join_id"])
def test_nothing_that_is_stored_is_made_of_the_id(identity: str) -> None:
    made = settings()
    lines = events(identity)
    half = len(lines) // 2

    async def erase() -> None:
        first = Replay(made)
        feed(first, lines[:half])
        store = await first.store()
        hashes = derived(identity)
        assert {of.split(".")[0] for of in found_in(store, hashes)} >= {
            *("impressions", "retained", "feedback", "sessions", "viewings"),
            *("user_items", "user_exposures", "user_days", "unit_exposures", "unit_days"),
        }
        assert ERASED.encode() in texts_of(store)
        number = await store.erase(hash_of(FIXED_KEY, ERASED), 0)
        second = await Replay.of_store(made, store)
        await second.store()
        assert decode(store.states[0].manifest).erased_ms == number
        assert found_in(store, hashes) == set()
        assert ERASED.encode() not in texts_of(store)
        await store.forget_erasure(hash_of(FIXED_KEY, ERASED))
        assert await store.erasures() == {}

    asyncio.run(erase())


def test_all_else_stays_and_counting_goes_on() -> None:
    """What was counted stays, but for people: there is one less, in windows and in experiments."""
    made, lines = settings(), events()
    half = len(lines) // 2
    later = [line for line in lines[half:] if json.loads(line)["user_id"] != ERASED]

    async def erase() -> None:
        first = Replay(made)
        feed(first, lines[:half])
        store = await first.store()
        for person in (ERASED, "nobody"):
            await store.erase(hash_of(FIXED_KEY, person), 0)
        second = await Replay.of_store(made, store)
        assert people(second) == people(first) - 1 == len(PEOPLE) - 1
        for name in ("users", "accounts"):
            assert units(second, name) == units(first, name) - 1 == len(PEOPLE) - 1
        feed(first, later)
        feed(second, later)
        assert require_same(readings_of(first), readings_of(second)) > 50

    asyncio.run(erase())


@pytest.mark.parametrize("shown_to", [PEOPLE[0], ERASED])
def test_a_click_by_impression_stays_with_the_slate_of_another(shown_to: str) -> None:
    made, clicked_by = settings(), ERASED if shown_to != ERASED else PEOPLE[0]
    of_slate = {"user_id": shown_to, "request_id": "r", "variant": "A", "ts": T0}
    shown = [{**of_slate, "item_id": f"{n}", "impression_id": f"i{n}"} for n in range(4)]
    before = [{**each, "type": "impression", "position": n} for n, each in enumerate(shown, 1)]
    before.append({"user_id": clicked_by, "impression_id": "i1", "type": "click", "ts": T0 + 1000})
    after = {"user_id": PEOPLE[5], "impression_id": "i3", "type": "click", "ts": T0 + 2000}

    async def erase() -> None:
        first = Replay(made)
        feed(first, [json.dumps(event).encode() for event in before])
        store = await first.store()
        await store.erase(hash_of(FIXED_KEY, ERASED), 0)
        second = await Replay.of_store(made, store)
        for replay in (first, second):
            feed(replay, [json.dumps(after).encode()] if shown_to != ERASED else [])
        assert require_same(readings_of(first), readings_of(second)) > 10

    asyncio.run(erase())


def require_same(expected: dict[str, float], found: dict[str, float]) -> int:
    """All is counted alike, but for people; returns how many readings are equal."""
    differ = {name for name in expected if found.get(name) != expected[name]}
    of_people = ("user", "experiment", "positive_rate")
    assert all(any(word in name for word in of_people) for name in differ), differ
    return len(expected) - len(differ)


def people(replay: Replay) -> int:
    return int(readings_of(replay)['streamer_window_users{"variant": "all", "window": "1h"}'])


def units(replay: Replay, experiment: str) -> int:
    found = readings_of(replay)
    names = (json.dumps({"arm": arm, "experiment": experiment}) for arm in "AB")
    return int(sum(found[f"streamer_experiment_users{name}"] for name in names))
