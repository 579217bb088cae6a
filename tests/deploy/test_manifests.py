"""The manifests in deploy/spark and deploy/serve, checked against the schemas of Kubernetes and of the operators."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import stagecoach
from stagecoach.commands.serve import serve
from stagecoach.flight.serving import CLOSE_SECONDS
from stagecoach.infra.config.settings import load_settings
from stagecoach.infra.spark.safe_conf import REDACTED_CONF, SAFE_CONF
from tests.deploy.crd_schemas import SCHEMAS

DEPLOY = Path(stagecoach.__path__[0]).parent / "deploy"
SPARK, SERVE = DEPLOY / "spark", DEPLOY / "serve"
FORMS = ("kubeflow", "apache", "standalone")
KUBERNETES = "1.34"
ROLE = "stagecoach/role"

kubernetes_validate = pytest.importorskip("kubernetes_validate")


def documents(*files: Path) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from (document for document in yaml.safe_load_all(file.read_text()) if document)


def manifests() -> list[dict[str, Any]]:
    files = sorted((*SPARK.rglob("*.yaml"), *SERVE.rglob("*.yaml")))
    return list(documents(*(file for file in files if file.name != "kustomization.yaml")))


def pod_templates(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The templates of pods in a manifest, however deep."""
    found: list[dict[str, Any]] = []

    def search(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("spec"), dict) and "containers" in value["spec"]:
                found.append(value)
                return
            for inner in value.values():
                search(inner)

    search(manifest)
    return found


@pytest.mark.parametrize(
    "manifest", manifests(), ids=lambda m: f"{m['kind']}-{m['metadata']['name']}"
)
def test_a_manifest_is_one_that_its_server_takes(manifest: dict[str, Any]) -> None:
    schema = SCHEMAS.get((manifest["apiVersion"], manifest["kind"]))
    if schema is None:
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
        return
    assert [error.message for error in Draft202012Validator(schema).iter_errors(manifest)] == []
    templates = pod_templates(manifest)
    assert len(templates) == 2
    for template in templates:
        # The operators fill in the image of a container.
        spec = template["spec"]
        containers = [{"image": "filled-in", **container} for container in spec["containers"]]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", **template["metadata"]},
            "spec": {**spec, "containers": containers},
        }
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_a_misspelled_name_is_refused() -> None:
    (connect,) = documents(SPARK / "kubeflow" / "spark-connect.yaml")
    connect["spec"]["executors"] = connect["spec"].pop("executor")
    schema = SCHEMAS[connect["apiVersion"], connect["kind"]]
    assert len(list(Draft202012Validator(schema).iter_errors(connect))) == 2


def test_no_pod_runs_as_root_or_gains_powers() -> None:
    templates = [template for manifest in manifests() for template in pod_templates(manifest)]
    assert len(templates) == 7
    for template in templates:
        security = template["spec"]["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] == 10001
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in template["spec"]["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_every_executor_tolerates_spot_machines_and_has_a_volume_to_spill_to() -> None:
    executors = [
        template
        for manifest in manifests()
        for template in pod_templates(manifest)
        if template["metadata"]["labels"][ROLE] == "spark-executor"
    ]
    assert len(executors) == len(FORMS)
    for template in executors:
        spec = template["spec"]
        assert {"key": "stagecoach/spot", "operator": "Exists", "effect": "NoSchedule"} in spec[
            "tolerations"
        ]
        mounts = [m for c in spec["containers"] for m in c["volumeMounts"]]
        assert [mount["mountPath"] for mount in mounts] == ["/tmp"]
        assert {mount["name"] for mount in mounts} == {volume["name"] for volume in spec["volumes"]}
        assert spec["serviceAccountName"] == "spark-executor"


def test_both_servers_get_the_same_settings_of_spark() -> None:
    """What one form says with properties of its own, the other says with settings."""
    (kubeflow,) = documents(SPARK / "kubeflow" / "spark-connect.yaml")
    (apache,) = documents(SPARK / "apache" / "spark-connect.yaml")
    ours, theirs = kubeflow["spec"]["sparkConf"], apache["spec"]["sparkConf"]
    assert dict(ours, **theirs) == theirs
    dynamic = kubeflow["spec"]["dynamicAllocation"]
    for name in ("initialExecutors", "minExecutors", "maxExecutors"):
        assert theirs[f"spark.dynamicAllocation.{name}"] == str(dynamic[name])
    executor = kubeflow["spec"]["executor"]
    assert theirs["spark.executor.cores"] == str(executor["cores"])
    assert theirs["spark.executor.memory"] == executor["memory"]
    assert theirs["spark.driver.memory"] == kubeflow["spec"]["server"]["memory"]
    # As a session of ours would set them, and so that forwarded credentials are redacted.
    assert {**SAFE_CONF, **REDACTED_CONF}.items() <= ours.items()


def test_the_version_of_spark_is_that_of_the_driver() -> None:
    texts = [file.read_text() for file in SPARK.rglob("*.yaml")]
    named = [
        line.split()[1] for text in texts for line in text.splitlines() if "sparkVersion:" in line
    ]
    assert named == [version("pyspark")] * len(FORMS)


def test_the_settings_are_ones_that_runs_take(monkeypatch: pytest.MonkeyPatch) -> None:
    (settings,) = documents(SPARK / "base" / "settings.yaml")
    for name, value in settings["data"].items():
        monkeypatch.setenv(name, value)
    found = load_settings()
    (service,) = documents(SPARK / "apache" / "service.yaml")
    port = service["spec"]["ports"][0]["port"]
    assert found.remote == f"sc://{service['metadata']['name']}:{port}"
    assert found.storage_root == "s3://BUCKET/stagecoach"
    assert (found.credentials, found.warm) == ("executor", "never")


def network_policies() -> dict[str, dict[str, Any]]:
    return {m["metadata"]["name"]: m["spec"] for m in manifests() if m["kind"] == "NetworkPolicy"}


def test_only_runs_servers_and_executors_reach_sparks_server() -> None:
    policies = network_policies()
    everybody = policies["nobody-connects-unless-said-so"]
    assert (everybody["podSelector"], everybody["policyTypes"]) == ({}, ["Ingress"])
    assert "ingress" not in everybody
    ours = "spark-server", "spark-server-from-serve"
    for name in ours:
        assert policies[name]["podSelector"] == {"matchLabels": {ROLE: "spark-server"}}
    rules = [rule for name in ours for rule in policies[name]["ingress"]]
    callers = {
        rule["from"][0]["podSelector"]["matchLabels"][ROLE]: {
            port["port"] for port in rule["ports"]
        }
        for rule in rules
    }
    assert callers == {"run": {15002}, "serve": {15002}, "spark-executor": {7078, 7079}}


def test_there_is_no_secret_in_any_file() -> None:
    text = "\n".join(file.read_text() for file in DEPLOY.rglob("*") if file.is_file())
    assert not [m for m in manifests() if m["kind"] == "Secret"]
    for word in ("AKIA", "BEGIN PRIVATE KEY", "postgresqlPassword:"):
        assert word not in text


def serve_deployment() -> dict[str, Any]:
    (deployment,) = documents(SERVE / "deployment.yaml")
    return deployment


def test_the_flight_server_is_started_with_options_that_it_has(tmp_path: Path) -> None:
    """The command of the manifest, with files of this machine; it is read, not run."""
    (container,) = serve_deployment()["spec"]["template"]["spec"]["containers"]
    program, command, *options = container["command"]
    assert (program, command) == ("stagecoach", "serve")
    folders = {mount["mountPath"] for mount in container["volumeMounts"]}
    given = dict(option.split("=", 1) for option in options)
    for name, value in given.items():
        if value.startswith("/etc/"):
            assert str(Path(value).parent) in folders
            given[name] = str(tmp_path / Path(value).name)
            Path(given[name]).write_text("x")
    with serve.make_context("serve", [f"{n}={v}" for n, v in given.items()]) as context:
        read = context.params
    assert (read["host"], read["insecure"]) == ("0.0.0.0", False)
    assert read["tokens"] is not None
    assert read["tls_cert"] is not None
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"flight-sql": read["port"], "health": read["health_port"]}
    probed = {
        container[f"{kind}Probe"]["httpGet"]["path"]
        for kind in ("startup", "readiness", "liveness")
    }
    assert probed == {"/healthz", "/readyz"}


def test_the_flight_server_may_drain_before_it_is_killed() -> None:
    template = serve_deployment()["spec"]["template"]["spec"]
    (container,) = template["containers"]
    (drain,) = (o for o in container["command"] if o.startswith("--drain="))
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    needed = pause + int(drain.removeprefix("--drain=").removesuffix("s")) + CLOSE_SECONDS
    assert template["terminationGracePeriodSeconds"] > needed


def test_clients_reach_the_flight_server_and_nothing_else_of_it() -> None:
    service, budget = documents(SERVE / "service.yaml")
    pods = {"matchLabels": service["spec"]["selector"]}
    assert serve_deployment()["spec"]["selector"] == budget["spec"]["selector"] == pods
    rules = network_policies()["serve"]["ingress"]
    ports = [[port["port"] for port in rule["ports"]] for rule in rules]
    assert ports == [[service["spec"]["ports"][0]["port"]], [8080]]
    (peer,) = rules[0]["from"]
    assert peer["podSelector"]["matchLabels"] == {"stagecoach/client": "true"}


@pytest.mark.parametrize("form", FORMS)
def test_kustomize_puts_a_form_together(form: str) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(
        ["kubectl", "kustomize", str(SPARK / form)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kinds = [document["kind"] for document in yaml.safe_load_all(done.stdout)]
    assert kinds.count("Namespace") == 1
    assert {"kubeflow": "SparkConnect", "apache": "SparkApplication"}.get(
        form, "SparkCluster"
    ) in kinds


def test_kustomize_puts_the_flight_server_together() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(
        ["kubectl", "kustomize", str(SERVE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kinds = [document["kind"] for document in yaml.safe_load_all(done.stdout)]
    assert {"Deployment", "Service", "NetworkPolicy", "ServiceAccount"} <= set(kinds)
