"""Rules of ``[clusters.NAME]``, and the names of topics of several clusters."""

from __future__ import annotations

import re
from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.kafka.client import client_settings, refusal
from streamer.kafka.patterns import resolved
from streamer.settings.load import load, parse
from streamer.settings.model import Settings

FIELDS = {"ts": "at", "item_id": "item"}
WEB: dict[str, Any] = {"topics": ["web"], "kind": {"fixed": "impression"}, "fields": FIELDS}
APP: dict[str, Any] = {**WEB, "kind": {"fixed": "click"}, "cluster": "eu"}
EU: dict[str, Any] = {"eu": {"brokers": "eu:9092"}}
SECRET = "s3cret"


def document(**changes: Any) -> dict[str, Any]:
    return {"sources": [WEB, APP], "clusters": EU, **changes}


def test_topics_of_other_clusters_have_names_of_their_own() -> None:
    settings = parse(document())
    assert [(log.name, log.topic, log.plain) for log in settings.logs.values()] == [
        ("web", "web", "web"),
        ("web@eu", "web@eu", "web"),
    ]
    main, other = settings.read_clusters
    assert (main.section, other.section) == ("kafka", "clusters.eu")
    assert [log.name for log in settings.logs_in(main)] == ["web"]
    assert [log.name for log in settings.logs_in(other)] == ["web@eu"]
    assert [source.called for source in settings.sources] == ["web", "web@eu"]


def test_each_cluster_has_its_own_topics_that_fit_a_pattern() -> None:
    patterns = [{**source, "topics": ["^web"]} for source in (WEB, APP)]
    settings = parse(document(sources=patterns))
    found = resolved(settings, {None: ["web-1", "web-2"], "eu": ["web-2", "web-3"]})
    assert list(found.logs) == ["web-1", "web-2", "web-2@eu", "web-3@eu"]


def test_kinds_go_by_the_plain_name() -> None:
    source = {**APP, "topics": ["taps"], "kind": {"click": ["taps"]}}
    assert parse(document(sources=[WEB, source])).logs["taps@eu"].kinds == ("clicks",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clusters": {}}, "cluster = 'eu': there is no [clusters.eu]; there are: none;"),
        ({"sources": [WEB]}, "no source reads this cluster: remove it, or set cluster = 'eu'"),
        ({"sources": [APP]}, "all sources are of other clusters: at least one must be of [kafka]"),
        ({"clusters": {"EU": EU["eu"]}}, "bad name 'EU': 1 to 64 of a-z, 0-9, _ and -"),
        ({"clusters": {"kafka": EU["eu"]}}, "bad name 'kafka'"),
        ({"clusters": {"eu": {}}}, "missing required field `brokers` - at `$.clusters[...]`"),
        ({"clusters": {"eu": {"brokerz": "x"}}}, "did you mean 'brokers'?"),
        ({"clusters": {f"c{n}": EU["eu"] for n in range(17)}}, "17 clusters; at most 16"),
        ({"sources": [WEB, APP, APP]}, "topic 'web@eu' is in sources[1], too; at sources[2]"),
        ({"kafka": {"rekeyed": True}}, "sources[1] is of cluster 'eu', and no transaction spans"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse(document(**changes))


def test_the_environment_names_clusters_in_capitals() -> None:
    fields = 'fields = { ts = "at", item_id = "item" }'
    sources = (
        f'[{{ topics = ["web"], kind = {{ fixed = "impression" }}, {fields} }}, '
        f'{{ topics = ["web"], kind = {{ fixed = "click" }}, cluster = "eu", {fields} }}]'
    )
    environ = {
        "STREAMER_SOURCES": sources,
        "STREAMER_CLUSTERS__EU__BROKERS": "eu:9092",
        "STREAMER_CLUSTERS__EU__SASL_PASSWORD": "[4711]",
    }
    eu = load(None, environ).clusters["eu"]
    assert (eu.brokers, eu.sasl_password) == ("eu:9092", "[4711]")
    said = "clusters.eu.ssl_cafile is STREAMER_CLUSTERS__EU__SSL_CAFILE, with two underscores"
    for name in ("STREAMER_CLUSTERS_EU_SSL_CAFILE", "STREAMER_CLUSTERS__EU_SSL_CAFILE"):
        with pytest.raises(SettingsError, match=said):
            load(None, environ | {name: "ca.pem"})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"brokers": " , "}, "clusters.eu.brokers = ' , ': at least one host:port"),
        ({"security_protocol": "TLS"}, "clusters.eu.security_protocol = 'TLS'"),
        (
            {"security_protocol": "SASL_SSL", "sasl_password": SECRET},
            "clusters.eu.sasl_mechanism = 'PLAIN' needs clusters.eu.sasl_username",
        ),
        (
            {"security_protocol": "SSL", "ssl_keyfile": "key.pem"},
            "clusters.eu.ssl_keyfile is set without clusters.eu.ssl_certfile",
        ),
        ({"security_protocol": "SSL", "ssl_cafile": "no"}, "cannot use clusters.eu.ssl_cafile"),
    ],
)
def test_errors_name_the_section_and_no_secret(keys: dict[str, str], said: str) -> None:
    settings: Settings = parse(document(clusters={"eu": {**EU["eu"], **keys}}))
    _, other = settings.read_clusters
    with pytest.raises(SettingsError, match=re.escape(said)):
        client_settings(other.connection, other.section)
    assert SECRET not in repr(settings)
    assert "kafka." not in refusal(ConnectionError(), other.section)
