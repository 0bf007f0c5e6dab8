"""The core says of each feedback event of a sample what the oracle finds, however topics come."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import numpy as np

from streamer._core import Core
from streamer.ingest.hash_key import FIXED_KEY
from streamer.ingest.read_sample import MISSES
from streamer.ingest.spec import core_spec
from streamer.metrics.catalogue import Catalogue
from streamer.settings.model import Settings, Time
from tests.support.agreement import SETTINGS, log_records
from tests.support.all_cases import hold_for_all
from tests.support.lanes import sized

from .acceptance import accept
from .joining import Joins, is_feedback, join
from .oracle import Record
from .shape import Event, Row, joined_by

ALWAYS = "36500d"
Found = dict[tuple[str, int], tuple[str, int]]
"""(topic, offset) → what became of the first line, and the time since the impression."""


def traced(records: list[Record], settings: Settings, seed: int) -> Found:
    """What the core says, to which topics come in any order."""
    core = Core(core_spec(settings, Catalogue(settings), FIXED_KEY), is_traced=True)
    topics = {topic: [r for r in records if r.topic == topic] for topic in settings.logs}
    dice = Random(seed)
    while left := [topic for topic, waiting in topics.items() if waiting]:
        topic, n = dice.choice(left), dice.choice((1, 5, 200))
        some, topics[topic] = topics[topic][:n], topics[topic][n:]
        offsets, times = zip(*((r.offset, r.record_ms) for r in some), strict=True)
        core.feed_records(topic, np.array(offsets), np.array(times), [r.raw for r in some])
    return {(topic, offset): (said, ms) for offset, topic, _, said, ms in core.joins()}


def expected(records: list[Record], settings: Settings) -> Found:
    """What the oracle finds, if no event is too late or too early."""
    time = msgspec.structs.replace(settings.time, max_lateness=ALWAYS, max_skew=ALWAYS)
    assert isinstance(time, Time)
    verdict = accept(records, msgspec.structs.replace(settings, time=time))
    joins = join(verdict, settings)
    feedback = (e for e in verdict.events if e.topic == "conversions" or is_feedback(e, settings))
    return {
        (event.topic, event.offset): why(event, joins, settings)
        for event in feedback
        if not event.line and not event.is_refund
    }


def why(event: Event, joins: Joins, settings: Settings) -> tuple[str, int]:
    is_conversion, rules = event.topic == "conversions", settings.attribution
    horizon_ms = rules.conversion_ms if is_conversion else rules.click_ms

    def lag(row: Row) -> int:
        return event.event_ms - row.event.event_ms

    def is_clicked(row: Row) -> bool:
        return any(f.event_ms <= event.event_ms for f in row.feedback)

    def may_join(row: Row) -> bool:
        return 0 <= lag(row) <= horizon_ms and (is_clicked(row) or not is_conversion)

    joined = joins.joined[event.address]
    if joined is not None:
        return "joined", lag(joined)
    rows = [row for row in joins.rows if not row.repeat]
    is_named, key = event.impression_id is not None, joined_by(event.item_id, event.impression_id)
    own = [
        row
        for row in rows
        if row.shown.key == key and (is_named or row.event.joins_as == event.joins_as)
    ]
    if not own:
        return missed(event, rows), 0
    others = [row for row in own if row.event.request_id != event.request_id]
    if event.joined_request is not None:
        if others == own and any(map(may_join, own)):
            return "request", min(lag(row) for row in own if may_join(row))
        own = [row for row in own if row not in others] or own
    seen = [row for row in own if lag(row) >= 0]
    if not seen:
        return "before", min(map(lag, own))
    at_any_time = [row for row in seen if not is_conversion or is_clicked(row)]
    return ("late" if at_any_time else "unclicked"), min(map(lag, at_any_time or seen))


def missed(event: Event, rows: list[Row]) -> str:
    """Why no row is what it could join."""
    if event.impression_id is not None:
        return "impression"
    if event.item_id not in {row.shown.item_id for row in rows}:
        return "item"
    return "pair" if event.who in {row.event.who for row in rows} else "person"


def test_the_core_joins_and_explains_as_the_oracle_does() -> None:
    def law(case: tuple[str, int]) -> None:
        name, seed = case
        settings, records = SETTINGS[name], log_records(seed, name, sized(600, 1500), 1)
        wanted, found = expected(records, settings), traced(records, settings, seed)
        assert found.keys() == wanted.keys()
        assert {at: (found[at], wanted[at]) for at in wanted if found[at] != wanted[at]} == {}

    cases = [(name, seed) for name in SETTINGS for seed in range(sized(2, 20))]
    hold_for_all(cases, law, at_least=8)


def test_every_answer_is_met() -> None:
    said = Counter[str]()
    for seed in range(4):
        logged = log_records(seed, "no dimensions, short times", 1500, 1)
        few = 1 + 30 * seed  # of so many impressions one is left: much is never shown
        records = [r for r in logged if r.topic != "impressions" or r.offset % few == 0]
        of_seed = traced(records, SETTINGS["no dimensions, short times"], seed)
        said.update(what for what, _ in of_seed.values())
    assert said.keys() == {"joined", *MISSES}, said
