"""What checks look at: settings, the catalog, a Spark session and what its executors say."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagecoach.infra.storage.trial import PATIENCE_SECONDS
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import StagecoachError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from stagecoach.doctor.machines import MachineReport
    from stagecoach.infra.catalog.catalog import FileCatalog
    from stagecoach.infra.config.settings import EngineSettings


@dataclass
class Place:
    """What is looked at; earlier checks fill in what later ones need.

    Args:
        settings: As a run has them.
        catalog_file: The catalog, which need not be there.
        spark: The session, once a check has started it.
        machines: What executors say, once a check has asked them.
        trial: What `try_store` has found from this machine, once a check has tried.
    """

    settings: EngineSettings
    catalog_file: Path
    spark: SparkSession | None = None
    machines: list[MachineReport] = field(default_factory=list)
    trial: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def catalog(self) -> FileCatalog:
        """The catalog.

        Raises:
            CatalogError: It cannot be read.
        """
        from stagecoach.infra.catalog.catalog import load_catalog

        given = self.settings.storage_options
        hasty = replace(
            given,
            retry_seconds=min(given.retry_seconds, PATIENCE_SECONDS),
            timeout_seconds=min(given.timeout_seconds, PATIENCE_SECONDS),
        )
        return load_catalog(self.catalog_file, hasty)

    @cached_property
    def files(self) -> Mapping[str, str]:
        """URI of a file of each table, by the table's name, as far as they can be listed."""
        if not self.catalog_file.exists():
            return {}
        found: dict[str, str] = {}
        try:
            names = self.catalog.table_names()
        except StagecoachError:
            return {}  # which the check of tables reports
        for name in names:
            try:
                entries = self.catalog.list_files(name)
            except StagecoachError:
                continue  # as above
            if entries:
                found[name] = entries[0].uri
        return found
