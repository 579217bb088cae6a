"""Asks Spark for the columns of files, once, so that the catalog file can declare them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from stagecoach.infra.config.settings import EngineSettings


def infer_columns(
    name: str, catalog: str | os.PathLike[str], settings: EngineSettings
) -> Sequence[tuple[str, str]]:
    """Return the columns that Spark finds in a table's files: names, and types as Spark has them.

    Spark reads all files for it. Remote ones are copied to this machine first.

    Args:
        name: Name of the table in the catalog.
        catalog: The catalog file.
        settings: Of the Spark session, which this process starts: a Spark Connect server of
            Stagecoach lets no client look at files for their columns.

    Raises:
        CatalogError: There is no such table, its columns are known otherwise, or Spark cannot read
            the files.
        StorageError: The storage refused.
    """
    from stagecoach.infra.catalog.catalog import load_catalog

    table = load_catalog(os.fspath(catalog), settings.storage_options).open(name).infers()
    if table is None:
        raise CatalogError(
            f"table {name!r}: its columns are known without Spark; 'stagecoach tables {name}' "
            "shows them"
        )
    files = table.inferred_from()

    from stagecoach.infra.engines.spark.engine import inferred_columns
    from stagecoach.infra.engines.spark.errors import SPARK_ERRORS, explain_error
    from stagecoach.infra.runtime.stages.fetched_files import local_copies
    from stagecoach.infra.spark.session import get_session, isolated_session

    settings = replace(settings, remote=None, warm="never")
    with local_copies(files.files, settings, settings.storage_options) as paths:
        reached = tuple(replace(file, uri=paths.get(file.uri, file.uri)) for file in files.files)
        with isolated_session(get_session(settings), "UTC") as spark:
            try:
                return inferred_columns(spark, replace(files, files=reached))
            except SPARK_ERRORS as error:
                raise CatalogError(f"table {name!r}: {explain_error(error, name, name)}") from error
