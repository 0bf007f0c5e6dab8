"""From ``[kafka]`` or ``[clusters.NAME]`` of the settings to the arguments of aiokafka's clients.

Secrets are read from files here and go nowhere else: no message, no repr.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import re
import ssl
from typing import Any, Self

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import SaslAuthenticationFailed, UnsupportedSaslMechanismError

from streamer.errors import BrokerError, SettingsError
from streamer.settings.clusters import MAIN, Connection
from streamer.settings.load import secret_of, unusable

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MSK = "AWS_MSK_IAM"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", MSK)
_REGION = re.compile(r"\.([a-z0-9-]+)\.amazonaws\.com")


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]  # untyped there
    """OAuth tokens from a file, read again for each login, so that it can be renewed in place."""

    def __init__(self, path: str, section: str) -> None:
        self._path, self._key = path, f"{section}.sasl_oauth_token_file"

    async def token(self) -> str:
        """The token; SettingsError where the file cannot be read."""
        return await asyncio.to_thread(secret_of, self._key, self._path)


class MskToken(AbstractTokenProvider):  # type: ignore[misc]  # untyped there
    """Tokens of Amazon MSK for the credentials of this machine or pod, signed for each login."""

    def __init__(self, region: str) -> None:
        from aws_msk_iam_sasl_signer import (  # type: ignore[import-untyped]
            MSKAuthTokenProvider,
        )

        self._sign, self._region = MSKAuthTokenProvider.generate_auth_token, region

    async def token(self) -> str:
        """The token; BrokerError where there are no credentials."""
        try:
            token, _ = await asyncio.to_thread(self._sign, self._region)
        except Exception as error:  # of botocore: a tree of its own
            text = f"no token of AWS in {self._region}: {error}: give this process a role"
            raise BrokerError(text) from error
        return str(token)


def client_settings(kafka: Connection, section: str = MAIN) -> dict[str, Any]:
    """Arguments common to aiokafka's consumer, producer and admin client.

    SettingsError where a setting contradicts another one, or a file it names cannot be used;
    ``section``: where they stand.

    >>> client_settings(Connection(brokers="a:9092, b:9092"))
    {'bootstrap_servers': ['a:9092', 'b:9092'], 'security_protocol': 'PLAINTEXT'}
    """
    brokers = [address for part in kafka.brokers.split(",") if (address := part.strip())]
    protocol = _one_of(f"{section}.security_protocol", kafka.security_protocol, PROTOCOLS)
    if not brokers:
        raise SettingsError(f"{section}.brokers = {kafka.brokers!r}: at least one host:port")
    settings: dict[str, Any] = {"bootstrap_servers": brokers, "security_protocol": protocol}
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(kafka, section)
    if protocol.startswith("SASL"):
        settings |= _sasl(kafka, section)
    return settings


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> str:
    if value.upper() not in allowed:
        raise SettingsError(f"{key} = {value!r}: one of {', '.join(allowed)}")
    return value.upper()


def _ssl_context(kafka: Connection, section: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if kafka.ssl_cafile is not None:
        try:  # its authorities only, not those of the system
            context = ssl.create_default_context(cafile=kafka.ssl_cafile)
        except (OSError, ValueError) as error:
            raise unusable(f"{section}.ssl_cafile", kafka.ssl_cafile, error) from None
    context.check_hostname = kafka.ssl_check_hostname
    if kafka.ssl_certfile is None:
        if kafka.ssl_keyfile is not None:
            raise SettingsError(f"{section}.ssl_keyfile is set without {section}.ssl_certfile")
        return context
    password = ""  # an encrypted key then fails here, instead of asking on the terminal
    if kafka.ssl_keyfile_password_file is not None:
        key = f"{section}.ssl_keyfile_password_file"
        password = secret_of(key, kafka.ssl_keyfile_password_file)
    try:
        context.load_cert_chain(kafka.ssl_certfile, kafka.ssl_keyfile, lambda: password)
    except (OSError, ValueError) as error:
        paths = ", ".join(p for p in (kafka.ssl_certfile, kafka.ssl_keyfile) if p is not None)
        raise unusable(f"{section}.ssl_certfile", paths, error) from None
    return context


def _sasl(kafka: Connection, section: str) -> dict[str, Any]:
    mechanism = _one_of(f"{section}.sasl_mechanism", kafka.sasl_mechanism, MECHANISMS)
    needs = f"{section}.sasl_mechanism = {mechanism!r} needs"
    settings: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism == "GSSAPI":
        if importlib.util.find_spec("gssapi") is None:
            raise SettingsError(f"{needs} the Python package gssapi")
        settings["sasl_kerberos_service_name"] = kafka.sasl_kerberos_service_name
        settings["sasl_kerberos_domain_name"] = kafka.sasl_kerberos_domain_name
    elif mechanism == MSK:
        if importlib.util.find_spec("aws_msk_iam_sasl_signer") is None:
            raise SettingsError(f"{needs} the Python package aws-msk-iam-sasl-signer-python")
        found = _REGION.search(kafka.brokers)
        region = found[1] if found else os.environ.get("AWS_REGION")
        if region is None:
            raise SettingsError(f"{needs} AWS_REGION, as {section}.brokers names no region")
        settings |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": MskToken(region)}
    elif mechanism == "OAUTHBEARER":
        if kafka.sasl_oauth_token_file is None:
            raise SettingsError(f"{needs} {section}.sasl_oauth_token_file")
        secret_of(f"{section}.sasl_oauth_token_file", kafka.sasl_oauth_token_file)
        settings["sasl_oauth_token_provider"] = TokenFile(kafka.sasl_oauth_token_file, section)
    else:
        login = _login(kafka, section, needs)
        settings["sasl_plain_username"], settings["sasl_plain_password"] = login
    return settings


def _login(kafka: Connection, section: str, needs: str) -> tuple[str, str]:
    if kafka.sasl_username is None:
        raise SettingsError(f"{needs} {section}.sasl_username")
    if (kafka.sasl_password is None) == (kafka.sasl_password_file is None):
        raise SettingsError(
            f"{needs} one of {section}.sasl_password_file and {section}.sasl_password"
        )
    if kafka.sasl_password_file is not None:
        key = f"{section}.sasl_password_file"
        return kafka.sasl_username, secret_of(key, kafka.sasl_password_file)
    return kafka.sasl_username, kafka.sasl_password or ""


class Refusals(logging.Handler):
    """What aiokafka logs while it connects: its exception does not tell the reason.

    Used as a context around a client's ``start``; where nothing else listens it also keeps those
    lines off the terminal, for the error is reported once, in our words.
    """

    def __init__(self, section: str = MAIN) -> None:
        super().__init__(logging.WARNING)
        self._section = section
        self._errors: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep exceptions among the arguments of a log record."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        self._errors += [x for x in arguments if isinstance(x, BaseException)]

    def __enter__(self) -> Self:
        logging.getLogger("aiokafka").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("aiokafka").removeHandler(self)

    def reason(self, error: BaseException) -> str:
        """Why a client did not start; of several brokers what the last one said."""
        return refusal(self._errors[-1] if self._errors else error, self._section)


def refusal(error: BaseException, section: str = MAIN) -> str:
    """An error of connecting, in words, with what to look at.

    >>> refusal(SaslAuthenticationFailed("invalid credentials"))
    'invalid credentials: look at kafka.sasl_username and its password'
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        return f"its certificate is refused: {why}: look at {section}.ssl_cafile and the host name"
    if isinstance(error, SaslAuthenticationFailed):
        answer = str(error).rpartition(": ")[2]
        return f"{answer}: look at {section}.sasl_username and its password"
    if isinstance(error, UnsupportedSaslMechanismError):
        return f"it does not offer this {section}.sasl_mechanism"
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, ssl.SSLError) or not str(error) or message.endswith("closed"):
        message += f": look at {section}.security_protocol and {section}.ssl_certfile"
    return message
