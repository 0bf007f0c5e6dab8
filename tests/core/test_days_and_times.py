"""Times whose day and time of day stand apart, against a slow reading in Python."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamer.ingest.record import record_decoder, rekeyer
from streamer.ingest.rejections import Explainer
from streamer.settings.load import parse
from streamer.settings.model import Settings
from tests.support.lanes import sized

ODD: tuple[Any, ...] = (
    None,
    "",
    "-",
    "25:00:00",
    "07/03/2024",
    "12:00",
    7,
    1_709_776_245_000,
    True,
    [],
    {"a": 1},
)
FORMATS = (None, "%d/%m/%Y %H:%M:%S", "%Y%m%d %H%M%S", "%m/%d/%y %I:%M %p", "%d.%m.%Y %H:%M")


def settings_of(form: str | None, missing: list[str], each: bool = False) -> Settings:
    """Of clicks whose time is at ``day`` and ``at["time of"]``; with ``each`` of lists of them."""
    way = "all[]." if each else ""
    ts = {"path": f"{way}day", "time": f'{way}at["time of"]'} | ({"format": form} if form else {})
    one = {"topics": ["web"], "kind": {"fixed": "click"}, "zone": "Europe/Madrid"}
    of = {"each": "all[]"} if each else {}
    fields = {"ts": [ts, f"{way}ts"], "item_id": f"{way}item"}
    return parse({"sources": [{**one, **of, "missing": missing, "fields": fields}]})


def slowly(event: dict[str, Any], form: str | None, missing: list[str]) -> int | None:
    """The time of an event (ms); None where it has none."""
    parts = [event.get("day"), event.get("at", {}).get("time of")]
    is_there = [part not in (None, "", *missing) for part in parts]
    if not is_there[0]:
        return int(event["ts"]) if "ts" in event else None
    texts = [p if isinstance(p, str) else json.dumps(p, separators=(",", ":")) for p in parts]
    text = " ".join(one for one, there in zip(texts, is_there, strict=True) if there)
    try:
        at = datetime.strptime(text, form or "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    at = at.replace(tzinfo=ZoneInfo("Europe/Madrid"))
    return round(at.astimezone(UTC).timestamp() * 1000)


def random_event(dice: Random, form: str | None) -> dict[str, Any]:
    at = datetime.fromtimestamp(dice.randrange(1_600_000_000, 1_800_000_000), UTC)
    day, clock = at.strftime(form or "%Y-%m-%d %H:%M:%S").split(" ", 1)
    event: dict[str, Any] = {"item": "a", "day": day, "at": {"time of": clock}}
    if dice.random() < 0.3:
        event["day"] = dice.choice(ODD)
    if dice.random() < 0.3:
        event["at"] = {"time of": dice.choice(ODD)} if dice.random() < 0.7 else {}
    if dice.random() < 0.2:
        event["ts"] = 1_700_000_000_000
    return event


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("each", [False, True])
def test_both_texts_are_one_time(form: str | None, each: bool) -> None:
    dice, missing = Random(f"{form} {each}"), ["-"]
    settings = settings_of(form, missing, each)
    decoder, read = record_decoder(settings), 0
    for _ in range(sized(40, 1000)):
        events = [random_event(dice, form) for _ in range(3 if each else 1)]
        record = json.dumps({"all": events} if each else events[0]).encode()
        found = decoder.decode_all("web", record)
        wanted = [slowly(event, form, missing) for event in events]
        times = [None if isinstance(one, str) else one["event_ms"] for one in found]
        assert times == wanted, record
        assert {one for one in found if isinstance(one, str)} <= {"ts"}
        read += sum(at is not None for at in wanted)
    assert read > sized(10, 300)


def test_a_span_may_have_days_and_times_apart() -> None:
    ends = {f"{end}_ts": {"path": "day", "time": end} for end in ("start", "end")}
    fields = {"ts": "ts", "item_id": "item", **ends}
    one = {"topics": ["web"], "kind": {"fixed": "click"}, "fields": fields}
    decoder = record_decoder(parse({"sources": [one]}))
    event = {"ts": 1_700_000_000_000, "item": "a", "day": "2024-03-07"}
    more = {"start": "10:00:00", "end": "10:00:41.5"}
    (found,) = decoder.decode_all("web", json.dumps({**event, **more}).encode())
    assert not isinstance(found, str)
    plain = parse({"sources": [{**one, "fields": {**fields, **{k: k for k in ends}}}]})
    spans = {f"{end}_ts": f"2024-03-07 {clock}" for end, clock in more.items()}
    assert [found] == record_decoder(plain).decode_all("web", json.dumps(event | spans).encode())
    (refused,) = decoder.decode_all("web", json.dumps({**event, **more, "end": "9:00"}).encode())
    assert refused == "dwell"


def test_what_is_rekeyed_has_the_time() -> None:
    settings = settings_of("%d/%m/%Y %H:%M:%S", [])
    record = json.dumps({"item": "a", "day": "07/03/2024", "at": {"time of": "02:50:45"}}).encode()
    columns = (np.array([0]), np.array([1_700_000_000_000]))
    made, *_ = rekeyer(settings, 1).records("web", ("web", 0), *columns, [record], [], 0, 2**62)
    (event,) = [json.loads(value) for *_, some in made for _, _, value in some]
    assert event["ts"] == 1_709_776_245_000


@pytest.mark.parametrize(
    ("clock", "form", "wanted"),
    [
        ("25:00:00", "%d/%m/%Y %H:%M:%S", 'found "07/03/2024 25:00:00"; expected a time like %d/'),
        (None, "%d/%m/%Y %H:%M:%S", 'found "07/03/2024"; expected a time like %d/%m/%Y %H:%M:%S'),
        ("02:50:45", None, 'found "07/03/2024 02:50:45"; expected a time like 2026-11-24 07:00:'),
    ],
)
def test_a_refusal_says_both_texts(clock: str | None, form: str | None, wanted: str) -> None:
    record = json.dumps({"item": "a", "day": "07/03/2024", "at": {"time of": clock}}).encode()
    refusal = Explainer(settings_of(form, [])).explain("web", record, "ts")
    assert refusal.field == "day"
    text = f"found {refusal.found}; expected {refusal.expected}"
    assert text.startswith(wanted)
    assert text.endswith(' in day and at["time of"]')
