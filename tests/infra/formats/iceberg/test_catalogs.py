"""Iceberg tables that pyiceberg has written, through its catalogs, on local disk and on S3."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog import load_catalog as load_iceberg
from pyiceberg.transforms import BucketTransform, MonthTransform
from pyiceberg.types import DoubleType, LongType

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.iceberg import catalogs
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.errors import CatalogError
from tests.infra.formats.iceberg.answers import as_set, files_read, rows, run
from tests.infra.formats.iceberg.rest_server import TOKEN, rest_server
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server

TEXT = """\
tables:
  orders:
    format: iceberg
    table: tpch.orders
    catalog: {catalog}
"""


def opened(folder: Path, catalog: str, options: StorageOptions | None = None) -> FileCatalog:
    path = folder / "catalog.yaml"
    path.write_text(TEXT.format(catalog=catalog))
    return load_catalog(path, options)


def write_history(iceberg: IcebergCatalog) -> list[dict[str, Any]]:
    """Append, evolve, delete and overwrite; the rows that are left."""
    iceberg.create_namespace_if_not_exists("tpch")
    kind = pa.schema([("k", pa.int32()), ("status", pa.string()), ("day", pa.date32())])
    given = [{"k": k, "status": "FO"[k % 2], "day": dt.date(2024, 1 + k % 3, 1)} for k in range(20)]
    table = iceberg.create_table("tpch.orders", kind)
    table.append(pa.Table.from_pylist(given[:10], kind))
    with table.update_spec() as spec:
        spec.add_field("k", BucketTransform(4), "bucket")
        spec.add_field("day", MonthTransform(), "month")
    table.append(pa.Table.from_pylist(given[10:], kind))
    with table.update_schema() as schema:
        schema.rename_column("status", "state")
        schema.update_column("k", LongType())
        schema.add_column("price", DoubleType())
        schema.move_first("day")
    table.delete("k = 3")
    last = {"day": dt.date(2024, 5, 1), "k": 100, "state": "P", "price": 0.5}
    table.append(pa.Table.from_pylist([last], table.schema().as_arrow()))
    kept = ({"day": r["day"], "k": r["k"], "state": r["status"], "price": None} for r in given)
    return [*(r for r in kept if r["k"] != 3), last]


@pytest.fixture
def local(tmp_path: Path) -> IcebergCatalog:
    uri = f"sqlite:///{tmp_path}/lake.db"
    return load_iceberg("lake", type="sql", uri=uri, warehouse=f"file://{tmp_path}/lake")


RELATIVE = "{name: lake, type: sql, uri: 'sqlite:///lake.db', warehouse: lake}"


def test_a_table_of_a_sql_catalog(local: IcebergCatalog, tmp_path: Path) -> None:
    expected = write_history(local)
    catalog = opened(tmp_path, RELATIVE)
    assert as_set(rows(catalog, "SELECT * FROM orders", tmp_path)) == as_set(expected)
    assert catalog.source("orders").location == "lake:tpch.orders"
    found, stages = run(catalog, "SELECT k FROM orders WHERE day > DATE'2024-04-01'", tmp_path)
    assert (found, files_read(stages)) == ([{"k": 100}], 1)
    info = catalog.table("orders")
    assert info is not None
    assert info.stats is not None
    assert info.stats.num_rows == 20
    assert info.stats.columns["k"].max_value == 100
    # What is committed later is seen by the next run.
    table = local.load_table("tpch.orders")
    table.delete("k < 100")
    assert rows(catalog, "SELECT k FROM orders", tmp_path) == [{"k": 100}]


def test_a_catalog_of_pyiceberg_s_configuration(
    local: IcebergCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = write_history(local)
    monkeypatch.setenv("PYICEBERG_CATALOG__STAGE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__STAGE__URI", f"sqlite:///{tmp_path}/lake.db")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", _config())
    # A catalog of SQLite keeps its tables by the catalog's name.
    stage = load_iceberg("stage")
    stage.create_namespace("tpch")
    stage.register_table("tpch.orders", local.load_table("tpch.orders").metadata_location)
    catalog = opened(tmp_path, "stage")
    assert as_set(rows(catalog, "SELECT * FROM orders", tmp_path)) == as_set(expected)


def _config() -> Any:
    from pyiceberg.utils.config import Config

    return Config()


def test_a_table_without_catalog(local: IcebergCatalog, tmp_path: Path) -> None:
    expected = write_history(local)
    location = local.load_table("tpch.orders").metadata_location
    path = tmp_path / "catalog.yaml"
    path.write_text(f"tables:\n  t: {{format: iceberg, location: '{location}'}}\n")
    found = rows(load_catalog(path), "SELECT * FROM t", tmp_path)
    assert as_set(found) == as_set(expected)


def test_a_rest_catalog(
    local: IcebergCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = write_history(local)
    with rest_server(local) as (url, requests):
        monkeypatch.setenv("PYICEBERG_CATALOG__STAGE__TOKEN", TOKEN)
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", _config())
        catalog = opened(tmp_path, f"{{name: stage, type: rest, uri: '{url}'}}")
        assert as_set(rows(catalog, "SELECT * FROM orders", tmp_path)) == as_set(expected)
        assert requests[:2] == ["v1/config", "v1/namespaces/tpch/tables/orders"]
        local.drop_table("tpch.orders")
        with pytest.raises(CatalogError, match=r"Iceberg table stage:tpch\.orders not found"):
            opened(tmp_path, f"{{name: stage, type: rest, uri: '{url}'}}").table("orders")
        monkeypatch.setenv("PYICEBERG_CATALOG__STAGE__TOKEN", "wrong-token")
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", _config())
        with pytest.raises(StorageError, match=r"the catalog of Iceberg table stage:tpch\.orders"):
            opened(tmp_path, f"{{name: stage, type: rest, uri: '{url}'}}").table("orders")


@pytest.mark.s3
def test_tables_on_s3(s3_server: S3Server, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/lake.db"
    options, warehouse = s3_server.options, s3_server.new_root()
    # The test server takes no uploads of pyarrow's, which have no length.
    given = {**catalogs.storage_properties(options), "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}  # fmt: skip
    iceberg = load_iceberg("lake", type="sql", uri=uri, warehouse=warehouse, **given)
    expected = write_history(iceberg)
    catalog = opened(tmp_path, f"{{name: lake, type: sql, uri: '{uri}'}}", options)
    shown = rows(catalog, "SELECT * FROM orders", tmp_path, storage_options=options)
    assert as_set(shown) == as_set(expected)
    found, stages = run(
        catalog, "SELECT k FROM orders WHERE k > 50", tmp_path, storage_options=options
    )
    assert (found, files_read(stages)) == ([{"k": 100}], 1)
    assert rows(catalog, "SELECT count(*) AS n FROM orders", tmp_path, storage_options=options) == [
        {"n": 20}
    ]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{format: iceberg}", "'table' must be a namespace and a name"),
        ("{format: iceberg, table: orders, catalog: lake}", "'table' must be a namespace"),
        ("{format: iceberg, table: a.b}", "'catalog' must be the name of a catalog"),
        ("{format: iceberg, table: a.b, catalog: {type: sql}}", "'catalog' has no 'name'"),
        ("{format: iceberg, table: a.b, catalog: c, location: x}", "leave it out beside 'table'"),
        ("{format: iceberg, table: a.b, catalog: {name: c, uri: 'postgresql://me:pw@host/db'}}", "'catalog.uri' has credentials in it"),
        ("{format: iceberg, table: a.b, catalog: c, snapshot: 1}", "unknown key 'snapshot'"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused(body: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(f"tables:\n  t: {body}\n")
    with pytest.raises(CatalogError, match=problem):
        load_catalog(path)


def test_a_table_that_is_not_there_is_named(local: IcebergCatalog, tmp_path: Path) -> None:
    local.create_namespace("other")
    with pytest.raises(CatalogError, match=r"Iceberg table lake:tpch\.orders not found"):
        opened(tmp_path, RELATIVE).table("orders")
    path = tmp_path / "catalog.yaml"
    path.write_text("tables:\n  t: {format: iceberg, location: gone.metadata.json}\n")
    with pytest.raises(CatalogError, match=r"Iceberg table .*gone.metadata.json not found"):
        load_catalog(path).table("t")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    from stagecoach.infra.errors import ConfigError

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n == "pyiceberg" else real(n, *a)
    )
    with pytest.raises(ConfigError, match=r"pip install 'stagecoach\[iceberg\]'"):
        opened(tmp_path, RELATIVE).table("orders")
