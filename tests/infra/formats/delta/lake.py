"""A Delta table for tests of publishing, and what is published in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from stagecoach.infra.catalog.catalog import FileCatalog
from stagecoach.infra.catalog.stored import StoredCatalog
from stagecoach.infra.formats.delta.output import output_location
from stagecoach.infra.formats.delta.table_format import FORMAT
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.stored import StoredTable
from stagecoach.infra.publishing.publish import Published, Staged
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store
from tests.infra.formats.published.outputs import publish_rows, stage_rows


@dataclass(frozen=True)
class DeltaLake:
    """A storage root, and a folder with a table.

    Attributes:
        folder: A local folder.
        store: The storage root.
        location: The table's folder.
        options: How deltalake reaches it, if it is not local.
        name: Name of the table that is published.
    """

    folder: Path
    store: ObjectStore
    location: str
    options: dict[str, str] | None = None
    name: str = "orders"

    @property
    def opened(self) -> DeltaTable:
        """The table as other tools open it."""
        return DeltaTable(self.location, storage_options=self.options)

    @property
    def place(self) -> dict[str, Any]:
        """`PublishTarget.place` of the table."""
        return {"location": output_location(self.location, "")}

    def publish(self, rows: pa.Table | Sequence[pa.Table], **target: Any) -> Published:
        """Publish rows as the output of a head stage."""
        target = {"format": "delta", "place": self.place, **target}
        return publish_rows(self.store, rows, self.name, **target)

    def stage(self, rows: pa.Table, **target: Any) -> Staged | Published:
        """Stage rows as the output of a head stage."""
        target = {"format": "delta", "place": self.place, **target}
        return stage_rows(self.store, rows, self.name, **target)

    @property
    def stored(self) -> StoredTable:
        """The table as commands open it."""
        return FORMAT.stored(self.store, self.name, Access())

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table as deltalake's engine reads them."""
        found = QueryBuilder().register("t", self.opened).execute("SELECT * FROM t")
        return list(pa.table(found.read_all()).to_pylist())

    def keys(self) -> list[int]:
        """The column `k` of the table, sorted."""
        return sorted(row["k"] for row in self.rows())

    def live_files(self) -> set[str]:
        """Names of the live files."""
        paths = self.opened.get_add_actions().column("path").to_pylist()
        return {unquote(path) for path in paths}

    def data_files(self) -> set[str]:
        """Names of all files in the table's folder, live or not."""
        options = StorageOptions.from_dict(self.store.to_dict().get("options", {}))
        lake = open_store(self.location, options)
        return {key for key in lake.list("") if key.endswith(".parquet") and "_log" not in key}

    def pending(self) -> list[str]:
        """Records of commits that were not ended."""
        return list(self.store.list(f"delta/{self.name}/pending"))


def local_lake(folder: Path) -> DeltaLake:
    """A table in a local folder."""
    return DeltaLake(folder, open_store(folder / "root"), str(folder / "lake" / "orders"))


def stored_catalog(lake: DeltaLake) -> StoredCatalog:
    """What a session over the storage root reads."""
    return StoredCatalog(FileCatalog([], origin="none"), lake.store)
