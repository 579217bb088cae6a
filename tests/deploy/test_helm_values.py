"""The values for Dagster's chart: names, the pods of runs that come of them, and the instance."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import dagster as dg
import kubernetes.client
import kubernetes.config
import pytest
import yaml
from jsonschema import Draft202012Validator

import stagecoach
from tests.deploy.chart_schema import VALUES

kubernetes_validate = pytest.importorskip("kubernetes_validate")
dagster_k8s = pytest.importorskip("dagster_k8s")

FILE = Path(stagecoach.__path__[0]).parent / "deploy" / "dagster" / "values.yaml"
KUBERNETES = "1.34"


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def snake_case(value: Any) -> Any:
    """As the chart writes values into `dagster.yaml`."""
    names = {
        "imagePullPolicy": "image_pull_policy",
        "loadInclusterConfig": "load_incluster_config",
        "envConfigMaps": "env_config_maps",
        "envSecrets": "env_secrets",
        "envVars": "env_vars",
        "volumeMounts": "volume_mounts",
        "failPodOnRunFailure": "fail_pod_on_run_failure",
        "securityContext": "security_context",
        "runK8sConfig": "run_k8s_config",
        "containerConfig": "container_config",
        "podSpecConfig": "pod_spec_config",
        "jobSpecConfig": "job_spec_config",
    }
    return {names.get(name, name): inner for name, inner in value.items()}


@pytest.fixture(scope="module")
def launcher_config(values: dict[str, Any]) -> dict[str, Any]:
    config = snake_case(values["runLauncher"]["config"]["k8sRunLauncher"])
    config["run_k8s_config"] = snake_case(config["run_k8s_config"])
    config |= {
        "service_account_name": values["global"]["serviceAccountName"],
        "instance_config_map": "dagster-instance",
        "postgres_password_secret": values["global"]["postgresqlSecretName"],
        "dagster_home": values["global"]["dagsterHome"],
        "job_namespace": "stagecoach",
    }
    return config


def test_the_chart_knows_every_name(values: dict[str, Any]) -> None:
    assert [error.message for error in Draft202012Validator(VALUES).iter_errors(values)] == []


def test_a_misspelled_value_is_refused(values: dict[str, Any]) -> None:
    wrong = {**values, "runLaunchers": values["runLauncher"]}
    assert list(Draft202012Validator(VALUES).iter_errors(wrong))


@pytest.fixture(scope="module")
def launcher(launcher_config: dict[str, Any]) -> Any:
    """Dagster's launcher with what the chart makes of the values."""
    from dagster_k8s import launcher

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launcher, "load_kubernetes_config", lambda **_: None)  # there is no cluster
        return launcher.K8sRunLauncher(
            **launcher_config, k8s_client_batch_api=Mock(), k8s_client_core_api=Mock()
        )


def launched(launcher: Any, code_image: str) -> dict[str, Any]:
    """The job that the launcher makes of a run."""
    from dagster_k8s.container_context import K8sContainerContext
    from dagster_k8s.job import construct_dagster_k8s_job

    run = dg.DagsterRun(job_name="run_sales", run_id="9f1c")
    context = K8sContainerContext.create_for_run(run, launcher, include_run_tags=True)
    job = construct_dagster_k8s_job(
        job_config=context.get_k8s_job_config(job_image=code_image, run_launcher=launcher),
        args=["dagster", "api", "execute_run", "{}"],
        job_name="dagster-run-9f1c",
        pod_name="dagster-run-9f1c",
        component="run_worker",
        user_defined_k8s_config=context.run_k8s_config,
        env_vars=[],
    )
    return as_data(job)


def as_data(job: Any) -> dict[str, Any]:
    found: dict[str, Any] = kubernetes.client.ApiClient().sanitize_for_serialization(job)
    return found


@pytest.fixture(scope="module")
def job(launcher: Any) -> dict[str, Any]:
    return launched(launcher, "REGISTRY/stagecoach-code:TAG")


def test_the_pod_of_a_run_is_one_that_kubernetes_takes(job: dict[str, Any]) -> None:
    kubernetes_validate.validate(job, KUBERNETES, strict=True)
    assert job["spec"]["ttlSecondsAfterFinished"] == 86400


def test_a_run_has_the_image_for_runs_and_not_that_of_the_code_location(
    job: dict[str, Any],
) -> None:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "REGISTRY/stagecoach-run:TAG"


def test_a_run_may_connect_to_spark_and_is_not_root(job: dict[str, Any]) -> None:
    template = job["spec"]["template"]
    # The label by which the network policies let it in.
    assert template["metadata"]["labels"]["stagecoach/role"] == "run"
    assert template["spec"]["securityContext"]["runAsNonRoot"] is True
    (container,) = template["spec"]["containers"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["resources"]["limits"] == {"memory": "4Gi"}


def test_secrets_are_named_and_not_written(values: dict[str, Any], job: dict[str, Any]) -> None:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (password,) = [e for e in container["env"] if e["name"] == "DAGSTER_PG_PASSWORD"]
    name = values["global"]["postgresqlSecretName"]
    assert password["valueFrom"]["secretKeyRef"]["name"] == name
    assert "value" not in password
    location = values["dagster-user-deployments"]["deployments"][0]
    assert location["envSecrets"] == [{"name": "stagecoach"}]


def test_the_code_location_listens_on_its_port(values: dict[str, Any]) -> None:
    location = values["dagster-user-deployments"]["deployments"][0]
    dockerfile = (FILE.parents[1] / "Dockerfile").read_text()
    assert f"EXPOSE {location['port']}" in dockerfile
    assert "pipelines.definitions" in location["codeServerArgs"]


def test_runs_are_retried_by_starting_new_ones(values: dict[str, Any]) -> None:
    """A thread executor cannot be resumed in another pod; a new run reuses committed stages."""
    daemon = values["dagsterDaemon"]
    assert daemon["runMonitoring"]["maxResumeRunAttempts"] == 0
    assert daemon["runRetries"] == {
        "enabled": True,
        "maxRetries": 2,
        "retryOnAssetOrOpFailure": False,
    }


def test_the_logs_go_to_s3_as_dagster_takes_it(values: dict[str, Any], tmp_path: Path) -> None:
    manager = pytest.importorskip("dagster_aws.s3").S3ComputeLogManager
    config = values["computeLogManager"]["config"]["s3ComputeLogManager"]
    fields = manager.config_type()
    named = {"bucket": "bucket", "prefix": "prefix", "showUrlOnly": "show_url_only"}
    named["uploadInterval"] = "upload_interval"
    assert {named[name] for name in config} <= set(fields)


def test_with_the_executor_of_the_guide_each_stage_is_a_pod(
    launcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Python is that of the README; its handler makes the job of a step."""
    from dagster_k8s.container_context import K8sContainerContext
    from dagster_k8s.executor import K8sStepHandler
    from dagster_k8s.job import UserDefinedDagsterK8sConfig

    readme = (FILE.parents[1] / "README.md").read_text()
    code = readme.partition("```python\n")[2].partition("```")[0]
    told: dict[str, Any] = {}
    monkeypatch.setattr(stagecoach, "build_definitions", lambda **more: told.update(more))
    exec(code, {})
    config = told["executor"].config_schema.resolve_config({"config": {}}).value["config"]
    assert told["executor"].name == "k8s"
    assert config["max_concurrent"] == 8
    steps = UserDefinedDagsterK8sConfig.from_dict(config["step_k8s_config"])
    monkeypatch.setattr(kubernetes.config, "load_incluster_config", lambda: None)
    api = Mock()
    handler = K8sStepHandler(
        image=None,
        container_context=K8sContainerContext(run_k8s_config=steps),
        load_incluster_config=True,
        kubeconfig_file=None,
        k8s_client_batch_api=api,
        k8s_client_core_api=Mock(),
    )
    context = Mock(
        dagster_run=dg.DagsterRun(job_name="run_sales", run_id="9f1c"),
        step_tags={"sales__stage_1": {}},
    )
    context.instance.run_launcher = launcher
    arguments = context.execute_step_args
    arguments.run_id, arguments.step_keys_to_execute = "9f1c", ["sales__stage_1"]
    arguments.known_state = None
    arguments.get_command_args.return_value = ["dagster", "api", "execute_step"]
    arguments.get_command_env.return_value = []
    arguments.job_origin.repository_origin.container_image = "REGISTRY/stagecoach-code:TAG"
    monkeypatch.setattr(dg.DagsterEvent, "step_worker_starting", lambda *_, **__: None)
    list(handler.launch_step(context))
    step = as_data(api.create_namespaced_job.call_args.kwargs["body"])
    kubernetes_validate.validate(step, KUBERNETES, strict=True)
    template = step["spec"]["template"]
    assert template["metadata"]["labels"]["stagecoach/role"] == "run"
    assert template["spec"]["containers"][0]["image"] == "REGISTRY/stagecoach-run:TAG"
    assert template["spec"]["containers"][0]["args"] == ["dagster", "api", "execute_step"]
