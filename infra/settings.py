"""Settings of everything that runs a query: in, a YAML file and the environment; out, one object.

No other module of `infra` reads the environment for a knob. A setting is named the same everywhere:
`memory_bytes` in the file, `STAGECOACH_MEMORY_BYTES` in the environment (which wins). The docstring
of `EngineSettings` is the documentation: docs/reference/settings.md is made from it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from infra.errors import ConfigError
from infra.storage.object_store import ObjectStore, StorageOptions, redact_url
from infra.storage.stores import open_store

Codec = Literal["lz4", "zstd", "none"]
LogFormat = Literal["text", "json"]

ENVIRONMENT_PREFIX = "STAGECOACH_"
PAGES_VARIABLE = f"{ENVIRONMENT_PREFIX}PAGES"
"""Address of what serves the pages of runs; no setting, for it comes from `stagecoach ui`."""

FILE_VARIABLE = "STAGECOACH_SETTINGS"
"""Names the settings file where the caller names none."""

_MB = 1 << 20
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt])(?:i?b)?", re.IGNORECASE)
_SIZE_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}
MASK = "***"
_SECRET_NAME = re.compile(r"secret|password|passwd|token|credential|access[._-]?key", re.IGNORECASE)
_SECRET_PART = re.compile(r"((?:token|password|secret)=)[^;&\s]+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """The knobs of a run. Sizes are bytes.

    Args:
        storage_root: Folder or URL under which shuffles, runs and results are kept.
        storage_options: How to reach it; see `StorageOptions`.
        master: Spark master of a session that this process starts; ignored with `remote`.
        remote: Spark Connect URL (`sc://host:port`), or None for classic Spark.
        connect_seconds: How long to wait for that server while it does not listen yet.
        time_zone: Session time zone that queries are planned with, an IANA name.
        parallelism: Task slots to plan for; 0 asks Spark (`defaultParallelism`).
        memory_bytes: Memory limit of DuckDB in one task, which spills above it; 0 shares 60 % of
            this machine's memory among its processors.
        writer_memory_bytes: Buffer of the shuffle writer in one task, which spills above it.
        reader_memory_bytes: Stored bytes that the reader of one shuffle input in a task fetches
            ahead or looks at. One request asks for up to half of it, so a task reads at most so
            much of a map file with one request.
        broadcast_cache_bytes: Memory in which a worker process keeps broadcast inputs for its next
            tasks; 0 reads them anew in each task.
        codec: Compression of shuffle files.
        spill_dir: Local folder for spilled data; the system's temporary folder by default.
        max_spill_bytes: Most that DuckDB may spill in one worker; 0 leaves it to the free space.
        target_task_bytes: Input above which a stage gets more tasks than slots.
        min_task_bytes: Input below which a stage gets one task; 0 always splits.
        adaptive: Whether a stage that starts looks at the real sizes of what it reads: a skewed
            partition is split among tasks, what an empty input makes useless is not read, a
            small input of a join is read whole by every task, and a large sorted result is merged
            by several.
        skew_factor: How many times larger than the median of the others a partition must be to
            count as skewed.
        skew_bytes: Stored bytes that a skewed partition has at least.
        late_broadcast_bytes: Stored bytes up to which all but one input of a partitioned join may
            be read whole by every task, each with whole map files of the largest one, where that
            ends sooner than reading by partitions; 0 for never.
        passing_share: Groups per row from which a task passes the rows of a partial aggregate on
            as they are, as far as a sample of them tells; above 1 for never.
        progress_seconds: Time between two looks at the progress of a Spark job.
        metrics_pushgateway: Prometheus Pushgateway, `host:port` or URL, that a run's metrics are
            pushed to when it ends; empty for none.
        log_format: Log lines of runs: `text` for people, `json` for one JSON object a line.
        claim_seconds: A stage that another run computes just now is waited for while that run
            shows a sign of life at least so often; 0 computes it once more.
        recover: Whether an output of an upstream stage that is found lost or damaged while a stage
            runs is computed again in the same run; otherwise the stage fails and names it.
        spark_conf: Further Spark configuration, by name.
    """

    storage_root: str = ".stagecoach/storage"
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    master: str = "local[*]"
    remote: str | None = None
    connect_seconds: float = 60.0
    time_zone: str = "UTC"
    parallelism: int = 0
    memory_bytes: int = 0
    writer_memory_bytes: int = 256 * _MB
    reader_memory_bytes: int = 128 * _MB
    broadcast_cache_bytes: int = 128 * _MB
    codec: Codec = "lz4"
    spill_dir: str = ""
    max_spill_bytes: int = 0
    target_task_bytes: int = 1024 * _MB
    min_task_bytes: int = 4 * _MB
    adaptive: bool = True
    skew_factor: float = 4.0
    skew_bytes: int = 16 * _MB
    late_broadcast_bytes: int = 16 * _MB
    passing_share: float = 0.8
    progress_seconds: float = 0.2
    metrics_pushgateway: str = ""
    log_format: LogFormat = "text"
    claim_seconds: float = 10.0
    recover: bool = True
    spark_conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (
            "parallelism",
            "memory_bytes",
            "max_spill_bytes",
            "broadcast_cache_bytes",
            "min_task_bytes",
            "skew_factor",
            "skew_bytes",
            "late_broadcast_bytes",
            "passing_share",
            "claim_seconds",
        ):
            if getattr(self, name) < 0:
                raise ConfigError(f"setting {name} is {getattr(self, name)}; it must be 0 or more")
        for name in (
            "writer_memory_bytes",
            "reader_memory_bytes",
            "target_task_bytes",
            "progress_seconds",
            "connect_seconds",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"setting {name} is {getattr(self, name)}; it must be above 0")
        for name, known in (("codec", get_args(Codec)), ("log_format", get_args(LogFormat))):
            if (value := getattr(self, name)) not in known:
                raise ConfigError(f"setting {name} is '{value}'; use one of {known}")

    @property
    def task_memory_bytes(self) -> int:
        """The memory limit of DuckDB in one task, with 0 resolved for this machine."""
        if self.memory_bytes:
            return self.memory_bytes
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return max(int(physical * 0.6) // (os.cpu_count() or 1), 256 * _MB)

    @property
    def spill_folder(self) -> str:
        """The folder for spilled data, with the default resolved for this machine."""
        return self.spill_dir or os.path.join(tempfile.gettempdir(), f"stagecoach-{os.getuid()}")

    def open_store(self) -> ObjectStore:
        """The store at the storage root."""
        return open_store(self.storage_root, self.storage_options)

    def updated(self, values: Mapping[str, Any]) -> EngineSettings:
        """These settings with some replaced, each a value of the right type or its text.

        Raises:
            ConfigError: For an unknown name or a value that does not fit.
        """
        known = {f.name for f in dataclasses.fields(self)}
        if unknown := sorted(set(values) - known):
            raise ConfigError(
                f"unknown setting '{unknown[0]}'; there are {', '.join(sorted(known))}"
            )
        changes = {k: _parse(k, v, getattr(self, k)) for k, v in values.items()}
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class EffectiveSetting:
    """A setting as a process has it.

    Args:
        name: Its name.
        value: Its value.
        source: Where it came from: `default`, the file, the variable, or `argument`.
    """

    name: str
    value: Any
    source: str

    @property
    def shown(self) -> Any:
        """The value as plain data that may be shown: secrets are masked."""
        if isinstance(self.value, StorageOptions):
            hidden = {f.name for f in dataclasses.fields(StorageOptions) if not f.repr}
            given = self.value.to_dict()
            return {k: MASK if k in hidden else _without_secrets(v) for k, v in given.items()}
        if isinstance(self.value, Mapping):
            return {
                k: MASK if _SECRET_NAME.search(k) else _without_secrets(v)
                for k, v in self.value.items()
            }
        return _without_secrets(self.value)


def load_settings(
    path: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> EngineSettings:
    """Settings from a YAML file, then `STAGECOACH_*` variables, then `overrides`; the last wins.

    Args:
        path: The file; None for the one that `STAGECOACH_SETTINGS` names, if it does.
        environment: Variables to read; this process's own by default. Those whose name is no
            setting are left to others.
        overrides: Values by name, from the command line for example.

    Raises:
        ConfigError: If the file cannot be read, or a name or value does not fit.
    """
    settings = EngineSettings()
    for _, values in _layers(path, environment, overrides):
        settings = settings.updated(values)
    return settings


def effective_settings(
    path: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> tuple[EffectiveSetting, ...]:
    """Every setting as `load_settings` finds it, and where it came from, in the model's order.

    Raises:
        ConfigError: If the file cannot be read, or a name or value does not fit.
    """
    settings = EngineSettings()
    sources: dict[str, str] = {}
    for source, values in _layers(path, environment, overrides):
        settings = settings.updated(values)
        sources |= dict.fromkeys(values, source)
    return tuple(
        EffectiveSetting(
            name=name, value=getattr(settings, name), source=sources.get(name, "default")
        )
        for name in _names()
    )


def _layers(
    path: str | os.PathLike[str] | None,
    environment: Mapping[str, str] | None,
    overrides: Mapping[str, Any] | None,
) -> list[tuple[str, Mapping[str, Any]]]:
    """The values of each source by name, the last one wins."""
    found = os.environ if environment is None else environment
    path = path or found.get(FILE_VARIABLE)
    variables = {name: found[_variable(name)] for name in _names() if _variable(name) in found}
    layers: list[tuple[str, Mapping[str, Any]]] = []
    if path:
        layers.append((f"file {os.fspath(path)}", _read_file(Path(path))))
    layers += [(f"variable {_variable(name)}", {name: text}) for name, text in variables.items()]
    return [*layers, ("argument", overrides or {})]


def _names() -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(EngineSettings))


def _variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"


def _read_file(path: Path) -> dict[str, Any]:
    import yaml  # only the driver reads a file

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot read the settings in {path}: {error}") from error
    if not isinstance(content, dict | None):
        raise ConfigError(f"the settings in {path} are no mapping of names to values")
    return content or {}


def _parse(name: str, value: Any, current: Any) -> Any:
    try:
        if name == "storage_options":
            given = json.loads(value) if isinstance(value, str) else value
            return given if isinstance(given, StorageOptions) else StorageOptions.from_dict(given)
        if name == "spark_conf":
            given = json.loads(value) if isinstance(value, str) else value
            return {str(k): _conf_text(v) for k, v in dict(given).items()}
        if name == "remote":
            return str(value) if value else None
        if isinstance(current, bool):
            return _to_bool(value)
        if name.endswith("_bytes") and isinstance(value, str):
            return _to_bytes(value)
        if isinstance(current, int | float) and isinstance(value, str | int | float):
            return type(current)(value)
    except (ValueError, TypeError) as error:
        # Never the value of a setting that may hold secrets.
        given = "what is given" if name in ("storage_options", "spark_conf") else repr(value)
        raise ConfigError(f"setting {name} cannot be {given}: {error}") from error
    if not isinstance(value, str):
        raise ConfigError(f"setting {name} cannot be {value!r}; give a text")
    return value


def _without_secrets(value: Any) -> Any:
    """A text without the credentials of URLs in it."""
    if not isinstance(value, str):
        return value
    return _SECRET_PART.sub(rf"\1{MASK}", redact_url(value))


def _to_bool(value: Any) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError("give true or false")
    return str(value).lower() == "true"


def _to_bytes(text: str) -> int:
    """A number of bytes, also with a unit: `256MB` and `256MiB` are 256 × 2^20."""
    if match := _SIZE.fullmatch(text.strip()):
        return int(float(match[1]) * (1 << _SIZE_UNITS[match[2].lower()]))
    return int(text)


def _conf_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
