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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stagecoach.infra.storage.object_store import redact_url
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
    if not isinstance(table, str) or not all(table.split(".")) or "." not in table:
        raise CatalogError(
            f"{place}: 'table' must be a namespace and a name, such as tpch.orders, not {table!r}; "
            "without a catalog, give the 'location' of a metadata file"
        )
    if isinstance(catalog, str) and catalog:
        return IcebergSource(table, catalog)
    if not isinstance(catalog, Mapping):
        raise CatalogError(
            f"{place}: 'catalog' must be the name of a catalog of pyiceberg's configuration, or a "
            f"mapping with its name and properties, not {catalog!r}"
        )
    name = catalog.get("name")
    if not isinstance(name, str) or not name:
        raise CatalogError(f"{place}: 'catalog' has no 'name'")
    found = {str(key): _text(value) for key, value in catalog.items() if key != "name"}
    for key, value in found.items():
        if redact_url(value) != value:
            raise CatalogError(
                f"{place}: 'catalog.{key}' has credentials in it, which everybody would see; put "
                "them into pyiceberg's configuration or its environment variables "
                f"(PYICEBERG_CATALOG__{name.upper()}__{key.upper()})"
            )
    return IcebergSource(table, name, found)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
