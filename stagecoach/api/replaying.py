"""Opens runs for `stagecoach replay`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stagecoach.api.storage_root import with_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.replay.recorded_run import RecordedRun


def open_recorded_run(
    name: str, storage: str | None, settings: Mapping[str, object], catalog: str
) -> RecordedRun:
    """Return a run that has been.

    Args:
        name: Its id, or the first characters of it.
        storage: Folder or URL of the storage root, found as `connect` finds it.
        settings: Values of `EngineSettings` by name.
        catalog: The catalog file, which says where the code of the project's functions is. It is
            only read for a query that calls some.

    Raises:
        ConfigError: There is no such run, or several are meant.
        NotReplayableError: It has left too little.
        CatalogError: The catalog file cannot be used.
    """
    from stagecoach.infra.catalog.catalog import load_catalog
    from stagecoach.infra.config.settings import load_settings
    from stagecoach.infra.replay.recorded_run import open_run

    found = load_settings(overrides=with_storage(settings, storage))
    run = open_run(found.open_store(), found, name)
    if not run.graph.functions:
        return run
    return replace(run, code_path=load_catalog(Path(catalog), found.storage_options).code_path)


def spark_of(run: RecordedRun) -> Callable[[], SparkSession]:
    """Return what gives a Spark session, which starts when it is first asked for."""
    settings = run.settings
    if settings.warm == "commands":
        # Code of the project may depend on the folder that the command runs in.
        settings = replace(settings, warm="never" if run.graph.functions else "always")

    def session() -> SparkSession:
        from stagecoach.infra.spark.session import get_session

        return get_session(settings)

    return session
