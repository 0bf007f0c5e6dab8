"""Exposures as tools for experiments document them, and who they put into which arm: cases as in
`documented`."""

from __future__ import annotations

import json
from typing import Any

from tests.support.documented import AT, MS, SECONDS, Case, Object


def _exposure(user: str, experiment: str, arm: str, **more: Any) -> Object:
    said = {"user": user, "experiment": experiment, "arm": arm}
    return {"kind": "exposures", **said, **more}


_TRACK = {
    "type": "track",
    "anonymousId": "a1",
    "userId": "u1",
    "messageId": "m1",
    "timestamp": AT,
    "context": {"library": {"name": "analytics.js"}},
}
_VIEWED = {**_TRACK, "event": "Experiment Viewed"}
SEGMENT: list[Case] = [
    (
        {
            **_VIEWED,
            "properties": {
                "experiment_id": "e17",
                "experiment_name": "Ranker of the home page",
                "variation_id": "v2",
                "variation_name": "New",
            },
        },
        _exposure("u1", "e17", "v2", event_id="m1"),
    ),
    (
        {**_VIEWED, "properties": {"experiment_name": "Ranker", "variation_name": "New"}},
        _exposure("u1", "Ranker", "New"),
    ),
    (  # as GrowthBook's tracking callback sends it
        {
            **_VIEWED,
            "userId": None,
            "properties": {"experimentId": "ranker", "variationId": "1"},
        },
        _exposure("a1", "ranker", "1"),
    ),
    (  # as Eppo's assignment logger does
        {
            **_TRACK,
            "event": "Eppo Randomization Event",
            "properties": {
                "experiment": "ranker-allocation-17",
                "featureFlag": "ranker",
                "allocation": "allocation-17",
                "variation": "new",
                "subject": "u1",
            },
        },
        _exposure("u1", "ranker-allocation-17", "new"),
    ),
    (
        {
            **_TRACK,
            "event": "Eppo Randomization Event",
            "properties": {"experiment": "x", "variation": None},
        },
        "ignored",
    ),
    (  # as Amplitude Experiment does
        {
            **_TRACK,
            "event": "$exposure",
            "properties": {"flag_key": "ranker", "variant": "new"},
        },
        _exposure("u1", "ranker", "new"),
    ),
    ({**_TRACK, "event": "$exposure", "properties": {"flag_key": "ranker"}}, "ignored"),
]

_FLAG_CALLED = {
    "uuid": "01890b",
    "event": "$feature_flag_called",
    "distinct_id": "u1",
    "timestamp": AT,
}
_ANSWERED = {
    "$feature_flag": "ranker",
    "$feature_flag_response": "test",
    "$feature/ranker": "test",
}
POSTHOG: list[Case] = [
    (
        {"event": {**_FLAG_CALLED, "properties": _ANSWERED}, "person": {"id": "p-1"}},
        _exposure("u1", "ranker", "test", event_id="01890b"),
    ),
    ({**_FLAG_CALLED, "properties": _ANSWERED}, _exposure("u1", "ranker", "test")),
    (
        {**_FLAG_CALLED, "properties": json.dumps(_ANSWERED)},
        _exposure("u1", "ranker", "test"),
    ),
    (
        {
            **_FLAG_CALLED,
            "properties": {"$feature_flag": "banner", "$feature_flag_response": False},
        },
        _exposure("u1", "banner", "false"),
    ),
    (
        {
            **_FLAG_CALLED,
            "properties": {"$feature_flag": "banner", "$feature_flag_response": None},
        },
        "ignored",
    ),
]

_AMPLITUDE = {"user_id": "u1", "device_id": "d1", "event_time": "2026-11-01 10:00:00.000000"}
_FLAG = {"[Experiment] Flag Key": "ranker", "[Experiment] Variant": "treatment"}
AMPLITUDE: list[Case] = [
    (
        {
            **_AMPLITUDE,
            "event_type": "[Experiment] Exposure",
            "event_properties": _FLAG,
            "user_properties": {"[Experiment] ranker": "treatment"},
        },
        _exposure("u1", "ranker", "treatment"),
    ),
    (
        {**_AMPLITUDE, "event_type": "[Experiment] Impression", "event_properties": _FLAG},
        _exposure("u1", "ranker", "treatment"),
    ),
    (  # before Amplitude took it in
        {
            "user_id": "u1",
            "time": MS,
            "event_type": "$exposure",
            "event_properties": {
                "flag_key": "ranker",
                "variant": "treatment",
                "experiment_key": "exp-1",
            },
        },
        _exposure("u1", "ranker", "treatment"),
    ),
    (  # back to the default
        {
            **_AMPLITUDE,
            "event_type": "[Experiment] Exposure",
            "event_properties": {"[Experiment] Flag Key": "ranker"},
        },
        "ignored",
    ),
    ({**_AMPLITUDE, "event_type": "[Experiment] Assignment"}, "ignored"),
]

MIXPANEL: list[Case] = [
    (
        {
            "event": "$experiment_started",
            "properties": {
                "time": SECONDS,
                "distinct_id": "u1",
                "$insert_id": "i1",
                "Experiment name": "ranker",
                "Variant name": "new",
                "$variant_source": "network",
            },
        },
        _exposure("u1", "ranker", "new", event_id="i1"),
    ),
    (  # several in one event
        {
            "event": "$experiment_started",
            "properties": {"time": SECONDS, "distinct_id": "u1", "Experiments": ["ranker:new"]},
        },
        "ignored",
    ),
]


def _parameters(**texts: str) -> list[Object]:
    return [{"key": name, "value": {"string_value": text}} for name, text in texts.items()]


_ROW = {"event_timestamp": str(MS * 1000), "user_pseudo_id": "p1"}
_IMPRESSION = {**_ROW, "event_name": "experience_impression"}
GA4: list[Case] = [
    (
        {**_IMPRESSION, "event_params": _parameters(exp_variant_string="ABC-ranker-new")},
        _exposure("p1", "ranker", "new"),
    ),
    (
        {
            "client_id": "p1",
            "timestamp_micros": MS * 1000,
            "name": "experience_impression",
            "params": {"exp_variant_string": "ABC-F29485-349F49"},
        },
        _exposure("p1", "F29485", "349F49"),
    ),
    ({**_IMPRESSION, "event_params": _parameters(exp_variant_string="ranker")}, "ignored"),
    ({**_IMPRESSION, "event_params": []}, "ignored"),
    (  # of GrowthBook's SDK
        {
            **_ROW,
            "event_name": "experiment_viewed",
            "event_params": [
                *_parameters(experiment_id="ranker"),
                {"key": "variation_id", "value": {"string_value": None, "int_value": "1"}},
            ],
        },
        _exposure("p1", "ranker", "1"),
    ),
]

_EVALUATED = {
    "feature_flag.key": "ranker",
    "feature_flag.provider.name": "flagd",
    "feature_flag.context.id": "u1",
    "feature_flag.result.reason": "split",
}
_LOG_RECORD = {"Timestamp": str(MS * 1_000_000), "EventName": "feature_flag.evaluation"}
_VARIANT, _VALUE = "feature_flag.result.variant", "feature_flag.result.value"
OTEL: list[Case] = [
    (
        {**_LOG_RECORD, "Attributes": {**_EVALUATED, _VARIANT: "new", "session.id": "s1"}},
        _exposure("u1", "ranker", "new"),
    ),
    (
        {**_LOG_RECORD, "Attributes": {**_EVALUATED, _VALUE: True, "user.id": "u2"}},
        _exposure("u2", "ranker", "true"),
    ),
    (
        {**_LOG_RECORD, "Attributes": {**_EVALUATED, "error.type": "flag_not_found"}},
        "ignored",
    ),
]


def _exported(**more: Object) -> Object:
    texts = {key: {"stringValue": text} for key, text in _EVALUATED.items()}
    attributes = [{"key": key, "value": value} for key, value in {**texts, **more}.items()]
    one = {
        "timeUnixNano": str(MS * 1_000_000),
        "eventName": "feature_flag.evaluation",
        "attributes": attributes,
    }
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [one]}]}]}


OTLP: list[Case] = [
    (_exported(**{_VARIANT: {"stringValue": "new"}}), _exposure("u1", "ranker", "new")),
    (_exported(**{_VALUE: {"boolValue": False}}), _exposure("u1", "ranker", "false")),
    (_exported(), "ignored"),
]
_OF_SDK = {"name": "feature_flag.evaluation"}
OPENFEATURE: list[Case] = [
    (
        {**_OF_SDK, "attributes": {**_EVALUATED, _VARIANT: "new", _VALUE: "grid"}},
        _exposure("u1", "ranker", "new"),
    ),
    (
        {**_OF_SDK, "attributes": {**_EVALUATED, _VALUE: 3}},
        _exposure("u1", "ranker", "3"),
    ),
    ({**_OF_SDK, "attributes": {"feature_flag.key": "x", "error.type": "general"}}, "ignored"),
]

_SNOWPLOW = {
    "event": "unstruct",
    "event_name": "experiment_viewed",
    "event_id": "e",
    "domain_userid": "u1",
    "derived_tstamp": "2026-11-01 10:00:00.000",
}
_OF_SCHEMA = {"experimentId": "ranker", "variationId": "1", "hashAttribute": "id"}
_VIEWED_OF_SDK = "unstruct_event_com_growthbook_experiment_viewed_1"
_SCHEMA = "iglu:com.growthbook/experiment_viewed/jsonschema/1-0-0"
SNOWPLOW: list[Case] = [
    ({**_SNOWPLOW, _VIEWED_OF_SDK: _OF_SCHEMA}, _exposure("u1", "ranker", "1", event_id="e")),
]
SNOWPLOW_TSV: list[Case] = [
    (
        {
            **_SNOWPLOW,
            "contexts": "",
            "unstruct_event": json.dumps({"data": {"schema": _SCHEMA, "data": _OF_SCHEMA}}),
        },
        _exposure("u1", "ranker", "1"),
    ),
]

EPPO: list[Case] = [
    (
        {
            "experiment": "ranker-allocation-17",
            "featureFlag": "ranker",
            "allocation": "allocation-17",
            "variation": "new",
            "subject": "u1",
            "timestamp": AT,
            "subjectAttributes": {"country": "DE"},
            "format": "UFC",
        },
        _exposure("u1", "ranker-allocation-17", "new"),
    ),
    (
        {
            "experiment": "ranker-allocation-17",
            "subject": 6141,
            "variation": "control",
            "timestamp": AT,
            "subject_attributes": '{"country": "DE"}',
        },
        _exposure("6141", "ranker-allocation-17", "control"),
    ),
    (
        {"experiment": None, "featureFlag": "ranker", "variation": None, "subject": "u1"},
        "ignored",
    ),
]

_SAID = {"experimentId": "ranker", "variationId": "1"}
_UNIT = {"hashAttribute": "id", "hashValue": "u1"}
GROWTHBOOK: list[Case] = [
    (
        {
            "user_id": "123",
            "timestamp": "2026-11-01 10:00:00",
            "experiment_id": "my-button-test",
            "variation_id": 0,
        },
        _exposure("123", "my-button-test", "0"),
    ),
    (
        {
            "event_name": "Experiment Viewed",
            "timestamp": AT,
            "properties": json.dumps(_SAID),
            "attributes": json.dumps({"user_id": "u1", "geo_country": "DE"}),
        },
        _exposure("u1", "ranker", "1"),
    ),
    (
        {
            "event_name": "Experiment Viewed",
            "properties_json": {**_SAID, **_UNIT},
            "user_id": None,
            "device_id": "d1",
            "sdk_language": "js",
            "context_json": {"browser": "firefox"},
        },
        _exposure("u1", "ranker", "1"),
    ),
    (
        {
            "event_name": "Feature Evaluated",
            "properties": {"feature": "ranker", "value": True, "variationId": "1"},
        },
        "ignored",
    ),
    ({"event_name": "Purchase", "properties": {"amount": 100}}, "ignored"),
]

_EVALUATION = {
    "kind": "feature",
    "creationDate": MS,
    "key": "ranker",
    "variation": 1,
    "value": "new",
    "version": 42,
}
_BESIDE = {"project": "5744", "environment": "578d", "version": 1}
LAUNCHDARKLY: list[Case] = [
    (
        {
            **_BESIDE,
            "event": {
                **_EVALUATION,
                "contextKeys": {"user": "u1", "organization": "o1"},
                "variationName": "New",
                "reason": {"kind": "FALLTHROUGH", "inExperiment": True},
            },
        },
        _exposure("u1", "ranker", "1"),
    ),
    ({**_BESIDE, "event": {**_EVALUATION, "userKey": "u1"}}, _exposure("u1", "ranker", "1")),
    (  # as SDKs send it
        {**_EVALUATION, "contextKeys": {"user": "u1"}, "default": False},
        _exposure("u1", "ranker", "1"),
    ),
    (
        {**_BESIDE, "event": {**_EVALUATION, "userKey": "u1", "prereqOf": "parent"}},
        "ignored",
    ),
    ({**_BESIDE, "event": {"kind": "index", "creationDate": MS}}, "ignored"),
]

_DECISION = {
    "uuid": "d-1",
    "timestamp": MS,
    "process_timestamp": MS + 900,
    "visitor_id": "u1",
    "account_id": "1",
    "campaign_id": "100",
    "experiment_id": "200",
    "variation_id": "300",
}
OPTIMIZELY: list[Case] = [
    (
        {**_DECISION, "is_holdback": False, "user_agent": "x"},
        _exposure("u1", "200", "300", event_id="d-1"),
    ),
    ({**_DECISION, "timestamp": "2026-11-01 10:00:00"}, _exposure("u1", "200", "300")),
    ({**_DECISION, "is_holdback": True}, "ignored"),
    ({**_DECISION, "experiment_id": None, "is_holdback": False}, "ignored"),
]

_STATSIG = {
    "user": {"userID": "u1", "country": "DE"},
    "userID": "u1",
    "timestamp": str(MS),
    "statsigMetadata": {},
    "value": "",
    "timeUUID": "t1",
    "unitID": "userID",
}
_OF_GROUP = {"config": "ranker", "ruleID": "4Sau", "reason": "Network", "time": "1"}
_SENT: Object = {"user": {"userID": "u1"}, "value": None, "time": MS, "secondaryExposures": []}
STATSIG: list[Case] = [
    (
        {
            **_STATSIG,
            "eventName": "statsig::experiment_exposure",
            "metadata": {**_OF_GROUP, "experimentGroupName": "Test"},
        },
        _exposure("u1", "ranker", "Test", event_id="t1"),
    ),
    (
        {
            **_STATSIG,
            "eventName": "statsig::gate_exposure",
            "metadata": {"gate": "banner", "gateValue": "false", "ruleID": "default"},
        },
        _exposure("u1", "banner", "false"),
    ),
    (
        {**_SENT, "eventName": "statsig::config_exposure", "metadata": _OF_GROUP},
        _exposure("u1", "ranker", "4Sau"),
    ),
    (
        {
            **_SENT,
            "eventName": "statsig::layer_exposure",
            "metadata": {
                **_OF_GROUP,
                "config": "home",
                "parameterName": "columns",
                "allocatedExperiment": "ranker",
                "isExplicitParameter": "true",
            },
        },
        _exposure("u1", "ranker", "4Sau"),
    ),
    (
        {
            "company_id": "c",
            "unit_id": "u1",
            "unit_type": "userID",
            "exposure_type": "experiment",
            "name": "ranker",
            "rule": "4Sau",
            "experiment_group": "Test",
            "first_exposure_utc": "2026-11-01 10:00:00",
            "group_id": "4Sau",
        },
        _exposure("u1", "ranker", "Test"),
    ),
    ({**_STATSIG, "eventName": "auto_capture::page_view"}, "ignored"),
    ({**_STATSIG, "eventName": "my_custom_event"}, "kind"),
]

_CONTEXT = {"sessionId": 54_085_233, "appName": "shop", "environment": "default"}
UNLEASH: list[Case] = [
    (
        {
            "eventType": "getVariant",
            "eventId": "e1",
            "context": {**_CONTEXT, "userId": "u1"},
            "enabled": True,
            "featureName": "ranker",
            "variant": "new",
        },
        _exposure("u1", "ranker", "new", event_id="e1"),
    ),
    (
        {
            "eventType": "isEnabled",
            "eventId": "e2",
            "context": _CONTEXT,
            "enabled": False,
            "featureName": "banner",
        },
        _exposure("54085233", "banner", "false"),
    ),
    ({"eventType": "getVariant", "context": _CONTEXT, "featureName": "x"}, "ignored"),
]

EXPOSURES: dict[str, list[Case]] = {
    "segment": SEGMENT,
    "rudderstack": SEGMENT,
    "posthog": POSTHOG,
    "amplitude": AMPLITUDE,
    "mixpanel": MIXPANEL,
    "ga4": GA4,
    "snowplow": SNOWPLOW,
    "snowplow-tsv": SNOWPLOW_TSV,
    "otel": OTEL,
    "otlp": OTLP,
    "openfeature": OPENFEATURE,
    "eppo": EPPO,
    "growthbook": GROWTHBOOK,
    "launchdarkly": LAUNCHDARKLY,
    "optimizely": OPTIMIZELY,
    "statsig": STATSIG,
    "unleash": UNLEASH,
}
"""Preset → cases."""
