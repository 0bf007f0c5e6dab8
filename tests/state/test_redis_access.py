"""TLS and ACL users of a real Redis: what works with the documented rights, and each refusal."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis

from streamer.cli import main
from streamer.errors import StoreAccessError, StoreError
from streamer.settings.load import parse
from streamer.settings.model import Redis, Settings
from streamer.state.redis.store import RedisStore
from streamer.state.store import Commit
from streamer.state.worker_report import WorkerReport
from streamer.testing.embedded import HOST, EmbeddedRedis, free_port
from tests.support.agreement import DOCUMENTS, log_records, to_log
from tests.support.clusters import Cluster
from tests.support.fixtures import COMMAND_SECONDS, LEAVES_OPEN, Command, MakeTopics
from tests.support.lanes import long
from tests.support.secured import Certificates, secured_redis
from tests.support.workers import (
    as_toml,
    bench,
    document_of,
    ends_of,
    produce,
    until,
)

pytestmark = long

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "secure-it.md"
PASSWORDS = {
    "streamer-worker": "redis-worker-password",
    "streamer-exporter": "redis-exporter-password",
}
PREFIX = "streamer"


def documented_acl() -> dict[str, str]:
    """User → the rights that docs/how-to/secure-it.md gives it."""
    found = re.findall(r"^user (\S+) on >\S+ (.*)$", PAGE.read_text(), re.MULTILINE)
    return dict(found)


def acl_file() -> str:
    lines = [f"user {n} on >{PASSWORDS[n]} {rights}" for n, rights in documented_acl().items()]
    return "\n".join([*lines, "user default on >redis-admin-password +@all ~* &*", ""])


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[EmbeddedRedis]:
    with secured_redis(tmp_path_factory.mktemp("redis"), certificates, acl_file()) as running:
        yield running


@pytest.fixture
def admin(server: EmbeddedRedis, certificates: Certificates) -> Iterator[Any]:
    """A client that may everything; the prefix is empty before."""
    with contextlib.closing(
        redis.Redis.from_url(
            server.url, password="redis-admin-password", ssl_ca_certs=str(certificates.ca)
        )
    ) as client:
        client.flushall()
        client.config_resetstat()
        client.execute_command("ACL LOG RESET")  # type: ignore[no-untyped-call]
        yield client


def access(made: Certificates, folder: Path, user: str = "streamer-worker") -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{user}-password"
    path.write_text(PASSWORDS[user] + "\n")
    return {"username": user, "password_file": str(path), "ssl_ca_certs": str(made.ca)}


def refused_commands(admin: Any) -> list[str]:
    """What users were refused, but for the library's word about itself."""
    log = admin.execute_command("ACL LOG")
    found = [str(entry.get("object", entry)) for entry in log]
    return [name for name in found if not name.startswith("client|setinfo")]


async def test_worker_and_exporter_work_with_the_documented_rights(
    kafka: str,
    topics: MakeTopics,
    server: EmbeddedRedis,
    admin: Any,
    certificates: Certificates,
    tmp_path: Path,
    command: Command,
) -> None:
    made_topics = topics(partitions=2)
    records = log_records(11, "few values", 3000, 2)
    log = to_log(records)
    document = document_of(kafka, made_topics, server.url, PREFIX, DOCUMENTS["few values"])
    document["redis"].update(access(certificates, tmp_path))
    async with bench(tmp_path / "bench", document) as made:
        await produce(kafka, made_topics, log)
        made.start_worker()
        await made.settle(ends_of(log))
        checked = await asyncio.to_thread(command, "check", "-c", made.config)
        assert "error  Redis" not in checked.out, checked.out
        await made.stop_workers()
        made.start_worker()  # recovers what is stored, and sweeps
        await made.store.now_ms()
        assert await made.store.lead("a", 60_000, {})
        assert not await made.store.lead("b", 60_000, {})
        assert await made.store.lead("a", 0, {})
        await made.settle(ends_of(log))
        await until(made.store.reports, "the worker has reported, and tidied", made.said)
        stale = WorkerReport("gone", {0: "owned"})
        await made.store.report(stale)
        age_report(admin, "gone")
        document["redis"].update(access(certificates, tmp_path, "streamer-exporter"))
        reader = tmp_path / "reader.toml"
        reader.write_text(as_toml(document))
        async with exporter(reader) as (url, said):
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                text = await answer.text()
            assert answer.status == 200, text
            assert "streamer_impressions_total{" in text
            assert said() == ""
        inspected = await asyncio.to_thread(command, "inspect", "-c", reader)
        assert (inspected.code, inspected.err) == (0, "")
        words = ("history", "-c", reader, "--openmetrics", tmp_path / "history")
        written = await asyncio.to_thread(command, *words)
        assert (written.code, written.err) == (0, "")
    assert admin.hexists(f"{PREFIX}:workers", "gone")  # a reader leaves it for a worker to tidy
    assert [x for x in refused_commands(admin) if x != "hdel"] == []
    used = {name.removeprefix("cmdstat_") for name in admin.info("commandstats")}
    for user, rights in documented_acl().items():
        unused = set(re.findall(r"\+(\S+)", rights)) - used
        assert unused == set(), f"{user} has more than it needs"


def age_report(admin: Any, worker: str) -> None:
    """As if this report were of the day before."""
    data = admin.hget(f"{PREFIX}:workers", worker)
    admin.hset(f"{PREFIX}:workers", worker, re.sub(rb"^\[\d+", b"[1000", data))


@contextlib.asynccontextmanager
async def exporter(config: Path) -> Any:
    """URL of /metrics of ``streamer export`` as a process, and what it says on stderr."""
    errors = config.with_suffix(".stderr")
    with errors.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "streamer",
                "export",
                "-c",
                str(config),
                "--port",
                "0",
            ),
            stdout=subprocess.PIPE,
            stderr=file,
        )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), COMMAND_SECONDS)
        assert line, errors.read_text()
        yield line.decode().split()[-1], errors.read_text
    finally:
        process.terminate()
        await process.communicate()


REFUSALS = {
    "wrong password": "invalid username-password pair",
    "unknown user": "invalid username-password pair",
    "no password": "already authenticated",
    "untrusted authority": "CERTIFICATE_VERIFY_FAILED",
    "other prefix": "no permissions to access",
}


def refused(what: str, url: str, made: Certificates, folder: Path) -> dict[str, Any]:
    right = {"url": url, "prefix": PREFIX, **access(made, folder)}
    changes: dict[str, dict[str, Any]] = {
        "wrong password": {"password_file": None, "password": "redis-wrong-password"},
        "unknown user": {"username": "nobody"},
        "no password": {"username": None, "password_file": None},
        "untrusted authority": {"ssl_ca_certs": str(made.other_ca)},
        "other prefix": {"prefix": "other"},
    }
    return {k: v for k, v in {**right, **changes[what]}.items() if v is not None}


@LEAVES_OPEN
@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_is_one_line_and_ends(
    what: str,
    kafka: str,
    server: EmbeddedRedis,
    certificates: Certificates,
    tmp_path: Path,
    command: Command,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = {
        "kafka": {"brokers": kafka},
        "redis": refused(what, server.url, certificates, tmp_path),
    }
    config = tmp_path / "streamer.toml"
    config.write_text(as_toml(document))
    said = command("export", "-c", config, "--port", "0")
    assert (said.code, said.out) == (1, "")
    lines = [said.line]
    for name in ("run", "inspect"):
        assert main.main([name, "-c", str(config)]) == 1
        lines.append(capsys.readouterr().err)
    assert main.main(["check", "-c", str(config)]) == 1
    found = capsys.readouterr()
    assert found.err == ""
    lines += [line for line in found.out.splitlines() if line.startswith("error  Redis")]
    assert len(lines) == 4
    for line in lines:
        assert REFUSALS[what].lower() in line.lower()
        assert f"at {HOST}:{server.port}" in line
        assert line.strip().count("\n") == 0
        assert "-password\n" not in line
    gc.collect()


def test_a_reader_cannot_run_workers(
    kafka: str, server: EmbeddedRedis, certificates: Certificates, tmp_path: Path, command: Command
) -> None:
    rights = access(certificates, tmp_path, "streamer-exporter")
    document = {"kafka": {"brokers": kafka}, "redis": {"url": server.url, **rights}}
    config = tmp_path / "streamer.toml"
    config.write_text(as_toml(document))
    ended = command("run", "-c", config)
    assert ended.code == 1
    assert "has no permissions to run the 'info' command" in ended.line
    assert "docs/how-to/secure-it.md" in ended.line


async def test_client_certificates(certificates: Certificates, tmp_path: Path) -> None:
    demanding = {"tls-auth-clients": "yes"}
    acl = "user default on nopass +@all ~* &*\n"
    with secured_redis(tmp_path / "redis", certificates, acl, **demanding) as running:
        pair = certificates.client
        right = {
            "url": running.url,
            "ssl_ca_certs": str(certificates.ca),
            "ssl_certfile": str(pair.cert),
            "ssl_keyfile": str(pair.key),
        }
        store = RedisStore(redis_settings(right).redis)
        await store.check()
        await store.close()
        del right["ssl_certfile"], right["ssl_keyfile"]
        store = RedisStore(redis_settings(right).redis)
        with pytest.raises(StoreError, match="cannot use Redis") as error:
            await store.check()
        assert "\n" not in str(error.value)
        await store.close()


async def test_a_cluster_with_tls(certificates: Certificates, tmp_path: Path) -> None:
    options = {"cluster-enabled": "yes", "cluster-port": str(free_port()), "tls-cluster": "yes"}
    acl = "user default on >redis-admin-password +@all ~* &*\n"
    with secured_redis(tmp_path / "redis", certificates, acl, **options) as running:
        trusted = {"ssl_ca_certs": str(certificates.ca)}
        with contextlib.closing(
            redis.Redis.from_url(running.url, password="redis-admin-password", **trusted)
        ) as admin:
            admin.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)  # type: ignore[no-untyped-call]

            async def is_well() -> bool:
                info: Any = admin.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]
                return bool(info["cluster_state"] == "ok")

            await until(is_well, "the cluster is well")
        right = {"url": running.url, "cluster": True, "password": "redis-admin-password"}
        store = RedisStore(redis_settings({**right, **trusted}).redis)
        await store.check()
        await store.try_writing()
        assert await store.now_ms() > 0
        await store.close()
        for wrong in ({"ssl_ca_certs": str(certificates.other_ca)}, {**trusted, "password": "x"}):
            store = RedisStore(redis_settings({**right, **wrong}).redis)
            with pytest.raises(StoreAccessError):
                await store.check()
            await store.close()


def redis_settings(redis: Mapping[str, Any]) -> Settings:
    return parse({"redis": dict(redis)})


async def test_the_documented_rights_on_a_cluster(tmp_path: Path) -> None:
    rights = documented_acl()["streamer-worker"]
    page = PAGE.read_text()
    more = re.search(r"On a\s+cluster .*?`((?:\+\S+ ?)+)`", page, re.DOTALL)
    assert more is not None
    with Cluster(tmp_path) as cluster:
        words = f"on >secret {rights} {more[1]}".split()
        for node in cluster.nodes:
            cluster.ask(node, "ACL", "SETUSER", "worker", *words)
        store = RedisStore(
            Redis(
                url=cluster.url, prefix=PREFIX, cluster=True, username="worker", password="secret"
            )
        )
        await store.check()
        await store.try_writing()
        await store.set_partitions(3)
        blobs = {f"b{number}": b"x" for number in range(9)}
        claims = {}
        for number in range(3):
            claims[number], _ = await store.claim(number)
            await store.commit(number, Commit(claims[number], b"", b"1", b"m", blobs))
        assert [position for _, position in await store.standing(range(3))] == [b"1"] * 3
        assert await store.blobs(2, list(blobs)) == [b"x"] * 9
        slot = cluster.slot_of("{2}")
        target = next(n for n in cluster.nodes if n is not cluster.master_of(slot))
        moved = await asyncio.to_thread(cluster.migrate, slot, target, lambda: None)
        assert moved > 3
        await store.commit(2, Commit(claims[2], b"1", b"2", b"m", {"c": b"y"}, list(blobs)))
        assert await store.blobs(2, ["c", "b1"]) == [b"y", None]
        await store.report(WorkerReport("w"))
        assert [t.worker for t in await store.reports()] == ["w"]
        await store.close()
        wrong = Redis(url=cluster.url, cluster=True, username="worker", password="wrong")
        store = RedisStore(wrong)
        with pytest.raises(StoreAccessError, match="look at redis"):
            await store.check()
        await store.close()
