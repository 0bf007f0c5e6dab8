"""docker-compose.yml: valid by the Compose specification, pinned, closed, and in order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.compose import FILE, ROOT, in_order, load, services
from tests.support.servers import KAFKA_VERSION

NAMES = sorted(services())
ONE_SHOT = "topics"
SECRET = re.compile(r"password|secret|token|credential", re.IGNORECASE)


def by_the_specification(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run([*command, str(path)], check=False, capture_output=True, text=True)


def test_it_is_valid_by_the_compose_specification(tmp_path: Path) -> None:
    done = by_the_specification(FILE)
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(FILE.read_text().replace("retries: 24", "retry: 24"))
    assert by_the_specification(broken).returncode == 1


@pytest.mark.parametrize("name", NAMES)
def test_images_have_whole_versions(name: str) -> None:
    image, at, digest = services()[name]["image"].partition("@")
    assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+(-[a-z]+)?", image), image
    if not image.startswith("streamer:"):  # which is built here
        assert at, f"{image} may be another one tomorrow"
        assert re.fullmatch("sha256:[0-9a-f]{64}", digest)


def test_kafka_is_what_the_tests_run_and_streamer_is_this_version() -> None:
    found = services()
    assert found["kafka"]["image"].startswith(f"apache/kafka:{KAFKA_VERSION}@")
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert found["worker"]["image"] == f"streamer:{version[1]}"


@pytest.mark.parametrize("name", [n for n in NAMES if n != ONE_SHOT])
def test_every_service_has_a_health_check_and_comes_back(name: str) -> None:
    service = services()[name]
    check = service["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert {"interval", "timeout", "retries", "start_period"} <= set(check)
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", [n for n in NAMES if n != ONE_SHOT])
def test_health_checks_pass_on_a_loaded_machine(name: str) -> None:
    check = services()[name]["healthcheck"]
    timeout, interval = (int(check[key].removesuffix("s")) for key in ("timeout", "interval"))
    assert timeout >= 10
    assert interval * check["retries"] >= 60


@pytest.mark.parametrize("name", NAMES)
def test_what_is_needed_is_waited_for(name: str) -> None:
    for needed, wait in services()[name].get("depends_on", {}).items():
        done = {ONE_SHOT: "completed_successfully", "alertmanager": "started"}.get(
            needed, "healthy"
        )
        assert wait == {"condition": f"service_{done}"}
    if name not in ("kafka", "redis", "alertmanager"):
        assert services()[name]["depends_on"]


def test_the_order_is_that_of_the_dependencies() -> None:
    order = in_order(services())
    assert order.index("kafka") < order.index("topics") < order.index("worker")
    assert order.index("exporter") < order.index("prometheus") < order.index("grafana")


def test_some_ports_are_published() -> None:
    assert any(service.get("ports") for service in services().values())


@pytest.mark.parametrize("name", NAMES)
def test_ports_are_published_on_this_machine_only(name: str) -> None:
    for port in services()[name].get("ports", []):
        assert port.startswith("127.0.0.1:"), port


@pytest.mark.parametrize("name", NAMES)
def test_containers_may_little(name: str) -> None:
    service = services()[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")
    assert service["pids_limit"] == 512
    if name != "kafka":  # its start script writes its settings beside its program
        assert service["read_only"] is True
        assert re.fullmatch(r"/tmp:size=\d+m", *service["tmpfs"])


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_bounded(name: str) -> None:
    assert re.fullmatch(r"\d+[mg]", services()[name]["mem_limit"])


def test_one_service_builds_the_image_and_the_others_need_it() -> None:
    """With two builders of one tag the second fails on an engine with the containerd store."""
    ours = {n: s for n, s in services().items() if s["image"].startswith("streamer:")}
    assert len(ours) == 5
    (builder,) = [name for name, service in ours.items() if "build" in service]
    assert (ours[builder]["build"], ours[builder]["pull_policy"]) == (".", "missing")
    for name in ours.keys() - {builder}:
        assert ours[name]["pull_policy"] == "never", name
        assert builder in ours[name]["depends_on"], name


@pytest.mark.parametrize("name", NAMES)
def test_health_checks_ask_by_address(name: str) -> None:
    """`localhost` may be ::1, where nothing listens."""
    assert "localhost" not in str(services()[name].get("healthcheck", ""))


def test_there_is_no_secret_in_it() -> None:
    assert any(service.get("environment") for service in services().values())
    for name, service in services().items():
        for key, value in service.get("environment", {}).items():
            assert not SECRET.search(key), f"{name}: {key}"
            assert not re.search(r"//[^/@\s]*:[^/@\s]*@", str(value)), f"{name}: {key}"


def test_what_is_mounted_exists_and_volumes_are_declared() -> None:
    declared = set(load(FILE)["volumes"])
    used = set()
    for service in services().values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (ROOT / source).is_dir(), source
                assert volume.endswith(":ro"), volume
            else:
                used.add(source)
    assert used == declared


def test_grafana_is_provisioned_with_what_is_there() -> None:
    mounted = dict(reversed(v.split(":")[:2]) for v in services()["grafana"]["volumes"])
    folder = ROOT / mounted["/etc/grafana/provisioning"]
    (source,) = load(folder / "datasources" / "prometheus.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert (source["uid"], source["name"]) == ("prometheus", "Prometheus")  # as the pages choose
    (provider,) = load(folder / "dashboards" / "streamer.yml")["providers"]
    dashboards = ROOT / mounted[provider["options"]["path"]]
    home = services()["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(home).parent == Path(provider["options"]["path"])
    assert (dashboards / Path(home).name).exists()


def test_prometheus_sends_alerts_to_the_alertmanager() -> None:
    config: Any = load(ROOT / "grafana" / "prometheus" / "prometheus.yml")
    (receiver,) = config["alerting"]["alertmanagers"]
    assert receiver["static_configs"] == [{"targets": ["alertmanager:9093"]}]
    assert "--web.listen-address=0.0.0.0:9093" in services()["alertmanager"]["command"]


def test_prometheus_scrapes_the_exporter() -> None:
    config: Any = load(ROOT / "grafana" / "prometheus" / "prometheus.yml")
    (job,) = [job for job in config["scrape_configs"] if job["job_name"] == "streamer"]
    assert job["static_configs"] == [
        {"targets": ["exporter:8000"], "labels": {"system": "streamer"}}
    ]
    assert {"sample_limit", "body_size_limit", "label_limit", "target_limit"} <= set(job)
    assert "8000" in services()["exporter"]["command"]
