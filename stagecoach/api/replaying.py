"""Opens runs for `stagecoach replay`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stagecoach.api.storage_root import with_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.replay.recorded_run import RecordedRun


def open_recorded_run(
    name: str, storage: str | None, settings: Mapping[str, object]
) -> RecordedRun:
    """Return a run that has been.

    Args:
        name: Its id, or the first characters of it.
        storage: Folder or URL of the storage root, found as `connect` finds it.
        settings: Values of `EngineSettings` by name.

    Raises:
        ConfigError: There is no such run, or several are meant.
        NotReplayableError: It has left too little.
    """
    from stagecoach.infra.config.settings import load_settings
    from stagecoach.infra.replay.recorded_run import open_run

    found = load_settings(overrides=with_storage(settings, storage))
    return open_run(found.open_store(), found, name)


def spark_of(settings: EngineSettings) -> Callable[[], SparkSession]:
    """Return what gives a Spark session, which starts when it is first asked for."""

    def session() -> SparkSession:
        from stagecoach.infra.spark.session import get_session

        return get_session(settings)

    return session
