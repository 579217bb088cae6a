"""Settings from a YAML file, the environment and arguments.

No other module of `infra` reads the environment for a knob. A setting is named the same everywhere:
`memory_bytes` in the file, `STAGECOACH_MEMORY_BYTES` in the environment (which wins). An option of
the planner is in the section `planner` of the file, `STAGECOACH_PLANNER__BROADCAST_BYTES` in the
environment. The docstrings of `EngineSettings` and `PlannerOptions` are the documentation:
docs/reference/settings.md is made from them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from stagecoach.infra.errors import ConfigError, StorageError
from stagecoach.infra.storage import secrets
from stagecoach.infra.storage.masking import masked, without_secrets
from stagecoach.infra.storage.object_store import (
    FileIdentityPolicy,
    FsyncPolicy,
    ObjectStore,
    StorageOptions,
)
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.option_values import (
    Limits,
    ValueRule,
    in_source,
    refusal,
    rules_of,
    there_are,
)
from stagecoach.planner.options import PREFIX as PLANNER_PREFIX
from stagecoach.planner.options import PlannerOptions

Codec = Literal["lz4", "zstd", "none"]
LogFormat = Literal["text", "json"]
Credentials = Literal["executor", "forward"]
WarmUsers = Literal["commands", "always", "never"]
AdaptiveKind = Literal[
    "coalesce", "skew", "broadcast", "prune", "passing", "empty", "ranges", "complete", "rounds"
]
"""What a stage decides when it starts; `stagecoach.infra.runtime.adaptive` says how."""

ENVIRONMENT_PREFIX = "STAGECOACH_"
PAGES_VARIABLE = f"{ENVIRONMENT_PREFIX}PAGES"
"""Address of what serves the pages of runs; no setting, for it comes from `stagecoach ui`."""

FILE_VARIABLE = "STAGECOACH_SETTINGS"
"""Names the settings file where the caller names none."""

OLD_VARIABLES: Mapping[str, str] = {"storage_root": "STAGECOACH_STORAGE"}
"""Older spellings of variables, read where the present one is not set."""

ANSI_CONF = "spark.sql.ansi.enabled"
ZONE_CONF = "spark.sql.session.timeZone"
_PLANNER_SECTION = "planner"
_MB = 1 << 20
_AT_LEAST_0 = (
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
    "executor_seconds",
    "verify_seconds",
)
_ABOVE_0 = (
    "writer_memory_bytes",
    "reader_memory_bytes",
    "target_task_bytes",
    "progress_seconds",
    "connect_seconds",
)
_MAY_HOLD_SECRETS = ("storage_options", "spark_conf")


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """The knobs of a run. Sizes are bytes.

    Args:
        storage_root: Folder or URL under which shuffles, runs and results are kept.
        storage_options: How to reach it; see `StorageOptions`.
        credentials: Whose credentials for storage tasks use where the storage options have none:
            `executor` for those of the machine that runs the task, `forward` for those that the
            driver finds, which are sent to tasks with its endpoint and region.
        master: Spark master of a session that this process starts; ignored with `remote`.
        warm: Which processes that would start Spark use a warm one of the same user on this machine
            (of `stagecoach warm`, or of a UI) if it computes the same: `commands`, `always` (Python
            sessions and Dagster's runs, too) or `never`.
        remote: Spark Connect URL (`sc://host:port`), or None for classic Spark.
        connect_seconds: How long to wait for that server while it does not listen, at first or
            because it is started anew.
        executor_seconds: How long a stage waits while Spark has no executor at all, before it fails
            and another Spark session is started for the next try; 0 for as long as it takes. On a
            Spark Connect server: while none of its pending tasks runs.
        time_zone: Session time zone that queries are planned with, an IANA name.
        parallelism: Task slots to plan for; 0 asks Spark (`defaultParallelism`).
        memory_bytes: Memory limit of DuckDB in one task, which spills above it; 0 shares 60 % of
            this machine's memory among its processors.
        writer_memory_bytes: Buffer of the shuffle writer in one task, which spills above it.
        reader_memory_bytes: Stored bytes that the reader of one shuffle input in a task, or of one
            scan from S3, fetches ahead or looks at. One request asks for up to half of it, so a
            task reads at most so much of a map file with one request.
        broadcast_cache_bytes: Memory in which a worker process keeps broadcast inputs for its next
            tasks, and size of those that the workers of a host share in `spill_dir`; 0 reads them
            anew in each task.
        codec: Compression of shuffle files.
        spill_dir: Local folder for spilled data, and for broadcast inputs that the workers of a
            host share; the system's temporary folder by default.
        max_spill_bytes: Most that DuckDB may spill in one worker; 0 leaves it to the free space.
        target_task_bytes: Input above which a stage gets more tasks than slots.
        min_task_bytes: Input below which a stage gets one task; 0 always splits.
        adaptive: Whether a stage that starts looks at the real sizes of what it reads and decides
            by them; false switches off all decisions that have a switch of their own below.
        adaptive_coalesce: Whether neighbouring small partitions are read by one task; otherwise
            each has a task of its own.
        adaptive_skew: Whether a skewed partition is split among tasks.
        adaptive_broadcast: Whether a small input of a partitioned join may be read whole by every
            task.
        adaptive_prune: Whether files and row groups without a key of a finished build side are
            left out.
        adaptive_passing: Whether a task may pass rows on where a partial aggregate would not
            reduce them.
        adaptive_empty: Whether what an empty input makes useless is left out.
        adaptive_complete: Whether a task drops groups that no other task has rows of and that a
            filter above the aggregate refuses.
        adaptive_ranges: Whether a large sorted result is merged by several tasks, each a range of
            the first sort key.
        adaptive_rounds: Whether a scan of which each task joins large inputs has fewer tasks than
            its size asks for.
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
        verify_files: Whether the files of published and deduplicated tables are compared with their
            checksums before they are read; damage is an error then, otherwise it may give wrong
            rows.
        verify_pages: Whether other Parquet files are compared with the checksums of their pages
            before they are read, where their writer has put such checksums there.
        verify_seconds: How long a check of a local file counts on a host; 0 checks each time.
        spark_conf: Further Spark configuration, by name; what is nearer is merged over it, name by
            name.
    """

    storage_root: str = ".stagecoach/storage"
    storage_options: StorageOptions = field(default_factory=StorageOptions)
    credentials: Credentials = "executor"
    master: str = "local[*]"
    warm: WarmUsers = "commands"
    remote: str | None = None
    connect_seconds: float = 60.0
    executor_seconds: float = 300.0
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
    adaptive_coalesce: bool = True
    adaptive_skew: bool = True
    adaptive_broadcast: bool = True
    adaptive_prune: bool = True
    adaptive_passing: bool = True
    adaptive_empty: bool = True
    adaptive_ranges: bool = True
    adaptive_complete: bool = True
    adaptive_rounds: bool = True
    skew_factor: float = 4.0
    skew_bytes: int = 16 * _MB
    late_broadcast_bytes: int = 16 * _MB
    passing_share: float = 0.8
    progress_seconds: float = 0.2
    metrics_pushgateway: str = ""
    log_format: LogFormat = "text"
    claim_seconds: float = 10.0
    recover: bool = True
    verify_files: bool = True
    verify_pages: bool = True
    verify_seconds: float = 600.0
    spark_conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, rule in _rules().items():
            if not rule.fits(value := getattr(self, name)):
                raise ConfigError(refusal(f"setting {name}", value, rule.allowed))
        if str(self.spark_conf.get(ANSI_CONF, "true")).lower() != "true":
            raise ConfigError(f"{ANSI_CONF} cannot be changed: Spark always runs in ANSI mode")
        if self.spark_conf.get(ZONE_CONF, self.time_zone) != self.time_zone:
            raise ConfigError(f"{ZONE_CONF} cannot be changed: set time_zone instead")
        shown = masked(self.spark_conf)
        secrets.register(*(v for name, v in self.spark_conf.items() if shown[name] != v))

    def __repr__(self) -> str:
        values = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        fields = ", ".join(f"{name}={masked(value)!r}" for name, value in values)
        return f"{type(self).__name__}({fields})"

    def decides(self, kind: AdaptiveKind) -> bool:
        """Whether a stage that starts may decide this by the sizes of its inputs."""
        return self.adaptive and bool(getattr(self, f"adaptive_{kind}"))

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

    def updated(self, values: Mapping[str, Any], source: str = "") -> EngineSettings:
        """These settings with some replaced, each a value of the right type or its text.

        Args:
            values: By name; a `spark_conf` is merged over what there is.
            source: Where they come from, for messages.

        Raises:
            ConfigError: For an unknown name or a value that does not fit.
        """
        known = {f.name for f in dataclasses.fields(self)}
        if unknown := sorted(set(values) - known):
            raise ConfigError(
                f"unknown setting '{unknown[0]}'{in_source(source)}; "
                f"{there_are(unknown[0], sorted(known))}"
            )
        changes = {name: _read_value(name, value, source) for name, value in values.items()}
        if "spark_conf" in changes:
            changes["spark_conf"] = {**self.spark_conf, **changes["spark_conf"]}
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """All that can be set, as a process has it.

    Args:
        engine: How queries are run.
        planner: How they are planned.
        sources: Where each value came from that is not the default, by the name of its setting,
            `planner.…` of an option.
    """

    engine: EngineSettings
    planner: PlannerOptions
    sources: Mapping[str, str]


def load_configuration(
    path: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Configuration:
    """What a YAML file says, then `STAGECOACH_*` variables, then `overrides`; the last wins.

    Args:
        path: The file; None for the one that `STAGECOACH_SETTINGS` names, if it does.
        environment: Variables to read; this process's own by default. Those whose name is no
            setting are left to others.
        overrides: Values by name, from the command line for example; an option of the planner as
            `planner.broadcast_bytes`.

    Raises:
        ConfigError: If the file cannot be read, or the name or value of a setting does not fit.
        OptionError: The same of an option of the planner.
    """
    engine, planner = EngineSettings(), PlannerOptions()
    sources: dict[str, str] = {}
    for source, values in _layers(path, environment, overrides):
        options = {
            name.removeprefix(PLANNER_PREFIX): value
            for name, value in values.items()
            if name.startswith(PLANNER_PREFIX)
        }
        settings = {k: v for k, v in values.items() if not k.startswith(PLANNER_PREFIX)}
        engine = engine.updated(settings, source)
        planner = planner.updated(options, source)
        merged = {name: sources[name] for name in ("spark_conf",) if name in sources}
        sources |= dict.fromkeys(values, source)
        sources |= {k: f"{was}, {source}" for k, was in merged.items() if k in values}
    zone = f"{PLANNER_PREFIX}time_zone"
    if zone not in sources:  # plans are made for the zone that they run in
        planner = dataclasses.replace(planner, time_zone=engine.time_zone)
        sources |= {zone: sources["time_zone"]} if "time_zone" in sources else {}
    return Configuration(engine=engine, planner=planner, sources=sources)


def load_settings(
    path: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> EngineSettings:
    """The settings of a run; see `load_configuration`."""
    return load_configuration(path, environment=environment, overrides=overrides).engine


def variable_of(name: str) -> str:
    """The variable of a setting, or of an option of the planner (`planner.…`)."""
    return f"{ENVIRONMENT_PREFIX}{name.replace('.', '__').upper()}"


def setting_names() -> tuple[str, ...]:
    """The names of all settings of a run, in the model's order."""
    return tuple(f.name for f in dataclasses.fields(EngineSettings))


def _layers(
    path: str | os.PathLike[str] | None,
    environment: Mapping[str, str] | None,
    overrides: Mapping[str, Any] | None,
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The values of each source by name, the last one wins."""
    found = os.environ if environment is None else environment
    if path := path or found.get(FILE_VARIABLE):
        yield f"file {os.fspath(path)}", _read_file(Path(path))
    for name in setting_names():
        if (variable := _given_variable(name, found)) is not None:
            yield f"variable {variable}", {name: found[variable]}
    options = variable_of(PLANNER_PREFIX)
    for variable in sorted(v for v in found if v.startswith(options)):
        name = variable.removeprefix(options).lower()
        yield f"variable {variable}", {f"{PLANNER_PREFIX}{name}": found[variable]}
    yield "argument", overrides or {}


def _given_variable(name: str, environment: Mapping[str, str]) -> str | None:
    """The variable that a setting is read from, if there is one."""
    spellings = [variable_of(name), *([OLD_VARIABLES[name]] if name in OLD_VARIABLES else [])]
    # A storage root cannot be empty; a variable that is says nothing.
    given = (v for v in spellings if v in environment and (environment[v] or len(spellings) == 1))
    return next(given, None)


def _read_file(path: Path) -> dict[str, Any]:
    import yaml  # only the driver reads a file

    from stagecoach.infra.config.yaml_text import load_yaml

    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the settings in {path}: {error}") from error
    except yaml.YAMLError as error:
        # Its own text, which a traceback would show, quotes the file.
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        problem = getattr(error, "problem", None) or type(error).__name__
        raise ConfigError(f"cannot read the settings in {path}{place}: {problem}") from None
    if not isinstance(content, dict | None):
        raise ConfigError(f"the settings in {path} are not a mapping of names to values")
    found = {str(name): value for name, value in (content or {}).items()}
    options = found.pop(_PLANNER_SECTION, None)
    if not isinstance(options, dict | None):
        raise ConfigError(
            f"the section '{_PLANNER_SECTION}' of the settings in {path} is not a mapping of names "
            "to values"
        )
    return found | {f"{PLANNER_PREFIX}{name}": value for name, value in (options or {}).items()}


@functools.cache
def _rules() -> Mapping[str, ValueRule]:
    limits = dict.fromkeys(_AT_LEAST_0, Limits()) | dict.fromkeys(_ABOVE_0, Limits(above=True))
    choices = {
        "codec": get_args(Codec),
        "credentials": get_args(Credentials),
        "log_format": get_args(LogFormat),
        "warm": get_args(WarmUsers),
    }
    return rules_of(EngineSettings, limits=limits, choices=choices)


def _read_value(name: str, value: Any, source: str) -> Any:
    try:
        if name == "storage_options":
            return _storage_options(_mapping(value, '{"region": "eu-central-1"}'))
        if name == "spark_conf":
            given = _mapping(value, '{"spark.driver.memory": "4g"}')
            return {str(k): _conf_text(v) for k, v in given.items()}
        if name == "remote":
            return str(value) if value else None
        return _rules()[name].read(value)
    except (ValueError, TypeError, StorageError, RecursionError) as error:
        # Never the value of a setting that may hold secrets.
        if name in _MAY_HOLD_SECRETS:
            text = f"setting {name} has an invalid value{in_source(source)}: {error}"
        else:
            text = refusal(f"setting {name}", without_secrets(value), str(error), source)
        raise ConfigError(text) from None


def _mapping(value: Any, example: str) -> Any:
    """A mapping, or `StorageOptions`; a text, such as that of a variable, is JSON.

    Raises:
        ValueError: It is something else.
    """
    wanted = f"give a JSON object, such as {example}"
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"{wanted} ({error})") from None
    if not isinstance(value, Mapping | StorageOptions):
        raise ValueError(wanted)
    return value


def _storage_options(given: Any) -> StorageOptions:
    """How to reach storage, of plain data.

    Raises:
        StorageError: An option has an unknown name.
        ValueError, TypeError: A value is not valid.
    """
    if isinstance(given, StorageOptions):
        return given
    limits = {
        "part_bytes": Limits(above=True),
        "timeout_seconds": Limits(above=True),
        "retry_seconds": Limits(),
    }
    choices = {"fsync": get_args(FsyncPolicy), "file_identity": get_args(FileIdentityPolicy)}
    rules = rules_of(StorageOptions, limits=limits, choices=choices)
    values = dict(given)
    for name in rules.keys() & values.keys():
        try:
            values[name] = rules[name].read(values[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return StorageOptions.from_dict(values)


def _conf_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
