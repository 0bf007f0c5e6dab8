"""deploy/: valid by the schemas of Kubernetes' API, closed, and as docker-compose.yml has it."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from streamer.cli import arguments
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import load, parse
from tests.support.compose import DOCKERFILE, ROOT, services
from tests.support.compose import load as load_yaml
from tests.support.required import require_package

FOLDER = ROOT / "deploy"
KUSTOMIZATION: dict[str, Any] = load_yaml(FOLDER / "kustomization.yaml")
VERSIONS = ("1.31", "1.37")
"""Kubernetes' versions whose schemas the manifests fit: each that was between them is as strict."""
OPTIONAL = "servicemonitor.yaml"
PASSWORDS = {"kafka-password", "redis-password", "exporter-password"}


def documents(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return list(YAML(typ="safe").load_all(text))


RESOURCES = [d for name in KUSTOMIZATION["resources"] for d in documents(name)]
WORKLOADS = [d for d in RESOURCES if d["kind"] in ("Deployment", "StatefulSet")]


def names(values: list[dict[str, Any]]) -> list[str]:
    return [f"{d['kind']}-{d['metadata']['name']}" for d in values]


def found(kind: str, name: str) -> dict[str, Any]:
    (one,) = (d for d in RESOURCES if (d["kind"], d["metadata"]["name"]) == (kind, name))
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("document", RESOURCES, ids=names(RESOURCES))
def test_manifests_fit_the_schemas(document: dict[str, Any], version: str) -> None:
    validate(document, version)


def test_a_field_that_there_is_not_is_refused() -> None:
    broken = copy.deepcopy(found("StatefulSet", "streamer-worker"))
    container(broken)["readinessProbe"]["periodSecond"] = 15
    with pytest.raises(Exception, match="periodSecond"):
        validate(broken, VERSIONS[-1])


def test_the_kustomization_names_every_file() -> None:
    given = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml", OPTIONAL}
    assert set(KUSTOMIZATION["resources"]) == given
    (settings,) = KUSTOMIZATION["configMapGenerator"]
    assert settings == {"name": "streamer", "files": ["streamer.toml"]}


def test_the_image_is_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (image,) = KUSTOMIZATION["images"]
    assert image["newTag"] == project["version"]
    assert {container(w)["image"] for w in WORKLOADS} == {image["name"]}


def uncommented(text: str) -> str:
    """The settings with those that stand in comments."""
    return re.sub(r'^# (?=\w+ = ")', "", text, flags=re.MULTILINE)


def test_the_settings_are_valid_also_those_in_comments() -> None:
    text = (FOLDER / "streamer.toml").read_text(encoding="utf-8")
    Catalogue(load(str(FOLDER / "streamer.toml"), {}))
    everything = tomllib.loads(uncommented(text))
    files = set(re.findall(r'password_file = "/run/secrets/streamer/(.+)"', text))
    assert files == PASSWORDS
    for section in everything.values():
        for key in ("password_file", "sasl_password_file"):
            section.pop(key, None)  # they are read at once
    everything["kafka"]["sasl_password"] = everything["exporter"]["password"] = "x"
    everything["redis"]["password"] = "x"
    parse(everything)


def test_the_secret_holds_placeholders_only() -> None:
    secret = found("Secret", "streamer")
    assert set(secret["stringData"]) == PASSWORDS
    assert set(secret["stringData"].values()) == {"replace-me"}


@pytest.mark.parametrize("workload", WORKLOADS, ids=names(WORKLOADS))
def test_containers_run_a_command_of_ours_with_the_settings(workload: dict[str, Any]) -> None:
    args = container(workload)["args"]
    arguments.parser().parse_args(args)
    place = args[args.index("-c") + 1]
    assert {"name": "STREAMER_CONFIG", "value": place} in container(workload)["env"]
    mounts = {m["mountPath"]: m["name"] for m in container(workload)["volumeMounts"]}
    volumes = {v["name"]: v for v in pod(workload)["volumes"]}
    assert set(mounts.values()) == set(volumes)
    folder, _, name = place.rpartition("/")
    assert name == "streamer.toml"
    assert volumes[mounts[folder]]["configMap"]["name"] == "streamer"
    assert volumes[mounts["/run/secrets/streamer"]]["secret"]["secretName"] == "streamer"
    assert "emptyDir" in volumes[mounts["/tmp"]]


@pytest.mark.parametrize("workload", WORKLOADS, ids=names(WORKLOADS))
def test_containers_may_little(workload: dict[str, Any]) -> None:
    (user,) = re.findall(r"^USER (\d+):", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
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


def probes(workload: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for name, value in container(workload).items():
        if name.endswith("Probe"):
            yield name, value["exec"]["command"]


@pytest.mark.parametrize(
    ("kind", "name", "service"),
    [
        ("StatefulSet", "streamer-worker", "worker"),
        ("Deployment", "streamer-exporter", "exporter"),
    ],
)
def test_it_is_as_in_compose(kind: str, name: str, service: str) -> None:
    workload, compose = found(kind, name), services()[service]
    _, *check = compose["healthcheck"]["test"]
    assert {tuple(command) for _, command in probes(workload)} == {tuple(check)}
    assert compose["command"][0] == container(workload)["args"][0]
    if "stop_grace_period" in compose:
        seconds = pod(workload)["terminationGracePeriodSeconds"]
        assert f"{seconds}s" == compose["stop_grace_period"]


def test_workers_are_not_restarted_for_waiting() -> None:
    worker = found("StatefulSet", "streamer-worker")
    assert [name for name, _ in probes(worker)] == ["readinessProbe"]
    assert "cpu" not in container(worker)["resources"]["limits"]


def test_services_and_budgets_select_the_pods() -> None:
    labels = [w["spec"]["template"]["metadata"]["labels"] for w in WORKLOADS]
    for workload in WORKLOADS:
        own = workload["spec"]["template"]["metadata"]["labels"]
        assert workload["spec"]["selector"]["matchLabels"] == own
        budget = found("PodDisruptionBudget", workload["metadata"]["name"])
        assert budget["spec"]["selector"]["matchLabels"] == own
        assert workload["spec"]["replicas"] > budget["spec"]["maxUnavailable"]
    for document in RESOURCES:
        if document["kind"] == "Service":
            assert document["spec"]["selector"] in labels
    (port,) = found("Service", "streamer")["spec"]["ports"]
    ports = container(found("Deployment", "streamer-exporter"))["ports"]
    assert port["targetPort"] in {p["name"] for p in ports}
    settings = load(str(FOLDER / "streamer.toml"), {})
    assert {p["containerPort"] for p in ports} == {settings.exporter.port} == {port["port"]}
    assert "streamer" in settings.exporter.hosts


def test_the_monitor_scrapes_as_prometheus_yml_does() -> None:
    (monitor,) = documents(OPTIONAL)
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
