"""The Helm chart renders objects that Kubernetes' schemas accept, locked down as in Compose."""

from __future__ import annotations

import copy
import functools
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from streamer.cli import arguments
from streamer.cli.main import main
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import load, parse
from tests.support.compose import DOCKERFILE, ROOT, services
from tests.support.compose import load as load_yaml
from tests.support.required import program, require_package

FOLDER = ROOT / "deploy" / "streamer"
VALUES: dict[str, Any] = load_yaml(FOLDER / "values.yaml")
VERSIONS = ("1.31", "1.37")
"""Kubernetes' versions whose schemas the manifests fit: each that was between them is as strict."""
POD = (
    *("pod.nodeSelector.disk=ssd", "pod.priorityClassName=high", "pod.annotations.team=ads"),
    *(
        "pod.labels.cost=ads",
        "pod.extraEnv[0].name=STREAMER_LOG__LEVEL",
        "pod.extraEnv[0].value=info",
    ),
    *("pod.tolerations[0].operator=Exists", "pod.affinity.podAntiAffinity.x=y"),
    *("pod.extraVolumes[0].name=ca", "pod.extraVolumes[0].configMap.name=ca"),
    *("pod.extraVolumeMounts[0].name=ca", "pod.extraVolumeMounts[0].mountPath=/ca"),
    "exporter.pod.nodeSelector.disk=hdd",
)
EVERYTHING = (
    *(each for each in POD if "podAntiAffinity" not in each),
    *("serviceAccount.create=true", "serviceAccount.annotations.role=arn", "system=shop"),
    *("ingress.enabled=true", "ingress.hosts[0]=a.example", "ingress.className=nginx"),
    *("ingress.tls[0].secretName=tls", "ingress.tls[0].hosts[0]=a.example"),
    *("httpRoute.enabled=true", "httpRoute.parentRefs[0].name=gateway"),
    *("httpRoute.hostnames[0]=a.example", "serviceMonitor.labels.release=stack"),
    *("serviceMonitor.enabled=true", "autoscaling.enabled=true", "exporter.tls=true"),
    *("redis.worker=streamer-worker", "redis.exporter=streamer-exporter"),
    *("secrets.worker.values.redis-password=w", "secrets.exporter.values.redis-password=e"),
    "image.pullSecrets[0].name=registry",
)
OTHERS = ("ServiceMonitor", "ScaledObject", "HTTPRoute", "PrometheusRule")
"""Kinds that operators bring: no schema of Kubernetes."""
KINDS = (
    *("ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "Deployment", "StatefulSet"),
    *("Secret", "Job", "Pod", "ServiceAccount", "Ingress"),
)


@functools.cache
def rendered(*values: str, name: str = "streamer") -> list[dict[str, Any]]:
    """What the chart makes of some values."""
    words = ["template", name, str(FOLDER), "--namespace", "streamer", "--kube-version", "1.31"]
    for value in values:
        words += ["--set-file" if value.startswith("monitoring.manifests") else "--set", value]
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
    assert kinds >= {*KINDS} - (set() if values else {"Secret", "ServiceAccount", "Ingress"})
    assert kinds & {*OTHERS} == ({*OTHERS} - {"PrometheusRule"} if values else set())
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
    assert 'streamer_consumer_lag_records{system="shop"}' in trigger["metadata"]["query"]
    assert scaled["maxReplicaCount"] == 8
    assert scaled["fallback"] == {"failureThreshold": 3, "replicas": 4}
    few = found("ScaledObject", "streamer-worker", *EVERYTHING, "autoscaling.partitions=3")["spec"]
    assert few["maxReplicaCount"] == 3  # one worker more than partitions does nothing
    assert "replicas" not in found("StatefulSet", "streamer-worker", *EVERYTHING)["spec"]


def test_the_monitor_scrapes_as_prometheus_yml_does() -> None:
    monitor = found("ServiceMonitor", "streamer", *EVERYTHING)
    scrape, _ = load_yaml(ROOT / "grafana" / "prometheus" / "prometheus.yml")["scrape_configs"]
    service = found("Service", "streamer")
    own = service["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"] == own
    assert own["app.kubernetes.io/instance"] == "streamer"
    assert monitor["metadata"]["labels"] == {"release": "stack"}
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == scrape["job_name"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "system", "replacement": "shop"}]
    (plain,) = found("ServiceMonitor", "streamer", "serviceMonitor.enabled=true")["spec"][
        "endpoints"
    ]
    assert plain["relabelings"][0]["replacement"] == "streamer/streamer"
    assert endpoint["port"] in {p["name"] for p in service["spec"]["ports"]}
    for ours, theirs in (("sampleLimit", "sample_limit"), ("bodySizeLimit", "body_size_limit"),
                         ("labelLimit", "label_limit"),
                         ("labelNameLengthLimit", "label_name_length_limit"),
                         ("labelValueLengthLimit", "label_value_length_limit"),
                         ("targetLimit", "target_limit")):  # fmt: skip
        assert monitor["spec"][ours] == scrape[theirs], ours


def test_pods_are_placed_and_extended_by_values() -> None:
    for kind, role, disk in (
        ("StatefulSet", "worker", "ssd"),
        ("Deployment", "exporter", "hdd"),
        ("Job", "apply", "ssd"),
    ):
        workload = found(kind, f"streamer-{role}", *POD)
        own = pod(workload)
        assert own["nodeSelector"] == {"disk": disk}
        assert own["priorityClassName"] == "high"
        assert own["tolerations"] == [{"operator": "Exists"}]
        assert own["affinity"] == {"podAntiAffinity": {"x": "y"}}
        assert {"name": "ca", "configMap": {"name": "ca"}} in own["volumes"]
        inner = container(workload)
        assert {"name": "ca", "mountPath": "/ca"} in inner["volumeMounts"]
        assert {"name": "STREAMER_LOG__LEVEL", "value": "info"} in inner["env"]
        if role != "apply":
            metadata = workload["spec"]["template"]["metadata"]
            assert metadata["labels"]["cost"] == metadata["annotations"]["team"] == "ads"
            assert "cost" not in workload["spec"]["selector"]["matchLabels"]


def test_who_acts_has_the_rights_of_a_worker() -> None:
    acting = found("Deployment", "streamer-act", *EVERYTHING, "act.enabled=true")
    assert container(acting)["args"] == ["act", "-c", "/etc/streamer/streamer.toml"]
    arguments.parse(container(acting)["args"])
    worker = found("StatefulSet", "streamer-worker", *EVERYTHING)
    assert container(acting)["env"] == container(worker)["env"]
    assert pod(acting)["securityContext"] == pod(worker)["securityContext"]
    policy = found("NetworkPolicy", "streamer-act", "act.enabled=true")["spec"]
    assert policy["ingress"] == []
    assert policy["podSelector"]["matchLabels"] == acting["spec"]["selector"]["matchLabels"]
    assert not [d for d in rendered() if d["metadata"]["name"] == "streamer-act"]


def test_an_upgrade_changes_no_field_that_kubernetes_refuses_to_change() -> None:
    for before, after in zip(workloads(), workloads(*EVERYTHING), strict=True):
        for field in ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"):
            assert before["spec"].get(field) == after["spec"].get(field)
    hooks = {d["kind"] for d in rendered() if "helm.sh/hook" in str(d["metadata"])}
    assert hooks == {"ConfigMap", "Job", "Pod"}


def test_an_account_of_a_cloud_and_how_images_are_pulled() -> None:
    assert {pod(w)["serviceAccountName"] for w in workloads()} == {"default"}
    assert {pod(w)["serviceAccountName"] for w in workloads(*EVERYTHING)} == {"streamer"}
    account = found("ServiceAccount", "streamer", *EVERYTHING)
    assert account["metadata"]["annotations"] == {"role": "arn"}
    assert {pod(w)["serviceAccountName"] for w in workloads("serviceAccount.name=mine")} == {"mine"}
    always = workloads("image.pullPolicy=Always")
    assert {container(w)["imagePullPolicy"] for w in always} == {"Always"}


def test_people_reach_the_page_by_an_ingress_or_a_gateway() -> None:
    (rule,) = found("Ingress", "streamer", *EVERYTHING)["spec"]["rules"]
    assert rule["host"] == "a.example"
    (path,) = rule["http"]["paths"]
    service = found("Service", "streamer")
    assert path["backend"]["service"] == {"name": "streamer", "port": {"name": "http"}}
    route = found("HTTPRoute", "streamer", *EVERYTHING)["spec"]
    (backend,) = route["rules"][0]["backendRefs"]
    assert backend == {"name": "streamer", "port": service["spec"]["ports"][0]["port"]}
    assert route["hostnames"] == ["a.example"]


def test_helm_test_runs_check_with_the_rights_of_a_worker() -> None:
    """It tries whether workers may write; an exporter's user may not."""
    asked = found("Pod", "streamer-check", *EVERYTHING)
    worker = found("StatefulSet", "streamer-worker", *EVERYTHING)
    (inner,) = asked["spec"]["containers"]
    arguments.parse(inner["args"])
    assert inner["args"][0] == "check"
    ours = container(worker)
    for field in ("image", "env", "volumeMounts", "securityContext"):
        assert inner[field] == ours[field], field
    secret = {v["name"]: v for v in asked["spec"]["volumes"]}["secrets"]["secret"]["secretName"]
    assert secret == "streamer-worker"
    assert asked["metadata"]["annotations"]["helm.sh/hook"] == "test"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("worker.replica=5", "replica"),
        ("autoscaling.partitions=many", "partitions"),
        ("podd.labels.x=y", "podd"),
        ("system.x=1", "system"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
    ],
)
def test_a_value_that_there_is_not_is_refused_by_name(value: str, name: str) -> None:
    helm = program("Helm", "helm")
    words = [helm, "lint", "--strict", str(FOLDER), "--set", value]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert name in done.stdout


def test_the_readme_names_every_value() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.]+)`", text))

    def values(value: Any, place: str) -> Iterator[str]:
        if (
            isinstance(value, dict)
            and value
            and not place.endswith(("resources", "Labels", "fallback"))
        ):
            for key, inner in value.items():
                yield from values(inner, f"{place}.{key}".strip("."))
        else:
            yield place

    assert set(values(VALUES, "")) <= named


def test_rules_and_dashboards_are_what_streamer_rules_writes(tmp_path: Path) -> None:
    settings = ["-c", str(ROOT / "grafana" / "streamer.toml")]
    assert main(["rules", str(tmp_path), "--kubernetes", *settings]) == 0
    given = f"monitoring.manifests={tmp_path / 'kubernetes.yaml'}"
    labels = ("monitoring.ruleLabels.release=stack", given)
    for name in ("processor", "metrics"):
        rule = found("PrometheusRule", f"streamer-{name}", *labels)
        assert rule["metadata"]["labels"] == {"release": "stack"}
        file = "streamer" if name == "processor" else name
        assert rule["spec"] == load_yaml(tmp_path / "rules" / f"{file}.yml")
    for path in (ROOT / "grafana" / "dashboards").glob("*.json"):
        board = found("ConfigMap", f"streamer-dashboard-{path.stem}", *labels)
        assert board["metadata"]["labels"] == {"grafana_dashboard": "1"}
        assert json.loads(board["data"][path.name]) == json.loads(path.read_text())
    assert {d["kind"] for d in rendered()}.isdisjoint({"PrometheusRule"})
