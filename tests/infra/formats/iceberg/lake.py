"""A lake for tests of publishing: an SQL catalog on SQLite and what is published in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog import load_catalog

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.catalog.stored import StoredCatalog
from stagecoach.infra.formats.iceberg.declaration import read_output
from stagecoach.infra.formats.iceberg.table_format import FORMAT
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.stored import StoredTable
from stagecoach.infra.publishing.publish import Published, Staged
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from tests.infra.formats.published.outputs import publish_rows, stage_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table


@dataclass(frozen=True)
class Lake:
    """A storage root, and a catalog with its warehouse.

    Attributes:
        folder: Where the catalog's database is.
        store: The storage root.
        properties: Of the catalog.
        table: Name of the table that is published.
    """

    folder: Path
    store: ObjectStore
    properties: dict[str, str]
    table: str = "tpch.orders"

    @property
    def catalog(self) -> IcebergCatalog:
        """The catalog as other tools open it, anew each time."""
        return load_catalog("lake", **self.properties)

    @property
    def opened(self) -> Table:
        """The table as it is now."""
        return self.catalog.load_table(self.table)

    @property
    def place(self) -> dict[str, Any]:
        """`PublishTarget.place` of the table."""
        return read_output(self.table, {"name": "lake", **self.properties}, str(self.folder))

    def publish(self, rows: pa.Table | Sequence[pa.Table], **target: Any) -> Published:
        """Publish rows as the output of a head stage."""
        target = {"format": "iceberg", "place": self.place, **target}
        return publish_rows(self.store, rows, self.table, **target)

    def stage(self, rows: pa.Table, **target: Any) -> Staged | Published:
        """Stage rows as the output of a head stage."""
        target = {"format": "iceberg", "place": self.place, **target}
        return stage_rows(self.store, rows, self.table, **target)

    @property
    def stored(self) -> StoredTable:
        """The table as commands open it."""
        return FORMAT.stored(self.store, self.table, Access())

    def keys(self) -> list[int]:
        """The column `k` of the table, sorted."""
        return sorted(row["k"] for row in self.rows())

    def pending(self) -> list[str]:
        """Records of commits that were not ended."""
        return list(self.store.list(f"iceberg/{self.table}/pending"))

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table as pyiceberg reads them."""
        return list(self.opened.scan().to_arrow().to_pylist())

    def data_files(self) -> set[str]:
        """Names of the files in the table's data folder, live or not."""
        data = open_store(f"{self.opened.location()}/data".removeprefix("file://"), self._options)
        return {key for key in data.list("") if key.endswith(".parquet")}

    @property
    def _options(self) -> StorageOptions:
        return StorageOptions.from_dict(self.store.to_dict().get("options", {}))


def stored_catalog(lake: Lake) -> StoredCatalog:
    """What a session over the storage root reads."""
    return StoredCatalog(FileCatalog([], origin="none"), lake.store)


def local_lake(folder: Path) -> Lake:
    """A lake in a local folder."""
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/lake.db",
        "warehouse": f"file://{folder}/lake",
    }
    return Lake(folder, open_store(folder / "root"), properties)
