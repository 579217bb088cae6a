"""The configuration that a Spark Connect server of ours is started with.

Also the port that it listens on, the folder of its Spark, and which code its Python workers import.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import random
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from stagecoach import infra
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.host.process_folders import ProcessFolder
from stagecoach.infra.spark.kept_status import without_ui
from stagecoach.infra.spark.safe_conf import GUARD_CONF, REDACTED_CONF, SAFE_CONF
from stagecoach.infra.spark.worker_memory import executor_conf

CODE_CONF = "spark.stagecoach.code"
"""Digest of the code that the server's Python workers import; a session reads it as a conf."""

SLOTS_CONF = "spark.stagecoach.slots"
"""Tasks that the server runs at once, where that follows from its master."""

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"

# Below the ports that Linux gives to outgoing connections, so that none takes it before the JVM.
_PORTS = (20_000, 32_000)
_ISOLATION_CONF = "spark.sql.artifact.isolation.enabled"


def server_conf(settings: EngineSettings, port: int) -> dict[str, str]:
    """The Spark configuration of a server for these settings; their `spark_conf` wins."""
    conf = {
        "spark.app.name": "stagecoach",
        "spark.master": settings.master,
        # For clients that ship their code; a session cannot change it.
        _ISOLATION_CONF: "true",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # A run that was killed must not keep its job running for long.
        "spark.connect.execute.manager.detachedTimeout": "30s",
        "spark.connect.execute.manager.maintenanceInterval": "5s",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": settings.time_zone,
        "spark.sql.warehouse.dir": os.path.join(settings.spill_folder, "warehouse"),
        "spark.python.unix.domain.socket.enabled": "true",
        # A cancelled task's Python worker is given this long before it is killed.
        "spark.python.task.killTimeout": "1s",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        **executor_conf(),
        **without_ui(settings.spark_conf),
    }
    if settings.master == "local" or settings.master.startswith(("local[", "local-cluster")):
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(max(2 * (os.cpu_count() or 1), 8)),
            # Sessions share Python workers, and classes that Spark generates: clients have the code
            # that the workers import, and nobody ships any.
            _ISOLATION_CONF: "false",
            CODE_CONF: code_digest(),
        }
    if (slots := _local_slots(settings.master)) is not None:
        conf[SLOTS_CONF] = str(slots)
    fixed = {**SAFE_CONF, **REDACTED_CONF, GUARD_CONF: "true"}
    return conf | dict(settings.spark_conf) | fixed


@contextlib.contextmanager
def properties_file(conf: Mapping[str, str], parent: str) -> Iterator[str]:
    """Yield the path of a properties file, there while the block lasts, that only we can read.

    A configuration may hold keys of a storage. So what killed processes left in the same parent is
    removed as well.

    Args:
        conf: A Spark configuration.
        parent: A local folder; made if it is missing.

    Raises:
        OSError: It cannot be written.
    """
    with contextlib.closing(ProcessFolder(parent, "conf")) as folder:  # which only we can enter
        file = Path(folder.path, "spark.properties")
        file.write_text(_properties_text(conf), encoding="utf-8")
        yield str(file)


def _properties_text(conf: Mapping[str, str]) -> str:
    """A Spark configuration as the text of a properties file."""
    texts = (
        (name, value.replace("\\", "\\\\").replace("\n", "\\n")) for name, value in conf.items()
    )
    return "".join(f"{name}={text}\n" for name, text in texts)


def _local_slots(master: str) -> int | None:
    """Tasks at once of a local master; None for another."""
    if master == "local":
        return 1
    if not (master.startswith("local[") and master.endswith("]")):
        return None
    threads = master[len("local[") : -1].split(",")[0].strip()
    if threads == "*":
        return os.cpu_count() or 1
    return int(threads) if threads.isdigit() else None


def package_root() -> Path:
    """The folder of the package `stagecoach`; in a checkout, with links to our packages."""
    return Path(infra.__path__[0]).parent


@functools.cache
def code_files() -> tuple[tuple[str, bytes], ...]:
    """Name and content of every file of the packages that executors import."""
    found: list[tuple[str, bytes]] = []
    root = package_root()
    files = [root / "__init__.py"]
    for package in ("infra", "planner"):
        files += sorted((root / package).rglob("*.py"))
    for path in files:
        found.append((f"stagecoach/{path.relative_to(root)}", path.read_bytes()))
    return tuple(found)


@functools.cache
def code_digest() -> str:
    """What tells this version of our packages from any other, 64 hex digits."""
    content = b"".join(name.encode() + b"\0" + text for name, text in code_files())
    return hashlib.sha256(content).hexdigest()


def spark_home() -> str:
    """The folder of the Spark that this process starts."""
    if home := os.environ.get("SPARK_HOME"):
        return home
    # Without importing pyspark: its folder is all that is needed.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("the package pyspark is not installed, and SPARK_HOME is not set")
    return spec.submodule_search_locations[0]


def free_port() -> int:
    """A loopback port that a server may have."""
    for _ in range(100):
        port = random.randrange(*_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise ConfigError(f"no free port between {_PORTS[0]} and {_PORTS[1]} for Spark Connect")
