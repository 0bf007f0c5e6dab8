"""By what topics are keyed, as a sample shows it."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.errors import BrokerError, SettingsError, StreamerError
from streamer.ingest.keying import (
    PARTITIONERS,
    Keying,
    keying_of,
    require_keyed,
    require_users,
    topics_not_by_user,
)
from streamer.metrics.catalogue import Catalogue
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.settings.model import Settings

USERS = [f"user-{n}".encode() for n in range(100)]
PARTITIONS = 4


def by_user(partitioner: str = "murmur2") -> list[tuple[bytes, int]]:
    return [(user, PARTITIONERS[partitioner](user, PARTITIONS)) for user in USERS]


def by_item() -> list[tuple[bytes, int]]:
    """Each user saw several items."""
    return [(user, n % PARTITIONS) for user in USERS for n in (len(user), hash(user) % 7, 3)]


def test_partitioners_are_those_of_java_and_of_librdkafka() -> None:
    """By values that Kafka's own tests, and definitions of CRC-32, have."""
    assert PARTITIONERS["murmur2"](b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
    assert PARTITIONERS["crc32"](b"123456789", 1000) == 0xCBF43926 % 1000


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_topics_by_user(partitioner: str) -> None:
    places = {"impressions": by_user(partitioner), "clicks": by_user(partitioner)[:30]}
    found = keying_of(places, PARTITIONS)
    assert found["impressions"] == Keying(True, 100, 0)
    assert found["clicks"] == Keying(True, 30, 0)


def test_a_topic_by_item_is_found_and_the_others_are_not_blamed() -> None:
    found = keying_of({"impressions": by_user(), "clicks": by_item()}, PARTITIONS)
    assert [found[kind].is_by_user for kind in ("impressions", "clicks")] == [True, False]


def test_impressions_by_item_are_found_and_the_clicks_are_not_blamed() -> None:
    found = keying_of({"clicks": by_user(), "impressions": by_item()}, PARTITIONS)
    assert [found[kind].is_by_user for kind in ("impressions", "clicks")] == [False, True]


def test_another_partitioner_than_that_of_the_impressions_is_found() -> None:
    found = keying_of({"impressions": by_user(), "clicks": by_user("crc32")}, PARTITIONS)
    assert [found[kind].is_by_user for kind in ("impressions", "clicks")] == [True, False]


def test_one_record_sent_by_hand_is_no_proof() -> None:
    stray = (USERS[0], (by_user()[0][1] + 1) % PARTITIONS)
    assert keying_of({"clicks": [*by_user(), stray]}, PARTITIONS)["clicks"].is_by_user


def test_nothing_is_said_of_few_users_or_a_partitioner_of_ones_own() -> None:
    own = [(user, len(user) % PARTITIONS) for user in USERS]
    assert keying_of({"clicks": by_user()[:5]}, PARTITIONS)["clicks"].is_by_user is None
    assert keying_of({"clicks": own}, PARTITIONS)["clicks"].is_by_user is None
    assert keying_of({"clicks": own}, 1)["clicks"].is_by_user


def test_the_settings_may_assert_it() -> None:
    keyed = {"impressions": True, "clicks": False}
    assert topics_not_by_user(Settings(), keyed) == ["clicks"]
    with pytest.raises(StreamerError, match=r"topic 'clicks'; key producers by user_id"):
        require_users(Settings(), keyed)
    asserted = parse({"kafka": {"keyed_by": "user"}})
    assert topics_not_by_user(asserted, keyed) == []
    require_users(asserted, keyed)
    with pytest.raises(SettingsError, match=r"kafka\.keyed_by = 'item': must be 'user' or unset"):
        parse({"kafka": {"keyed_by": "item"}})


FOUND = {"impressions": Keying(True, 100, 0), "clicks": Keying(False, 90, 80)}
EXPERIMENT = {
    "name": "ranker",
    "dimension": "variant",
    "control": "a",
    "split": {"a": 0.5, "b": 0.5},
    "start": "2024-01-01",
}
NO_FAMILY = {"metrics": {"families": ["traffic", "ranking", "intervals", "diversity"]}}
HIDDEN = ["*user*", "*positive*"]


@pytest.mark.parametrize(
    ("document", "asking"),
    [
        ({}, "metrics.families: 'engagement'"),
        ({**NO_FAMILY, "experiments": [EXPERIMENT]}, "experiments"),
        ({"experiments": [EXPERIMENT]}, "metrics.families: 'engagement' and experiments"),
        ({"metrics": {"hide": HIDDEN[:-2]}}, "metrics.families: 'engagement'"),
    ],
)
def test_users_are_not_counted_where_topics_are_not_keyed_by_them(
    document: dict[str, Any], asking: str
) -> None:
    with pytest.raises(BrokerError) as refused:
        require_keyed(parse(document), FOUND)
    said = str(refused.value)
    assert said.startswith("not keyed by user: topic 'clicks' (of 90 users in its last records 80 ")
    assert f"; {asking} would count one user as several; let `streamer rekey` write" in said
    assert 'or set kafka.keyed_by = "user" if' in said
    assert f"or remove {asking}, or hide" in said


@pytest.mark.parametrize(
    "document",
    [{"kafka": {"keyed_by": "user"}}, NO_FAMILY, {"metrics": {"hide": HIDDEN}}],
)
def test_what_counts_no_users_needs_no_keys(document: dict[str, Any]) -> None:
    require_keyed(parse(document), FOUND)


def test_too_little_evidence_refuses_nothing() -> None:
    nobody: list[tuple[bytes, int]] = []
    for places in (nobody, by_user()[:5], [(user, len(user) % PARTITIONS) for user in USERS]):
        require_keyed(Settings(), keying_of({"impressions": places}, PARTITIONS))


def test_topics_of_sources_are_compared_with_one_that_has_impressions() -> None:
    places = {"a": by_user("crc32"), "b": by_user()}
    found = keying_of(places, PARTITIONS, "b")
    assert [found[log].is_by_user for log in "ab"] == [False, True]


def test_metrics_of_users_are_not_shown() -> None:
    settings = Settings()
    whole, without = Catalogue(settings), Catalogue(settings).without_users()
    gone = {m.name for m in whole.metrics} - {m.name for m in without.metrics}
    assert {"window_users", "user_hit_ratio", "user_hit_lower_ratio", "clicks_per_user"} <= gone
    assert not {"ctr_ratio", "ctr_lower_ratio", "window_impressions"} & gone
    found = readout(settings, whole, [], keyed={"clicks": False})
    values = {(r.name, *r.labels.values()): r.value for r in found.readings}
    assert values["streamer_identity_exact",] == 0
