"""What the catalog file says of an Iceberg table: where it is found.

orders:                                  # in a catalog that is described here
format: iceberg
table: tpch.orders
catalog: {name: lake, type: sql, uri: sqlite:////data/lake.db, warehouse: /data/lake}
lines:                                   # in a catalog of pyiceberg's own configuration
format: iceberg
table: tpch.lines
catalog: lake
old_orders:                              # by a metadata file, or the folder of a table that
format: iceberg                        # has a version hint
location: s3://lake/orders/metadata/00003-….metadata.json
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stagecoach.infra.formats.publishing import OutputError
from stagecoach.infra.storage.object_store import redact_url
from stagecoach.infra.storage.secrets import is_secret_name
from stagecoach.planner.errors import CatalogError


@dataclass(frozen=True)
class IcebergSource:
    """Where an Iceberg table is.

    Args:
        table: Its identifier in a catalog, parts separated by dots; empty for a metadata file.
        catalog: Name of the catalog.
        properties: The catalog's properties, which add to those of pyiceberg's configuration.
    """

    table: str = ""
    catalog: str = ""
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def place(self) -> str:
        """How messages name the table; empty for a metadata file."""
        return f"{self.catalog}:{self.table}" if self.table else ""


def read_source(place: str, body: Mapping[Any, Any]) -> IcebergSource:
    """Return where a table is, from its mapping in the catalog file.

    Args:
        place: Where it stands, for messages.
        body: The mapping.

    Raises:
        CatalogError: It says too little, too much, or has a password in it.
    """
    table, catalog = body.get("table"), body.get("catalog")
    if "location" in body:
        if table is not None or catalog is not None:
            raise CatalogError(
                f"{place}: 'location' names a metadata file; leave it out beside 'table' and "
                "'catalog'"
            )
        return IcebergSource()
    if not _is_identifier(table):
        raise CatalogError(
            f"{place}: 'table' must be a namespace and a name, such as tpch.orders, not {table!r}; "
            "without a catalog, give the 'location' of a metadata file"
        )
    try:
        return IcebergSource(str(table), *_catalog(catalog))
    except ValueError as error:
        raise CatalogError(f"{place}: {error}") from None


def read_output(table: str, catalog: object, folder: str) -> dict[str, Any]:
    """Return where the result of a query goes, as plain data.

    Args:
        table: Name of the table, which is that in the catalog.
        catalog: The name of a catalog, or its name and properties.
        folder: Where relative paths of the properties start; empty for the working folder.

    Raises:
        OutputError: The query says too little, or has a password in it.
    """
    if not _is_identifier(table):
        raise OutputError(
            "table",
            "an Iceberg table has a namespace and a name, which a query reads it by: give "
            f"output.table, such as tpch.orders, not {table!r}",
        )
    if catalog is None:
        raise OutputError(
            "catalog",
            "give output.catalog: the name of a catalog of pyiceberg's configuration, or a mapping "
            "with its name and properties",
        )
    try:
        name, properties = _catalog(catalog)
    except ValueError as error:
        raise OutputError("catalog", str(error)) from None
    if secret := next(filter(is_secret_name, properties), None):
        raise OutputError("catalog", _credentials(name, secret))
    return {
        "table": table,
        "catalog": name,
        "properties": absolute_properties(properties, os.path.abspath(folder)),
    }


def absolute_properties(properties: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return a catalog's properties with absolute paths of a local warehouse and an SQLite file."""
    found = dict(properties)
    warehouse = found.get("warehouse", "")
    if warehouse and ":" not in warehouse:
        found["warehouse"] = os.path.join(folder, os.path.expanduser(warehouse))
    path = found.get("uri", "").removeprefix("sqlite:///")
    if path != found.get("uri", "") and path and not path.startswith((":", "/")):
        found["uri"] = f"sqlite:///{os.path.join(folder, path)}"
    return found


def _is_identifier(table: object) -> bool:
    return isinstance(table, str) and all(table.split(".")) and "." in table


def _catalog(catalog: object) -> tuple[str, dict[str, str]]:
    """Name and properties of a catalog; raises ValueError with what is wrong."""
    if isinstance(catalog, str) and catalog:
        return catalog, {}
    if not isinstance(catalog, Mapping):
        raise ValueError(
            f"'catalog' must be the name of a catalog of pyiceberg's configuration, or a "
            f"mapping with its name and properties, not {catalog!r}"
        )
    name = catalog.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("'catalog' has no 'name'")
    found = {str(key): _text(value) for key, value in catalog.items() if key != "name"}
    for key, value in found.items():
        if redact_url(value) != value:
            raise ValueError(_credentials(name, key))
    return name, found


def _credentials(name: str, key: str) -> str:
    return (
        f"'catalog.{key}' has credentials in it, which everybody would see; put them into "
        "pyiceberg's configuration or its environment variables "
        f"(PYICEBERG_CATALOG__{name.upper()}__{key.upper()})"
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
