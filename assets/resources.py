"""What runs stages in this process: the resource `engine` of the assets.

In: settings (a file, `STAGECOACH_*` variables, the resource's own values) and a catalog. Out: a
`StageRunner`. Spark starts with the first stage, once a process.
"""

import statistics
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field, PrivateAttr

from assets.engine import StageRequest
from assets.metadata import StageMetadata
from assets.parameters import bind_parameters
from infra.catalog.catalog import FileCatalog, load_catalog
from infra.settings import EngineSettings, load_settings
from infra.storage.layout import shuffle_prefix
from infra.storage.object_store import ObjectStore
from planner.stages import Engine

# The runtime imports pyspark, which loading a code location need not wait for.
if TYPE_CHECKING:
    from infra.runtime.jobs import JobProgress
    from infra.runtime.stage import StageContext, StageResult

MAX_RUNS_KEPT = 8


class StageEngine:
    """Runs stages with `infra.runtime.stage.run_stage`; a `StageRunner`.

    Args:
        settings: The knobs of a run.
        catalog: The tables.
        fresh: Whether a stage runs even where its output is there already.
    """

    def __init__(
        self,
        settings: EngineSettings,
        catalog: FileCatalog,
        *,
        fresh: bool = False,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._fresh = fresh
        self._store = settings.open_store()
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[str, str], _Run] = OrderedDict()

    def run_stage(self, request: StageRequest) -> StageMetadata:
        """Run the stage and return when its output is committed.

        Raises:
            StagecoachError: It failed; `retryable` says whether a retry can help.
        """
        from infra.runtime.stage import run_stage

        run = self._run_of(request)
        with run.told(request):
            result = run_stage(request.stage_id, run.context)
        return to_metadata(result, self._store)

    def cancel_stage(self, request: StageRequest) -> None:
        """Interrupt the stage's Spark jobs, from another thread; may be called again."""
        from infra.runtime.jobs import cancel_stage

        cancel_stage(request.run_id, request.stage_id)

    def _run_of(self, request: StageRequest) -> "_Run":
        """One for all stages of a run: snapshot and fingerprints are computed once."""
        key = (request.run_id, request.graph.plan_hash)
        with self._lock:
            if key not in self._runs:
                self._runs[key] = self._start_run(request)
                while len(self._runs) > MAX_RUNS_KEPT:
                    self._runs.popitem(last=False)
            return self._runs[key]

    def _start_run(self, request: StageRequest) -> "_Run":
        from infra.runtime.stage import StageContext

        run = _Run()
        run.context = StageContext(
            graph=request.graph,
            run_id=request.run_id,
            root_run_id=request.root_run_id,
            settings=self._settings,
            store=self._store,
            catalog=self._catalog,
            parameters=bind_parameters(request.graph, request.parameters),
            progress=run.on_progress,
            fresh=self._fresh,
        )
        return run


class _Run:
    """A run's context, and who hears of the progress of which of its stages."""

    context: "StageContext"

    def __init__(self) -> None:
        self._requests: dict[str, StageRequest] = {}

    @contextmanager
    def told(self, request: StageRequest) -> Iterator[None]:
        """Pass on the progress of this stage while the block runs."""
        from infra.runtime.jobs import job_tag

        tag = job_tag(request.run_id, request.stage_id)
        self._requests[tag] = request
        try:
            yield
        finally:
            self._requests.pop(tag, None)

    def on_progress(self, progress: "JobProgress") -> None:
        """Called from a watching thread of the job."""
        if request := self._requests.get(progress.tag):
            request.progress(progress.completed, progress.total)


def to_metadata(result: "StageResult", store: ObjectStore) -> StageMetadata:
    """What the result of a stage tells."""
    manifest = result.manifest
    engine: Engine | None = None
    if result.engine in ("duckdb", "spark"):
        engine = "duckdb" if result.engine == "duckdb" else "spark"
    if manifest is None:
        return StageMetadata(
            fingerprint=result.fingerprint, seconds=result.seconds, deferred=result.deferred
        )
    return StageMetadata(
        rows=manifest.num_rows,
        bytes=manifest.num_bytes,
        tasks=len(manifest.files),
        partitions=manifest.num_partitions,
        skew=skew(manifest.partition_bytes),
        seconds=result.seconds,
        engine=engine,
        fallback_reason=result.fallback_reason,
        reused=result.reused,
        fingerprint=result.fingerprint,
        uri=store.uri(shuffle_prefix(result.fingerprint)),
        columns=result.columns,
    )


def skew(partition_bytes: Sequence[int]) -> float | None:
    """Bytes of the largest partition divided by the median of those that have any; None for none.

    Empty partitions are left out: few distinct keys are not skew.
    """
    sizes = [size for size in partition_bytes if size]
    return max(sizes) / statistics.median(sizes) if sizes else None


class EngineResource(dg.ConfigurableResource[StageEngine]):
    """Engine, storage and catalog of the runs of a code location.

    Secrets are not here, where the UI would show them: they come from the environment
    (`STAGECOACH_STORAGE_OPTIONS`, or the cloud's own variables).
    """

    catalog: str = Field(description="The catalog file (`catalog.yaml`).")
    storage_root: str = Field(
        default="",
        description="Folder or URL of shuffles, runs and results; empty: as the settings say.",
    )
    settings_file: str = Field(default="", description="A YAML file of settings; empty: none.")
    settings: Mapping[str, str] = Field(
        default={}, description="Further settings by name, above file and environment."
    )
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _engine: StageEngine | None = PrivateAttr(default=None)

    def engine_settings(self) -> EngineSettings:
        """The settings of the runs.

        Raises:
            ConfigError: For an unknown name or a value that does not fit.
        """
        overrides = dict(self.settings)
        if self.storage_root:
            overrides["storage_root"] = self.storage_root
        return load_settings(self.settings_file or None, overrides=overrides)

    def run_stage(self, request: StageRequest) -> StageMetadata:
        """Run a stage; see `StageRunner`."""
        with self._lock:
            if self._engine is None:
                settings = self.engine_settings()
                catalog = load_catalog(self.catalog, settings.storage_options)
                self._engine = StageEngine(settings, catalog)
        return self._engine.run_stage(request)

    def cancel_stage(self, request: StageRequest) -> None:
        """Interrupt a stage's Spark jobs; see `StageRunner`."""
        with self._lock:
            engine = self._engine
        if engine is not None:
            engine.cancel_stage(request)
