"""Opens Iceberg tables with pyiceberg, which is imported when the first one is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.iceberg.declaration import IcebergSource, absolute_properties
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.host.extras import require_extra
from stagecoach.infra.storage import secrets
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.errors import CatalogError, StagecoachError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table


def open_table(
    source: IcebergSource,
    location: str,
    folder: str,
    options: StorageOptions,
    kept: dict[str, Catalog],
) -> Table:
    """Return a table as it is now.

    Args:
        source: Where it is.
        location: Its metadata file or its folder, if it is in no catalog.
        folder: Where relative paths of the catalog's properties start.
        options: How to reach storage; properties of the catalog come before them.
        kept: Catalogs that are open, by name; gets this one.

    Raises:
        CatalogError: There is no such table or catalog, or its metadata cannot be read.
        ConfigError: pyiceberg is not installed.
        StorageError: The catalog or its storage does not answer.
    """
    require_extra("iceberg", "pyiceberg", "a table with 'format: iceberg'")
    with translated(source.place or location):
        if not source.table:
            from pyiceberg.table import StaticTable

            return StaticTable.from_metadata(location, storage_properties(options))
        return open_catalog(source, folder, options, kept).load_table(source.table)


def open_catalog(
    source: IcebergSource, folder: str, options: StorageOptions, kept: dict[str, Catalog]
) -> Catalog:
    """Return the catalog of a table; see `open_table`."""
    from pyiceberg.catalog import load_catalog

    key = f"{source.catalog} {sorted(source.properties.items())}"
    if key not in kept:
        given = {**storage_properties(options), **absolute_properties(source.properties, folder)}
        kept[key] = load_catalog(source.catalog, **given)
    return kept[key]


def find_table(
    source: IcebergSource, options: StorageOptions, kept: dict[str, Catalog]
) -> Table | None:
    """Return a table of a catalog as it is now; None if there is none. See `open_table`."""
    require_extra("iceberg", "pyiceberg", "a table with 'format: iceberg'")
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    with translated(source.place):
        catalog = open_catalog(source, "", options, kept)
        try:
            return catalog.load_table(source.table)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None


def create_table(
    source: IcebergSource,
    options: StorageOptions,
    kept: dict[str, Catalog],
    schema: Schema,
    spec: PartitionSpec,
) -> Table:
    """Create a table of version 2, and its namespace, unless another writer is first.

    Raises:
        CatalogError: The catalog refuses.
        StorageError: The catalog or its storage does not answer.
    """
    from pyiceberg.exceptions import TableAlreadyExistsError

    with translated(source.place):
        catalog = open_catalog(source, "", options, kept)
        catalog.create_namespace_if_not_exists(source.table.rpartition(".")[0])
        try:
            return catalog.create_table(
                source.table, schema, partition_spec=spec, properties={"format-version": "2"}
            )
        except TableAlreadyExistsError:
            return catalog.load_table(source.table)


def check_writable(name: str, table: Table) -> None:
    """Look whether a table is of a version that is written.

    Raises:
        PublishError: It is not.
    """
    if table.format_version > 2:
        raise PublishError(
            f"table '{name}' has version {table.format_version} of Iceberg's format; results are "
            "written in version 2: publish to another table"
        )


def storage_properties(options: StorageOptions) -> dict[str, str]:
    """Return how storage is reached, as properties of pyiceberg's FileIO."""
    endpoint = options.endpoint_url or next(
        (os.environ[n] for n in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if n in os.environ),
        None,
    )
    given = {
        "s3.endpoint": endpoint,
        "s3.region": options.region,
        "s3.access-key-id": options.access_key,
        "s3.secret-access-key": options.secret_key,
        "s3.session-token": options.session_token,
        "s3.connect-timeout": str(options.timeout_seconds),
    }
    return {name: value for name, value in given.items() if value}


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn pyiceberg's errors, and those of the clients below it, into ours."""
    from pyiceberg import exceptions as pe

    try:
        yield
    except StagecoachError:
        raise
    except (pe.NoSuchTableError, pe.NoSuchNamespaceError, FileNotFoundError) as error:
        problem = secrets.redact(" ".join(str(error).split()))
        raise CatalogError(f"Iceberg table {place} not found: {problem}") from error
    except ModuleNotFoundError as error:
        raise CatalogError(
            f"the catalog of {place} needs another package: {error}; install pyiceberg's extra for "
            "it, such as pip install 'pyiceberg[glue]'"
        ) from error
    except (pe.NotInstalledError, ValueError, KeyError, TypeError, pe.ValidationError) as error:
        problem = secrets.redact(" ".join(str(error).split()))
        raise CatalogError(f"Iceberg table {place} cannot be opened: {problem}") from error
    except Exception as error:
        # Of requests, SQLAlchemy, Thrift, botocore, … whichever the catalog uses.
        if isinstance(error, (AttributeError, AssertionError, NameError)):
            raise
        problem = secrets.redact(f"{type(error).__name__}: {' '.join(str(error).split())}")
        raise StorageError(f"the catalog of Iceberg table {place} failed: {problem}") from error
