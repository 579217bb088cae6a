"""Writes the TPC-H tables in other formats, each with a catalog file over them.

Tables are written from Parquet (`stagecoach.tpch`) by the formats' own libraries, a commit for each
file, and only if they are not there yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow.parquet as pq

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.tpch import TABLES, write_catalog

CATALOG_FILE = "catalog.yaml"
_DONE = "written"
_CSV_TYPES = MappingProxyType({"INTEGER": "INT", "VARCHAR": "STRING"})


def write_parquet(parquet: Path, folder: Path) -> None:
    """Write a catalog over the Parquet files themselves."""
    write_catalog(folder / CATALOG_FILE, parquet)


def write_csv(parquet: Path, folder: Path) -> None:
    """Write one file for each table, with a header and `|` between fields."""
    lines = ["tables:"]
    with duckdb.connect() as connection:
        for table in TABLES:
            source = f"read_parquet('{parquet / table}/*.parquet')"
            target = folder / table / "part.csv"
            target.parent.mkdir(parents=True)
            connection.execute(
                f"COPY (SELECT * FROM {source}) TO '{target}' (HEADER, DELIMITER '|')"
            )
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            lines += [f"  {table}:", f"    location: {table}", "    format: csv"]
            lines += ["    options: {header: true, sep: '|'}", "    columns:"]
            lines += [f"      {name}: {_CSV_TYPES.get(kind, kind)}" for name, kind, *_ in described]
    (folder / CATALOG_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_iceberg(parquet: Path, folder: Path) -> None:
    """Write tables of an SQL catalog on SQLite."""
    from pyiceberg.catalog.sql import SqlCatalog

    uri, warehouse = f"sqlite:///{folder / 'lake.db'}", str(folder / "warehouse")
    catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
    catalog.create_namespace("tpch")
    for table in TABLES:
        files = sorted((parquet / table).glob("*.parquet"))
        made = catalog.create_table(f"tpch.{table}", pq.read_schema(files[0]))
        for file in files:
            made.append(pq.read_table(file))
    place = f"catalog: {{name: lake, type: sql, uri: '{uri}', warehouse: '{warehouse}'}}"
    lines = [f"  {t}: {{format: iceberg, table: tpch.{t}, {place}}}" for t in TABLES]
    (folder / CATALOG_FILE).write_text("\n".join(["tables:", *lines, ""]), encoding="utf-8")


def write_delta(parquet: Path, folder: Path) -> None:
    """Write tables, each in a folder of its own."""
    from deltalake import write_deltalake

    for table in TABLES:
        for file in sorted((parquet / table).glob("*.parquet")):
            write_deltalake(str(folder / table), pq.read_table(file), mode="append")
    lines = [f"  {t}: {{format: delta, location: {t}}}" for t in TABLES]
    (folder / CATALOG_FILE).write_text("\n".join(["tables:", *lines, ""]), encoding="utf-8")


WRITERS: Mapping[str, Callable[[Path, Path], None]] = MappingProxyType(
    {
        "parquet": write_parquet,
        "iceberg": write_iceberg,
        "delta": write_delta,
        "csv": write_csv,
    }
)
"""By name of the format."""


def catalog_over(name: str, parquet: Path, folder: Path) -> Path:
    """Return the catalog file of the tables in a format, which are written if need be.

    Args:
        name: Of the format.
        parquet: A folder for each table.
        folder: Where the tables in the format are, or go.
    """
    if not (folder / _DONE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        WRITERS[name](parquet, folder)
        load_catalog(folder / CATALOG_FILE)
        (folder / _DONE).touch()
    return folder / CATALOG_FILE
