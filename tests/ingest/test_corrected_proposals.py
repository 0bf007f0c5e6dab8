"""Settings that are proposed refuse hardly a record of their own sample, or there are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from streamer.errors import ProposalError
from streamer.ingest.discovery.proposal import Proposal, propose
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.discovery.trying import MOST_REFUSED, tried

MS = 1_793_527_200_000
Record = dict[str, Any]


def sample(records: list[Any], topic: str = "web") -> SampledTopic:
    return SampledTopic(topic, [FoundRecord(json.dumps(one).encode()) for one in records])


def shop(
    change: Callable[[int, Record], Mapping[str, Any] | None] = lambda n, one: {},
) -> list[Any]:
    """100 impressions, clicks and purchases each. ``change``: what is different in the n-th; what
    is None is not there."""
    records = []
    for n in range(100):
        common = {"ts": MS + n, "uid": f"u{n % 7}", "sku": f"i{n % 30}"}
        for what in ("shown", "clicked", "purchase"):
            one = {**common, "what": what, "id": f"{what}{n}"} | (
                {"price": 10.5} if what == "purchase" else {"pos": 1 + n % 5}
            )
            one |= change(n, one) or {}
            records.append({name: value for name, value in one.items() if value is not None})
    return records


def of(what: str, every: int = 1, **fields: Any) -> Callable[[int, Record], Mapping[str, Any]]:
    return lambda n, one: fields if one["what"] == what and n % every == 0 else {}


def proposed(records: list[Any]) -> Proposal:
    made = propose([sample(records)], "a test")
    refused = tried(made.settings, [sample(records)])
    assert len(refused.refused) <= MOST_REFUSED * (refused.records - refused.ignored)
    return made


def test_nothing_is_corrected_that_is_not_refused() -> None:
    made = proposed(shop())
    assert "not read" not in made.toml
    assert "ignored" not in made.toml


def test_a_few_refused_records_correct_nothing() -> None:
    made = proposed(shop(of("clicked", 50, sku=None)))
    assert "ignored" not in made.toml


@pytest.mark.parametrize(
    ("what", "kind", "field", "name"),
    [
        ("purchase", "conversion", "price", "value"),
        ("shown", "impression", "id", "event_id"),
        ("clicked", "click", "request", "request_id"),
    ],
)
def test_an_optional_field_that_is_refused_is_not_read(
    what: str, kind: str, field: str, name: str
) -> None:
    def change(n: int, one: Record) -> Record:
        wrong = 10.0**30 if field == "price" else f"{n}-" + "x" * 9_000
        is_wrong = one["what"] == what and n % 10 == 0
        return {"request": f"q{n}"} | ({field: wrong} if is_wrong else {})

    made = proposed(shop(change))
    source = made.settings.sources[0]
    assert source.fields_of(f"{kind}s").get(name, False) is False
    why = f"10 of 100 {kind}s would be refused as {name}"
    assert f"# ? {name} is not read: {field}: {why}\n" in made.toml
    assert f"{name}: not read of {kind}s, {field}: {why}" in made.doubts


def test_a_field_of_a_preset_that_is_refused_is_switched_off() -> None:
    records = [
        {
            **{"type": "track", "event": "Product Clicked", "userId": "u", "messageId": f"m{n}"},
            "timestamp": "2026-11-01T10:00:00Z",
            "properties": {"product_id": "a", "position": 10**9 if n % 9 == 0 else 1},
        }
        for n in range(90)
    ]
    made = proposed(records)
    why = "properties.position: 10 of 90 clicks would be refused as position"
    assert f"# ? {why}\nposition = false\n" in made.toml


def test_a_field_of_items_that_is_refused_is_not_read() -> None:
    records = [
        {
            **{"what": "shown", "ts": MS, "uid": "u"},
            "recs": [{"sku": f"i{n}", "pos": 10**9 if n % 5 == 0 else 1}],
        }
        for n in range(100)
    ]
    made = proposed(records)
    assert "position" not in made.settings.sources[0].fields_of("impressions")


def test_records_without_a_known_kind_are_ignored() -> None:
    more = [{"what": f"new-{n}", "ts": MS, "uid": "u"} for n in range(5)]
    without = [{"ts": MS, "uid": "u"} for _ in range(9)]
    made = proposed([*shop(), *more, *without])
    assert '{ lacks = "what" },' in made.toml
    assert "records without it is ignored: no kind is known for it" in "".join(made.doubts)


def test_a_kind_without_what_it_needs_is_ignored_and_said() -> None:
    made = proposed(shop(of("clicked", sku=None)))
    assert made.settings.sources[0].kind.click == ()
    assert "clicked" in made.settings.sources[0].kind.ignored
    assert "kind: 'clicked' (100 clicks) is ignored: no item_id" in made.doubts


def test_a_value_whose_records_are_mostly_refused_is_ignored() -> None:
    extra = [{"what": "tapped", "ts": MS + n, "uid": "u", "pos": 1} for n in range(30)]
    made = proposed([*shop(), *extra])
    assert made.settings.sources[0].kind.click == ("clicked",)
    assert "kind: 'tapped' (30 clicks) is ignored: 30 of 30 are refused as item_id" in made.doubts


def test_records_that_lack_the_item_are_ignored_alone() -> None:
    made = proposed(shop(of("shown", 5, sku=None)))
    kind = made.settings.sources[0].kind
    assert [rule.has for rule in kind.impression if not isinstance(rule, str)] == ["sku"]
    assert "kind: 20 of 100 impressions are ignored: nothing is at sku" in made.doubts
    fixed = [{"ts": MS, "uid": "u", "recs": [{"sku": "a"}] if n % 9 else []} for n in range(99)]
    made = propose([sample(fixed, "shown")], "a test")
    accepted = tried(made.settings, [sample(fixed, "shown")])
    assert (accepted.total, accepted.ignored, accepted.refused) == (99, 0, [])


def test_impressions_are_never_left_out() -> None:
    with pytest.raises(ProposalError, match=r"impressions need item_id, .* in web") as error:
        propose([sample(shop(of("shown", sku=None)))], "a test")
    assert (error.value.exit_code, error.value.topics) == (1, ("web",))


def test_what_is_refused_still_is_named_with_its_field() -> None:
    records = shop(
        lambda n, one: (
            {"ts": "2026-13-01T00:00:00Z" if n % 3 == 0 else "2026-11-01T00:00:00Z"}
            if n % 1 == 0 and one["what"] == "shown"
            else {}
        )
    )
    with pytest.raises(ProposalError, match=r"of 300 records: 34 ts \(impressions, ts\)"):
        propose([sample(records)], "a test")


def test_records_that_are_no_json_are_no_fault_of_settings() -> None:
    broken = [FoundRecord(b"{")] * 30
    one = SampledTopic("web", [*sample(shop()).records, *broken])
    proposal = propose([one], "a test")
    assert tried(proposal.settings, [one]).reasons == {"json": 30}


def test_our_own_events_are_corrected_by_a_source() -> None:
    records = [
        {"type": "impression", "ts": MS, "user_id": "u", "item_id": f"i{n % 5}", "position": 1}
        for n in range(90)
    ]
    assert not proposed(records).settings.sources
    made = proposed(
        [one | ({"position": 10**9} if n % 9 == 0 else {}) for n, one in enumerate(records)]
    )
    assert "position" not in made.settings.sources[0].fields


def test_a_topic_that_cannot_be_read_is_left_out_of_a_cluster() -> None:
    shown, other = sample(shop(), "web"), sample([{"colour": "red"}] * 9, "other")
    made = propose([shown, other], "a test", "kafka:9092")
    assert [source.topics for source in made.settings.sources] == [("web",)]
    assert "topics: left out other" in made.doubts
    with pytest.raises(ProposalError):
        propose([other], "a test", "kafka:9092")


def test_events_in_lists_of_records_are_corrected_one_by_one() -> None:
    flat = shop(of("clicked", 4, pos=10**7))
    records = [{"batch": flat[n : n + 3]} for n in range(0, len(flat), 3)]
    made = proposed(records)
    assert made.settings.sources[0].each == "batch[]"
    assert "position" not in made.settings.sources[0].fields_of("clicks")
