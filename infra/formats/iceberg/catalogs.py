"""Opens Iceberg tables with pyiceberg, which is imported when the first one is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.iceberg.declaration import IcebergSource
from stagecoach.infra.host.extras import require_extra
from stagecoach.infra.storage import secrets
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.errors import CatalogError, StagecoachError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
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
    with _translated(source.place or location):
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
        given = {**storage_properties(options), **_absolute(source.properties, folder)}
        kept[key] = load_catalog(source.catalog, **given)
    return kept[key]


def _absolute(properties: Mapping[str, str], folder: str) -> dict[str, str]:
    """The properties with absolute paths of a local warehouse and of an SQLite file."""
    found = dict(properties)
    warehouse = found.get("warehouse", "")
    if warehouse and ":" not in warehouse:
        found["warehouse"] = os.path.join(folder, os.path.expanduser(warehouse))
    path = found.get("uri", "").removeprefix("sqlite:///")
    if path != found.get("uri", "") and path and not path.startswith((":", "/")):
        found["uri"] = f"sqlite:///{os.path.join(folder, path)}"
    return found


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
def _translated(place: str) -> Iterator[None]:
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
