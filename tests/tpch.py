"""Real TPC-H data for tests: Parquet files of a scale factor, and a catalog over them.

The fixture `tpch` makes tiny tables of three files each, once a test process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.tpch import TABLES, generate, write_catalog

QUERIES = Path(__file__).parents[1] / "pipelines" / "queries"
NAMES = tuple(f"q{number:02d}" for number in range(1, 23))
SCALE_FACTOR = 0.01
PARTS = 3


@dataclass(frozen=True)
class Tpch:
    """The eight tables.

    Args:
        folder: Holds a folder of Parquet files for each table.
        catalog_file: A catalog over them.
    """

    folder: Path
    catalog_file: Path

    @cached_property
    def catalog(self) -> FileCatalog:
        return load_catalog(self.catalog_file)

    def catalog_at(self, root: str, options: StorageOptions, target: Path) -> FileCatalog:
        """A catalog over a copy of the tables, written to `target`.

        Args:
            root: URL of the folder that holds the copies.
            options: How to reach it.
            target: The catalog file.
        """
        lines = [f"  {t}:\n    location: {root}/{t}\n    format: parquet\n" for t in TABLES]
        target.write_text("tables:\n" + "".join(lines), encoding="utf-8")
        return load_catalog(target, options)


def query_file(name: str) -> Path:
    return QUERIES / f"{name}.sql"


def query_text(name: str) -> str:
    return query_file(name).read_text(encoding="utf-8")


def make_tpch(folder: Path, scale_factor: float = SCALE_FACTOR, parts: int = PARTS) -> Tpch:
    """Generate the tables in a folder that does not exist yet."""
    generate(folder / "tables", scale_factor, parts=parts)
    write_catalog(folder / "catalog.yaml", folder / "tables")
    return Tpch(folder / "tables", folder / "catalog.yaml")


@pytest.fixture(scope="session")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Tpch:
    """TPC-H at scale factor 0.01, three files a table (one of `nation` and of `region`)."""
    return make_tpch(tmp_path_factory.mktemp("tpch"))


def some(names: Sequence[str], quick: Sequence[str]) -> list[object]:
    """The names as pytest parameters; those that are not among `quick` are marked slow."""
    return [n if n in quick else pytest.param(n, marks=pytest.mark.slow) for n in names]
