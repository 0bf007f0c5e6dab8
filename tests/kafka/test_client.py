"""From the settings to aiokafka's arguments: security, and secrets that no message shows."""

from __future__ import annotations

import asyncio
import base64
import inspect
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from streamer.errors import BrokerError, SettingsError
from streamer.kafka.client import client_settings
from streamer.settings.model import Kafka
from tests.support.required import require_package

SECRET = "s3cret"


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return str(path)


@pytest.mark.parametrize("mechanism", ["PLAIN", "scram-sha-256", "SCRAM-SHA-512"])
def test_login_with_a_password_from_a_file(mechanism: str, secret_file: str) -> None:
    kafka = Kafka(
        security_protocol="sasl_ssl",
        sasl_mechanism=mechanism,
        sasl_username="me",
        sasl_password_file=secret_file,
    )
    settings = client_settings(kafka)
    assert settings["security_protocol"] == "SASL_SSL"
    assert settings["sasl_mechanism"] == mechanism.upper()
    assert (settings["sasl_plain_username"], settings["sasl_plain_password"]) == ("me", SECRET)
    assert settings["ssl_context"].verify_mode is ssl.CERT_REQUIRED
    assert settings["ssl_context"].check_hostname
    assert SECRET not in repr(kafka)


def test_tokens_are_read_each_time(secret_file: str) -> None:
    kafka = Kafka(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_file=secret_file,
    )
    provider = client_settings(kafka)["sasl_oauth_token_provider"]
    assert asyncio.run(provider.token()) == SECRET
    Path(secret_file).write_text("renewed")
    assert asyncio.run(provider.token()) == "renewed"


def test_tokens_of_msk_are_signed_for_the_region_of_the_brokers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Signed here, as the credentials say; compared with what the service documents."""
    require_package("aws_msk_iam_sasl_signer", extra="aws")
    for name, value in {"ACCESS_KEY_ID": "AKID", "SECRET_ACCESS_KEY": SECRET}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.delenv("AWS_REGION", raising=False)
    brokers = "b-1.shop.x1y2.c3.kafka.eu-west-1.amazonaws.com:9098"
    kafka = Kafka(brokers=brokers, security_protocol="SASL_SSL", sasl_mechanism="AWS_MSK_IAM")
    settings = client_settings(kafka)
    assert settings["sasl_mechanism"] == "OAUTHBEARER"
    tokens = [asyncio.run(settings["sasl_oauth_token_provider"].token()) for _ in range(2)]
    url = urlsplit(base64.urlsafe_b64decode(tokens[0] + "==").decode())
    asked = {key: value for key, (value,) in parse_qs(url.query).items()}
    assert url.hostname == "kafka.eu-west-1.amazonaws.com"
    assert asked["Action"] == "kafka-cluster:Connect"
    assert asked["X-Amz-Credential"].startswith("AKID/")
    assert asked["X-Amz-Credential"].endswith("/eu-west-1/kafka-cluster/aws4_request")
    assert int(asked["X-Amz-Expires"]) <= 900
    assert SECRET not in url.geturl()
    own = msgspec.structs.replace(kafka, brokers="kafka.internal:9098")
    with pytest.raises(SettingsError, match=r"needs AWS_REGION, as kafka\.brokers names no region"):
        client_settings(own)
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(f"AWS_{name}")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(BrokerError, match=r"no token of AWS in us-east-2: .*give this process"):
        asyncio.run(client_settings(own)["sasl_oauth_token_provider"].token())


def test_host_names_need_not_match() -> None:
    kafka = Kafka(security_protocol="SSL", ssl_check_hostname=False)
    context = client_settings(kafka)["ssl_context"]
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("client", [AIOKafkaConsumer, AIOKafkaProducer, AIOKafkaAdminClient])
def test_every_client_takes_them(client: Any, secret_file: str) -> None:
    known = set(inspect.signature(client.__init__).parameters)
    login = {"sasl_username": "me", "sasl_password_file": secret_file}
    token = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_file": secret_file}
    for options in ({**login}, token):
        kafka = msgspec.convert({"security_protocol": "SASL_SSL", **options}, Kafka)
        assert set(client_settings(kafka)) <= known


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"brokers": " , "}, "kafka.brokers"),
        ({"security_protocol": "TLS"}, "SASL_SSL"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "MD5"}, "SCRAM-SHA-512"),
        ({"security_protocol": "SASL_SSL"}, "kafka.sasl_username"),
        ({"security_protocol": "SASL_SSL", "sasl_username": "me"}, "sasl_password_file"),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_username": "me",
                "sasl_password": SECRET,
                "sasl_password_file": "x",
            },
            "needs one of",
        ),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_username": "me",
                "sasl_password_file": "/no/file",
            },
            "No such file or directory; at /no/file",
        ),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}, "token_file"),
        ({"security_protocol": "SSL", "ssl_cafile": "/no/file"}, "kafka.ssl_cafile"),
        ({"security_protocol": "SSL", "ssl_cafile": __file__}, "kafka.ssl_cafile"),
        ({"security_protocol": "SSL", "ssl_certfile": __file__}, "kafka.ssl_certfile"),
        ({"security_protocol": "SSL", "ssl_keyfile": __file__}, "without kafka.ssl_certfile"),
    ],
)
def test_errors_are_one_line_without_secrets(options: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as error:
        client_settings(msgspec.convert(options, Kafka))
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert SECRET not in str(error.value)


def test_an_empty_secret_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_text("\n")
    kafka = Kafka(security_protocol="SASL_SSL", sasl_username="me", sasl_password_file=str(path))
    with pytest.raises(SettingsError, match="empty file"):
        client_settings(kafka)
