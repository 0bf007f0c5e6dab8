"""The Helm chart renders objects that Kubernetes' schemas accept, locked down as in Compose."""

from __future__ import annotations

import copy
import functools
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from streamer.cli import arguments
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import load, parse
from tests.support.compose import DOCKERFILE, ROOT, services
from tests.support.compose import load as load_yaml
from tests.support.required import program, require_package

FOLDER = ROOT / "deploy" / "streamer"
VALUES: dict[str, Any] = load_yaml(FOLDER / "values.yaml")
VERSIONS = ("1.31", "1.37")
"""Kubernetes' versions whose schemas the manifests fit: each that was between them is as strict."""
EVERYTHING = (
    *("serviceMonitor.enabled=true", "autoscaling.enabled=true", "exporter.tls=true"),
    *("redis.worker=streamer-worker", "redis.exporter=streamer-exporter"),
    *("secrets.worker.values.redis-password=w", "secrets.exporter.values.redis-password=e"),
    "image.pullSecrets[0].name=registry",
)
OTHERS = ("ServiceMonitor", "ScaledObject")
"""Kinds that operators bring: no schema of Kubernetes."""
KINDS = (
    *("ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "Deployment", "StatefulSet"),
    *("Secret", "Job"),
)


@functools.cache
def rendered(*values: str, name: str = "streamer") -> list[dict[str, Any]]:
    """What the chart makes of some values."""
    words = ["template", name, str(FOLDER), "--namespace", "streamer", "--kube-version", "1.31"]
    words += [word for value in values for word in ("--set", value)]
    helm = program("Helm", "helm")
    done = subprocess.run([helm, *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [document for document in YAML(typ="safe").load_all(done.stdout) if document]


def workloads(*values: str) -> list[dict[str, Any]]:
    return [d for d in rendered(*values) if d["kind"] in ("Deployment", "StatefulSet")]


def found(kind: str, name: str, *values: str) -> dict[str, Any]:
    documents = rendered(*values)
    (one,) = (d for d in documents if (d["kind"], d["metadata"]["name"]) == (kind, name))
    return one


def pod(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


def container(workload: dict[str, Any]) -> dict[str, Any]:
    (one,) = pod(workload)["containers"]
    return dict(one)


def validate(document: dict[str, Any], version: str) -> None:
    require_package("kubernetes_validate", extra="test")
    import kubernetes_validate

    kubernetes_validate.validate(document, version, strict=True)


def test_helm_finds_nothing_wrong() -> None:
    helm = program("Helm", "helm")
    words = [helm, "lint", "--strict", str(FOLDER)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["defaults", "everything"])
def test_manifests_fit_the_schemas(values: tuple[str, ...], version: str) -> None:
    documents = rendered(*values)
    kinds = {document["kind"] for document in documents}
    assert kinds >= {*KINDS} - (set() if values else {"Secret"})
    assert kinds.isdisjoint(OTHERS) == (not values)
    for document in documents:
        if document["kind"] not in OTHERS:
            validate(document, version)


def test_a_field_that_there_is_not_is_refused() -> None:
    broken = copy.deepcopy(found("StatefulSet", "streamer-worker"))
    container(broken)["readinessProbe"]["periodSecond"] = 15
    with pytest.raises(Exception, match="periodSecond"):
        validate(broken, VERSIONS[-1])


def test_two_releases_share_nothing() -> None:
    one, two = rendered(), rendered(name="other")
    names = [{(d["kind"], d["metadata"]["name"]) for d in documents} for documents in (one, two)]
    assert names[0].isdisjoint(names[1])


def test_the_image_is_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {container(w)["image"] for w in workloads()} == {f"streamer:{project['version']}"}
    own = workloads("image.repository=registry/x", "image.tag=1")
    assert {container(w)["image"] for w in own} == {"registry/x:1"}


def uncommented(text: str) -> str:
    """The settings with those that stand in comments."""
    return re.sub(r'^# (?=\w+ = ")', "", text, flags=re.MULTILINE)


def test_the_settings_are_valid_also_those_in_comments(tmp_path: Path) -> None:
    text = found("ConfigMap", "streamer-settings")["data"]["streamer.toml"]
    (tmp_path / "streamer.toml").write_text(text)
    Catalogue(load(tmp_path / "streamer.toml", {}))
    everything = tomllib.loads(uncommented(text))
    for section in everything.values():
        for key in ("password_file", "sasl_password_file"):
            section.pop(key, None)  # they are read at once
    everything["kafka"]["sasl_password"] = everything["exporter"]["password"] = "x"
    parse(everything)


def test_a_change_of_settings_replaces_the_pods(tmp_path: Path) -> None:
    own = workloads("settings=[redis]")
    for before, after in zip(workloads(), own, strict=True):
        assert before["spec"]["template"] != after["spec"]["template"]
    assert (
        "[redis]"
        in found("ConfigMap", "streamer-settings", "settings=[redis]")["data"]["streamer.toml"]
    )


def test_settings_are_applied_before_any_pod_is_replaced() -> None:
    values = ("settings=[redis]", "acceptDrop[0]=device", "redis.worker=streamer-worker")
    job, settings = (found(kind, "streamer-apply", *values) for kind in ("Job", "ConfigMap"))
    assert "[redis]" in settings["data"]["streamer.toml"]
    hooks = [of["metadata"]["annotations"]["helm.sh/hook"] for of in (job, settings)]
    assert hooks == ["pre-upgrade,pre-rollback"] * 2
    file = "/etc/streamer/streamer.toml"
    assert container(job)["args"] == ["apply", file, "--accept-drop=device"]
    arguments.parse(container(job)["args"])
    volumes = {v["name"]: v for v in pod(job)["volumes"]}
    assert volumes["settings"]["configMap"]["name"] == "streamer-apply"
    assert volumes["secrets"]["secret"]["secretName"] == "streamer-worker"
    env = {each["name"]: each["value"] for each in container(job)["env"]}
    assert env["STREAMER_REDIS__USERNAME"] == "streamer-worker"
    worker = found("StatefulSet", "streamer-worker", *values)
    assert pod(job)["securityContext"] == pod(worker)["securityContext"]
    assert container(job)["securityContext"] == container(worker)["securityContext"]


def test_each_role_has_a_user_and_a_secret_of_its_own() -> None:
    for role in ("worker", "exporter"):
        kind = "StatefulSet" if role == "worker" else "Deployment"
        workload = found(kind, f"streamer-{role}", *EVERYTHING)
        env = {each["name"]: each["value"] for each in container(workload)["env"]}
        assert env["STREAMER_REDIS__USERNAME"] == f"streamer-{role}"
        assert env["STREAMER_REDIS__PASSWORD_FILE"] == "/run/secrets/streamer/redis-password"
        volumes = {v["name"]: v for v in pod(workload)["volumes"]}
        assert volumes["secrets"]["secret"]["secretName"] == f"streamer-{role}"
        secret = found("Secret", f"streamer-{role}", *EVERYTHING)
        assert secret["stringData"] == {"redis-password": role[0]}
        given = found(kind, f"streamer-{role}", f"secrets.{role}.existing=mine")
        assert pod(given)["volumes"][1]["secret"]["secretName"] == "mine"
    assert not [d for d in rendered() if d["kind"] == "Secret"]
    assert "STREAMER_REDIS__USERNAME" not in str(workloads())


def test_containers_run_a_command_of_ours_with_the_settings() -> None:
    for workload in workloads():
        args = container(workload)["args"]
        arguments.parser().parse_args(args)
        place = args[args.index("-c") + 1]
        assert {"name": "STREAMER_CONFIG", "value": place} in container(workload)["env"]
        mounts = {m["mountPath"]: m["name"] for m in container(workload)["volumeMounts"]}
        volumes = {v["name"]: v for v in pod(workload)["volumes"]}
        assert set(mounts.values()) == set(volumes)
        folder, _, name = place.rpartition("/")
        assert name in found("ConfigMap", "streamer-settings")["data"]
        assert volumes[mounts[folder]]["configMap"]["name"] == "streamer-settings"
        assert "emptyDir" in volumes[mounts["/tmp"]]


def test_containers_may_little() -> None:
    (user,) = re.findall(r"^USER (\d+):", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    for workload in workloads():
        context = pod(workload)["securityContext"]
        assert context["runAsNonRoot"] is True
        assert {context["runAsUser"], context["runAsGroup"], context["fsGroup"]} == {int(user)}
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod(workload)["automountServiceAccountToken"] is False
        assert pod(workload)["enableServiceLinks"] is False  # a Service's variables are no settings
        assert container(workload)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container(workload)["resources"]["limits"]["memory"]


def probes(workload: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in container(workload).items():
        if name.endswith("Probe"):
            yield name, value


def test_it_is_as_in_compose() -> None:
    worker, compose = found("StatefulSet", "streamer-worker"), services()
    _, *check = compose["worker"]["healthcheck"]["test"]
    assert [p["exec"]["command"] for _, p in probes(worker)] == [check]
    seconds = pod(worker)["terminationGracePeriodSeconds"]
    assert f"{seconds}s" == compose["worker"]["stop_grace_period"]
    exporter = found("Deployment", "streamer-exporter")
    assert compose["exporter"]["healthcheck"]["test"][-1].endswith("/healthz")
    asked = [p["httpGet"] for _, p in probes(exporter)]
    assert asked == [{"path": "/healthz", "port": "http", "scheme": "HTTP"}] * 3
    by_tls = found("Deployment", "streamer-exporter", "exporter.tls=true")
    assert {p["httpGet"]["scheme"] for _, p in probes(by_tls)} == {"HTTPS"}
    for workload in workloads():
        role = workload["metadata"]["name"].removeprefix("streamer-")
        assert compose[role]["command"][0] == container(workload)["args"][0]


def test_workers_are_not_restarted_for_waiting() -> None:
    worker = found("StatefulSet", "streamer-worker")
    assert [name for name, _ in probes(worker)] == ["readinessProbe"]
    assert "cpu" not in container(worker)["resources"]["limits"]


def test_services_budgets_and_policies_select_the_pods() -> None:
    labels = [w["spec"]["template"]["metadata"]["labels"] for w in workloads()]
    for workload in workloads():
        name, own = workload["metadata"]["name"], workload["spec"]["template"]["metadata"]["labels"]
        assert workload["spec"]["selector"]["matchLabels"] == own
        budget = found("PodDisruptionBudget", name)["spec"]
        assert budget["selector"]["matchLabels"] == own
        assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        assert workload["spec"]["replicas"] > budget["maxUnavailable"]
        policy = found("NetworkPolicy", name)["spec"]
        assert policy["podSelector"]["matchLabels"] == own
        assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {
            *(53, 9092, 6379)
        }
    for document in rendered():
        if document["kind"] == "Service":
            assert document["spec"]["selector"] in labels
    assert found("NetworkPolicy", "streamer-worker")["spec"]["ingress"] == []
    assert not [d for d in rendered("networkPolicy.enabled=false") if d["kind"] == "NetworkPolicy"]
    (port,) = found("Service", "streamer")["spec"]["ports"]
    ports = container(found("Deployment", "streamer-exporter"))["ports"]
    assert port["targetPort"] in {p["name"] for p in ports}
    settings = load(str(FOLDER / "streamer.toml"), {})
    assert {p["containerPort"] for p in ports} == {settings.exporter.port} == {port["port"]}
    assert "streamer" in settings.exporter.hosts


def test_workers_are_scaled_by_lag_or_by_hand() -> None:
    assert found("StatefulSet", "streamer-worker")["spec"]["replicas"] == 2
    scaled = found("ScaledObject", "streamer-worker", *EVERYTHING)["spec"]
    assert scaled["scaleTargetRef"] == {"kind": "StatefulSet", "name": "streamer-worker"}
    (trigger,) = scaled["triggers"]
    assert "streamer_consumer_lag_records" in trigger["metadata"]["query"]
    assert "replicas" not in found("StatefulSet", "streamer-worker", *EVERYTHING)["spec"]


def test_the_monitor_scrapes_as_prometheus_yml_does() -> None:
    monitor = found("ServiceMonitor", "streamer", *EVERYTHING)
    scrape, _ = load_yaml(ROOT / "grafana" / "prometheus" / "prometheus.yml")["scrape_configs"]
    service = found("Service", "streamer")
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == scrape["job_name"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {p["name"] for p in service["spec"]["ports"]}
    for ours, theirs in (("sampleLimit", "sample_limit"), ("bodySizeLimit", "body_size_limit"),
                         ("labelLimit", "label_limit"),
                         ("labelNameLengthLimit", "label_name_length_limit"),
                         ("labelValueLengthLimit", "label_value_length_limit"),
                         ("targetLimit", "target_limit")):  # fmt: skip
        assert monitor["spec"][ours] == scrape[theirs], ours
