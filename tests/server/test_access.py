"""Access to the exporter: HTTPS, basic authentication, and a real Prometheus that passes it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from streamer.errors import SettingsError
from streamer.server.authentication import guards, tls_context
from streamer.settings.load import parse
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import HOST, free_port
from tests.support.agreement import DOCUMENTS
from tests.support.exporters import NAME, fill, settings_of
from tests.support.fixtures import COMMAND_SECONDS, Command
from tests.support.lanes import long
from tests.support.required import program
from tests.support.secured import Certificates
from tests.support.workers import as_toml, until

pytestmark = long

USER, PASSWORD = "prometheus", "exporter-password-ü:1"
PAGES = ("/", "/metrics", "/api/readings", "/readyz", "/nothing-here")


@pytest.fixture
async def config(
    redis_url: str, redis_prefix: str, certificates: Certificates, tmp_path: Path
) -> Path:
    """Settings of a guarded exporter, over a store that holds something."""
    settings = settings_of(redis_url, redis_prefix)
    store = RedisStore(settings.redis)
    await fill(store, settings)
    await store.close()
    (tmp_path / "password").write_text(PASSWORD + "\n", encoding="utf-8")
    document = {
        **DOCUMENTS[NAME],
        "redis": {"url": redis_url, "prefix": redis_prefix},
        "exporter": {
            "port": 0,
            "tls_certfile": str(certificates.server.cert),
            "tls_keyfile": str(certificates.server.key),
            "username": USER,
            "password_file": str(tmp_path / "password"),
        },
    }
    path = tmp_path / "streamer.toml"
    path.write_text(as_toml(document))
    return path


@contextlib.asynccontextmanager
async def exporter(config: Path) -> AsyncIterator[str]:
    """Base URL of ``streamer export`` as a process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streamer", "export", "-c", str(config)),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), COMMAND_SECONDS)
        yield line.decode().split()[-1].removesuffix("/metrics")
    finally:
        process.terminate()
        rest, _ = await process.communicate()
        assert rest == b""
        assert process.returncode == 0


def basic(user: str, password: str) -> dict[str, str]:
    coded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {coded}"}


async def test_who_may_read(config: Path, certificates: Certificates) -> None:
    right = basic(USER, PASSWORD)
    logins = [(USER, "wrong"), ("wrong", PASSWORD), (USER, ""), ("", ""), (PASSWORD, USER)]
    wrong = [{}, *(basic(*login) for login in logins)]
    odd = ("Basic", "Basic %%%", "Bearer x", f"Basic {'=' * 999}", right["Authorization"][6:])
    wrong += [{"Authorization": header} for header in odd]
    async with (
        exporter(config) as url,
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=certificates.context())
        ) as session,
    ):
        assert url.startswith("https://")
        for headers in wrong:
            for page in PAGES:
                async with session.get(url + page, headers=headers) as answer:
                    assert answer.status == 401
                    assert answer.headers["WWW-Authenticate"].startswith("Basic ")
                    assert "streamer_" not in await answer.text()
            async with session.get(f"{url}/healthz", headers=headers) as answer:
                assert (answer.status, await answer.text()) == (200, "ok\n")
        for page in PAGES[:3]:
            async with session.get(url + page, headers=right) as answer:
                assert answer.status == 200
        async with session.get(f"{url}/nothing-here", headers=right) as answer:
            assert answer.status == 404


async def test_only_tls_is_spoken(config: Path, certificates: Certificates) -> None:
    async with exporter(config) as url, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{url}/healthz")  # the system does not know this authority
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http{url.removeprefix('https')}/healthz")


async def test_prometheus_scrapes_it(config: Path, certificates: Certificates) -> None:
    prometheus = program("Prometheus", "prometheus")
    folder, port = config.parent, free_port()
    async with exporter(config) as url, aiohttp.ClientSession() as session:
        target = url.removeprefix("https://")
        (folder / "prometheus.yml").write_text(f"""
global: {{ scrape_interval: 500ms }}
scrape_configs:
  - job_name: streamer
    scheme: https
    basic_auth: {{ username: {USER}, password_file: {folder / "password"} }}
    tls_config: {{ ca_file: {certificates.ca} }}
    static_configs: [{{ targets: ["{target}"] }}]
  - job_name: nobody
    scheme: https
    tls_config: {{ ca_file: {certificates.ca} }}
    static_configs: [{{ targets: ["{target}"] }}]
""")
        process = await asyncio.create_subprocess_exec(
            prometheus,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address={HOST}:{port}",
            stderr=subprocess.DEVNULL,
        )

        async def value(query: str) -> str | None:
            api = f"http://{HOST}:{port}/api/v1/query"
            try:
                async with session.get(api, params={"query": query}) as answer:
                    found = (await answer.json())["data"]["result"]
            except (aiohttp.ClientError, KeyError):
                return None
            return str(found[0]["value"][1]) if found else None

        try:
            await until(lambda: value('up{job="streamer"} == 1'), "Prometheus scrapes")
            assert float(await value("sum(streamer_impressions_total)") or 0) > 0
            await until(lambda: value('up{job="nobody"} == 0'), "Prometheus without password fails")
        finally:
            process.terminate()
            await process.wait()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tls_certfile": "/no/file"}, "exporter.tls_certfile: No such file"),
        ({"tls_certfile": __file__, "tls_keyfile": None}, "cannot use exporter.tls_certfile"),
        ({"tls_certfile": None}, "exporter.tls_keyfile is set without exporter.tls_certfile"),
        (
            {"password_file": "/no/file"},
            "cannot read exporter.password_file: No such file or directory; at /no/file",
        ),
        ({"password_file": "/dev/null"}, "exporter.password_file is an empty file; at /dev/null"),
        ({"password_file": None}, "exporter.username needs exactly one of"),
        ({"username": None}, "exporter.username needs exactly one of"),
        ({"password": "exporter-secret"}, "exporter.username needs exactly one of"),
        ({"username": "a:b"}, "no colon"),
    ],
)
def test_settings_that_cannot_be_used(
    change: dict[str, str | None], words: str, certificates: Certificates, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("exporter-secret")
    right = {
        "tls_certfile": str(certificates.server.cert),
        "tls_keyfile": str(certificates.server.key),
        "username": USER,
        "password_file": str(tmp_path / "password"),
    }
    exporter = {k: v for k, v in {**right, **change}.items() if v is not None}
    with pytest.raises(SettingsError) as error:
        use({"exporter": exporter})
    assert words in str(error.value)
    assert "exporter-secret" not in str(error.value)


def use(document: dict[str, Any]) -> None:
    exporter = parse(document).exporter
    guards(exporter)
    tls_context(exporter)


def test_export_refuses_them_in_one_line(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "streamer.toml"
    path.write_text('[exporter]\ntls_certfile = "/no/file"\n')
    ended = command("export", "-c", path)
    assert (ended.code, ended.out) == (2, "")
    assert "exporter.tls_certfile" in ended.line
