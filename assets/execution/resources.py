"""The resource `engine` of the assets: a `StageEngine` of this process, made when it is needed.

It is configured by a settings file, `STAGECOACH_*` variables and its own values.
"""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
from pydantic import Field, PrivateAttr

from stagecoach.assets.execution.engine import FailureLog, StageRequest
from stagecoach.assets.execution.stage_engine import StageEngine
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import (
    Configuration,
    EngineSettings,
    load_configuration,
    setting_names,
    variable_of,
)
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.formats.publishing import PublishTarget
from stagecoach.infra.storage.masking import holds_secrets
from stagecoach.infra.storage.object_store import ObjectStore

# The runtime imports pyspark, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.publishing.publish import Published, Staged


def _refuse_secrets(given: Mapping[str, str]) -> None:
    """Refuse settings that Dagster would store, and show in its UI.

    Raises:
        ConfigError: One has a secret in it.
    """
    for name in given.keys() & setting_names():
        if holds_secrets(getattr(EngineSettings().updated({name: given[name]}), name)):
            raise ConfigError(
                f"setting {name} of the engine resource contains a secret, which Dagster would "
                f"store and show; set the variable {variable_of(name)} instead"
            )


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
        default={},
        description="Further settings by name, above file and environment; options of the planner "
        "as `planner.NAME`.",
    )
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _engine: StageEngine | None = PrivateAttr(default=None)

    def configuration(self) -> Configuration:
        """The settings of the runs, and how their queries are planned.

        Raises:
            ConfigError: For an unknown name, a value that does not fit, or one with a secret in it.
            OptionError: The same of an option of the planner.
        """
        overrides = dict(self.settings)
        if self.storage_root:
            overrides["storage_root"] = self.storage_root
        found = load_configuration(self.settings_file or None, overrides=overrides)
        _refuse_secrets(overrides)
        return found

    def engine_settings(self) -> EngineSettings:
        """The settings of the runs; see `configuration`."""
        return self.configuration().engine

    def run_stage(self, request: StageRequest) -> StageMetadata:
        """Run a stage; see `StageRunner`."""
        return self._started().run_stage(request)

    def _started(self) -> StageEngine:
        with self._lock:
            if self._engine is None:
                settings = self.engine_settings()
                catalog = load_catalog(self.catalog, settings.storage_options)
                self._engine = StageEngine(settings, catalog)
            return self._engine

    def cancel_stage(self, request: StageRequest) -> None:
        """Interrupt a stage's Spark jobs; see `StageRunner`."""
        with self._lock:
            engine = self._engine
        if engine is not None:
            engine.cancel_stage(request)

    def store(self) -> ObjectStore:
        """The storage root; see `HasStore`."""
        with self._lock:
            engine = self._engine
        return self.engine_settings().open_store() if engine is None else engine.store()

    def publish(self, request: StageRequest, target: PublishTarget) -> "Published":
        """Publish a result; see `Publishes`."""
        return self._started().publish(request, target)

    def stage(self, request: StageRequest, target: PublishTarget) -> "Staged | Published":
        """Stage a result; see `Stages`."""
        return self._started().stage(request, target)

    def publish_staged(self, staged: "Staged") -> "Published":
        """Make visible what was staged; see `Stages`."""
        return self._started().publish_staged(staged)

    def is_accepted(self, table: str, fingerprint: str) -> bool:
        """Whether somebody has published a result by hand; see `Stages`."""
        return self._started().is_accepted(table, fingerprint)

    def table_uri(self, table: str) -> str:
        """Folder of a published table."""
        return self._started().table_uri(table)

    def first_rows(self, request: StageRequest, limit: int) -> pa.Table:
        """Run a whole query; see `HasRows`."""
        return self._started().first_rows(request, limit)

    def query_ended(self, request: StageRequest) -> None:
        """A query has ended in a run; see `HearsOfEnds`."""
        with self._lock:
            engine = self._engine
        if engine is not None:
            engine.query_ended(request)

    def run_ended(self, run_id: str) -> None:
        """A Dagster run has ended; see `HearsOfEnds`."""
        with self._lock:
            engine = self._engine
        if engine is not None:
            engine.run_ended(run_id)

    def failure_log(self, request: StageRequest) -> FailureLog | None:
        """What the tasks of a failed stage said; see `HasFailureLog`."""
        with self._lock:
            engine = self._engine
        return None if engine is None else engine.failure_log(request)
