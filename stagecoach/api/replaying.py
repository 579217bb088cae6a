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
    from stagecoach.infra.storage.object_store import ObjectStore


def open_recorded_run(
    name: str, storage: str | None, settings: Mapping[str, object], catalog: str
) -> RecordedRun:
    """Return a run that has been.

    Args:
        name: Its id, or the first characters of it; or the name of a published table, whose newest
            version it made, or `TABLE@staged`, whose newest staged result.
        storage: Folder or URL of the storage root, found as `connect` finds it.
        settings: Values of `EngineSettings` by name.
        catalog: The catalog file, which says where the code of the project's functions is. It is
            only read for a query that calls some.

    Raises:
        ConfigError: No run matches, several runs match, or the table has no version yet.
        NotReplayableError: It has left too little.
        CatalogError: The catalog file cannot be used.
    """
    from stagecoach.infra.catalog.catalog import load_catalog
    from stagecoach.infra.config.settings import load_settings
    from stagecoach.infra.replay.recorded_run import open_run

    found = load_settings(overrides=with_storage(settings, storage))
    store = found.open_store()
    run = open_run(store, found, _run_of_table(store, name) or name)
    if not run.graph.functions:
        return run
    return replace(run, code_path=load_catalog(Path(catalog), found.storage_options).code_path)


def _run_of_table(store: ObjectStore, name: str) -> str | None:
    """The run that made what a published table has, or has staged; None if it is no such table."""
    from stagecoach.infra.errors import ConfigError
    from stagecoach.infra.formats.protocol import Access
    from stagecoach.infra.formats.registry import find_stored, stored_formats
    from stagecoach.infra.formats.staged_version import id_of
    from stagecoach.planner.versioned_names import plain_name, split_name

    own, version = split_name(plain_name(name))
    names = {made.lower(): made for item in stored_formats() for made in item.table_names(store)}
    wanted = None if version is None else id_of(version)
    if own.lower() not in names or (version is not None and wanted is None):
        return None
    table = find_stored(store, names[own.lower()], Access())
    if wanted is None:
        current = table.current()
        run_id = current.run_id if current is not None else ""
    else:
        run_id = next((s.run_id for s in reversed(table.staged()) if s.id.startswith(wanted)), "")
    if not run_id:
        raise ConfigError(
            f"no run is known that made '{name}'; `stagecoach tables show {own} --versions` and "
            "`--staged` list what is there"
        )
    return run_id


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
