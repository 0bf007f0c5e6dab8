"""Settings that are nearly right: unknown keys, one underscore, names of fields, the Redis URL."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.metrics.catalogue import FAMILIES
from streamer.server.series import entries
from streamer.settings.labels import OF_READINGS, RESERVED, UNRESERVED
from streamer.settings.load import load, parse
from streamer.settings.model import Settings
from streamer.settings.redis_url import validate_url
from streamer.settings.section import NAME, keys_of, variable_of
from tests.support.all_cases import hold_for_all


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as failed:
        parse(document)
    message = str(failed.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"kafak": {}}, "did you mean 'kafka'?"),
        ({"kafka": {"brokerz": "x"}}, "did you mean 'brokers'?"),
        ({"kafka": {"topics": {"click": "x"}}}, "did you mean 'clicks'?"),
        (
            {"kafka": {"url": "x"}},
            "did you mean redis.url or experiments.url or sources.registry.url or actions.url?",
        ),
        ({"dimensions": [{"name": "a", "max_value": 3}]}, "did you mean 'max_values'?"),
        ({"events": {"xyz": 1}}, "the keys there are fields"),
        ({"alerts": [{"name": "a", "windw": "1h"}]}, "did you mean 'window'?"),
    ],
)
def test_an_unknown_key_suggests_one_that_is_known(document: dict[str, Any], said: str) -> None:
    assert said in refusal(document)


def test_a_variable_with_one_underscore_is_refused_by_its_right_name() -> None:
    keys = [key for key in keys_of(Settings) if "." in key]
    assert keys
    for key in keys:
        name = variable_of(key)
        with pytest.raises(SettingsError) as failed:
            load(None, {name.replace("__", "_"): "x"})
        assert name in str(failed.value)
        assert key.replace(NAME, NAME.lower()) in str(failed.value)


@pytest.mark.parametrize(
    "name",
    [
        *("STREAMER_CONFIG", "STREAMER_SUPERVISED", "STREAMER_CHAOS", "STREAMER_TEST_KAFKA"),
        "STREAMER_SUPERVISOR",
        *("STREAMER_SERVICE_HOST", "STREAMER_PORT", "STREAMER_PORT_8000_TCP", "STREAMER_"),
        *("STREAMER_EXPORTER_SERVICE_HOST", "STREAMER_EXPORTER_SERVICE_PORT", "KAFKA_BROKERS"),
        *("STREAMER_EXPORTER_PORT", "STREAMER_EXPORTER_PORT_8000_TCP_ADDR"),
    ],
)
def test_other_variables_stop_nothing(name: str) -> None:
    assert load(None, {name: "tcp://10.0.0.1:8000"}) == Settings()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"itemid": "sku"}, ["events.fields.itemid = 'sku'", "did you mean 'item_id'?"]),
        ({"sku": "item_id"}, ["'sku'", "item_id = 'sku'", "name comes first"]),
        ({"xyz": "q"}, ["'xyz'", "there are ts, user_id"]),
        ({"item_id": "item.id"}, ["item_id = 'item.id'", "nested", "not supported"]),
        ({"item_id": "$.item"}, ["'$.item'", "not supported"]),
        ({"item_id": "/item/id"}, ["not supported"]),
        ({"item_id": ""}, ["item_id = ''"]),
        ({"item_id": "x", "user_id": "x"}, ["'item_id'", "'user_id'", "both be read from 'x'"]),
        ({"item_id": "user_id"}, ["events.fields.item_id", "'user_id'", "a name of its own"]),
        ({"variant": "ts"}, ["events.fields.variant", "'ts' and 'variant'"]),
    ],
)
def test_fields_that_cannot_be_mapped(fields: dict[str, str], said: list[str]) -> None:
    message = refusal({"events": {"fields": fields}})
    for text in said:
        assert text in message


def test_names_may_be_exchanged_and_shared_by_events_of_other_topics() -> None:
    fields = {"item_id": "user_id", "user_id": "item_id", "score": "number", "value": "number"}
    assert parse({"events": {"fields": fields}}).events.fields == fields


OF_BUILD = ("version", "python")
"""Labels of `build_info`, which has none of dimensions."""
OURS = {label for entry in entries() for label in entry.labels} - {
    *("<dimension>", *UNRESERVED, *OF_BUILD)
}


OF_PROMETHEUS = ("__name__", "__replica", "job", "instance", "le", "worker", "user_id")


def is_no_name_of_a_dimension(name: str) -> None:
    message = refusal({"dimensions": [{"name": name}]})
    assert repr(name) in message
    assert "use another name" in message
    assert "dimensions[0]" in message
    if name in ("__name__", "job"):
        other = f"event_{name.strip('_')}"
        assert f"[events.fields] {other} = {name!r}" in message
        fixed = {"dimensions": [{"name": other}], "events": {"fields": {other: name}}}
        assert parse(fixed).dimension_names == (other,)


def test_a_dimension_has_no_name_of_a_label_or_a_field() -> None:
    hold_for_all([*sorted(OURS), *OF_PROMETHEUS], is_no_name_of_a_dimension, at_least=30)


def test_all_labels_of_the_processor_are_reserved() -> None:
    assert {"topic", "partition", "worker", "phase"} <= RESERVED


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://h/0?x=1", ["question mark", "settings of their own"]),
        ("redis://h?password=4711secret", ["redis.password_file"]),
        ("redis://h?db=3&ssl_ca_certs=/4711secret", ["/N at the end", "redis.ssl_ca_certs"]),
        ("redis://:47?11secret@h/0", ["%3F", "at h/0"]),
        ("redis://:47?password@h/0", ["%3F"]),
        ("redis://:4711secret@h:port/0", ["redis://host:port/db", "at h:port/0"]),
        ("redis://:4711secret@h:1/zero", ["/ and a database number"]),
        ("redis://:4711#secret@h:1/0", ["%-encode"]),
        ("h:6379", ["redis://host:port/db", "no ://"]),
        ("http://h", ["redis://host:port/db"]),
        ("redis://", ["redis://host:port/db"]),
        ("redis+sentinel://:4711secret@h:1,i:2", ["redis+sentinel://host", "at h:1,i:2"]),
        ("redis+sentinel://h:1,:2/main/0", ["redis+sentinel://host", "at h:1,:2/main/0"]),
        ("redis+sentinel://h:1/main/x", ["redis+sentinel://host"]),
        ("", ["redis://host:port/db"]),
    ],
)
def test_a_bad_url_of_redis_says_what_to_do_and_no_secret(url: str, said: list[str]) -> None:
    message = refusal({"redis": {"url": url}})
    for text in ("redis.url", *said):
        assert text in message
    assert "secret" not in message
    assert "4711" not in message


@pytest.mark.parametrize(
    "url",
    [
        *("redis://h", "redis://h/", "redis://h:6379/12", "rediss://u:p%3Fw@[::1]:6380/0"),
        *("unix:///run/redis.sock", "redis://:pw@redis.example:6379"),
    ],
)
def test_good_urls_of_redis(url: str) -> None:
    validate_url(url)


def test_labels_of_every_metric_are_reserved() -> None:
    labels = {label for family in FAMILIES for metric in family.metrics for label in metric.labels}
    assert labels <= set(OF_READINGS)
