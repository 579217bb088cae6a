"""DuckDB reads remote Parquet files by itself: the rows that it reads of local ones."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.engines.duckdb import engine
from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.errors import InputLostError, QueryError
from stagecoach.infra.formats.snapshot import TableSnapshot, take_snapshot
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.reading.inputs import LeafColumn, ParquetInput, leaf_schema
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.damage import raise_if_damaged
from tests.fault_proxy import FaultProxy
from tests.s3_server import S3Server, s3_server

__all__ = ["s3_server"]

pytestmark = pytest.mark.s3

ROWS = 6_000


def every_type(seed: int, rows: int = ROWS) -> pa.Table:
    """Columns of all kinds with NULL, NaN, -0.0 and boundary values."""
    rng = np.random.default_rng(seed)
    nulls = rng.random(rows) < 0.1
    floats = rng.normal(size=rows)
    floats[:4] = [np.nan, -0.0, np.inf, -np.inf]
    longs = rng.integers(-(1 << 63), (1 << 63) - 1, rows)
    longs[:2] = [-(1 << 63), (1 << 63) - 1]
    words = [f"word {n}" * (n % 5) for n in rng.integers(0, 300, rows)]
    days = [
        datetime.date(1900, 1, 1) + datetime.timedelta(int(n))
        for n in rng.integers(0, 90_000, rows)
    ]
    times = pa.array(rng.integers(-(1 << 50), 1 << 50, rows), pa.timestamp("us", "UTC"))
    amounts = [Decimal(int(n)).scaleb(-2) for n in rng.integers(-(10**12), 10**12, rows)]
    return pa.table(
        {
            "n": pa.array(np.arange(rows) + seed * rows),
            "long": pa.array(longs, mask=nulls),
            "small": pa.array(rng.integers(-128, 127, rows), pa.int8(), mask=nulls),
            "double": pa.array(floats, mask=nulls),
            "single": pa.array(floats.astype(np.float32)),
            "word": pa.array(words, mask=nulls),
            "bytes": pa.array([w.encode() for w in words], pa.binary()),
            "flag": pa.array(rng.random(rows) < 0.5, mask=nulls),
            "day": pa.array(days, mask=nulls),
            "moment": times,
            "amount": pa.array(amounts, pa.decimal128(15, 2), mask=nulls),
            "wide": pa.array([a * 10**14 for a in amounts], pa.decimal128(38, 2)),
            "list": pa.array(
                [[n, None] if n % 3 else None for n in range(rows)], pa.list_(pa.int64())
            ),
            "pair": pa.array([{"x": n, "y": str(n)} for n in range(rows)]),
        }
    )


class Tables:
    """A table of a few files, local and on S3.

    Args:
        folder: Where it is locally.
        server: Where else it is.
        options: How that is reached.
    """

    def __init__(self, folder: Path, server: S3Server, options: StorageOptions) -> None:
        self.folder = folder
        self.options = options
        store = open_store(server.new_root(), options)
        assert isinstance(store, FsspecStore)
        self.store = store

    def write(self, *files: pa.Table, **options: Any) -> None:
        (self.folder / "t").mkdir(parents=True, exist_ok=True)
        for number, table in enumerate(files):
            path = self.folder / "t" / f"{number}.parquet"
            pq.write_table(table, path, **{"row_group_size": 500, **options})
            self.put(number, path.read_bytes())

    def put(self, number: int, content: bytes) -> None:
        self.store.write_bytes(f"t/{number}.parquet", content)

    def snapshot(self, *, local: bool) -> TableSnapshot:
        location = str(self.folder / "t") if local else self.store.uri("t")
        catalog = self.folder / f"catalog-{local}.yaml"
        catalog.write_text(f"tables: {{t: {{location: '{location}'}}}}\n", encoding="utf-8")
        return take_snapshot(load_catalog(catalog, self.options), ["t"]).table("t")

    def leaf(
        self, *names: str, local: bool = False, rows: tuple[int, int] | None = None, **how: Any
    ) -> ParquetInput:
        table = self.snapshot(local=local)
        kinds = {field.name: field.dtype for field in table.columns}
        columns = tuple(
            LeafColumn(f"c{i}", name, kinds[name]) for i, name in enumerate(names or kinds)
        )
        files = tuple(f.for_task(rows or (0, f.num_rows)) for f in table.files)
        options = {} if local else self.options.to_dict()
        return ParquetInput(columns, files, options, **how)


@pytest.fixture
def tables(tmp_path: Path, s3_server: S3Server) -> Tables:
    return Tables(tmp_path / "data", s3_server, s3_server.options)


@pytest.fixture
def counted(tmp_path: Path, s3_server: S3Server) -> Iterator[tuple[Tables, FaultProxy]]:
    with FaultProxy(s3_server.endpoint_url).running() as proxy:
        options = replace(s3_server.options, endpoint_url=proxy.url)
        yield Tables(tmp_path / "data", s3_server, options), proxy


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    return Resources(
        time_zone="Europe/Berlin",
        memory_bytes=256 << 20,
        spill_dir=str(tmp_path / "spill"),
        directories=(str(tmp_path / "data"),),
    )


def rows_of(
    resources: Resources, *leaves: ParquetInput, sql: str = "SELECT * FROM in_0"
) -> pa.Table:
    schema = leaf_schema(leaves[0].columns)
    with DuckDbEngine().run(Fragment.of(sql, list(leaves), schema), resources) as batches:
        return pa.Table.from_batches(batches, schema=schema)


def text_of(table: pa.Table) -> list[str]:
    """Rows that can be compared: NaN is not equal to itself."""
    return [repr(row) for row in table.to_pylist()]


@pytest.mark.parametrize("memory_bytes", [128 << 20, 100_000, 2_000])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "compression": "zstd"}])
def test_the_rows_are_those_of_local_files(
    memory_bytes: int, options: dict[str, Any], tables: Tables, resources: Resources
) -> None:
    tables.write(every_type(0), every_type(1, 700), every_type(2), **options)
    expected = rows_of(resources, tables.leaf(local=True))
    assert expected.num_rows == 2 * ROWS + 700
    found = rows_of(resources, tables.leaf(memory_bytes=memory_bytes))
    assert text_of(found) == text_of(expected)


@pytest.mark.parametrize("rows", [(0, 1), (499, 501), (1_200, 3_333), (5_999, 6_000)])
def test_parts_of_files(rows: tuple[int, int], tables: Tables, resources: Resources) -> None:
    tables.write(every_type(0), every_type(1))
    names = ("n", "word", "moment", "pair")
    expected = rows_of(resources, tables.leaf(*names, local=True, rows=rows))
    assert expected.num_rows == 2 * (rows[1] - rows[0])
    found = rows_of(resources, tables.leaf(*names, rows=rows))
    assert text_of(found) == text_of(expected)


def test_a_table_beside_itself(tables: Tables, resources: Resources) -> None:
    """The same files with other columns are another scan."""
    tables.write(every_type(0), every_type(1))
    sql = "SELECT in_0.* FROM in_0 JOIN in_1 ON in_0.c0 = in_1.c1 WHERE in_1.c0 LIKE 'word 1%'"
    local = rows_of(
        resources,
        tables.leaf("n", "day", local=True),
        tables.leaf("word", "n", local=True),
        sql=sql,
    )
    found = rows_of(resources, tables.leaf("n", "day"), tables.leaf("word", "n"), sql=sql)
    assert found.num_rows > 100
    assert sorted(text_of(found)) == sorted(text_of(local))


@pytest.mark.parametrize("kind", ["int96", "no rows", "many files"])
def test_special_files(kind: str, tables: Tables, resources: Resources) -> None:
    if kind == "int96":
        tables.write(every_type(0).select(["n", "moment"]), use_deprecated_int96_timestamps=True)
    elif kind == "no rows":
        tables.write(every_type(0).slice(0, 0), every_type(1, 20))
    else:
        tables.write(*(every_type(n, 30) for n in range(25)))
    expected = rows_of(resources, tables.leaf(local=True))
    assert text_of(rows_of(resources, tables.leaf())) == text_of(expected)


def requests(proxy: FaultProxy) -> Counter[str]:
    return Counter(method for method, _ in proxy.requests)


def test_a_small_file_is_one_request(
    counted: tuple[Tables, FaultProxy], resources: Resources
) -> None:
    tables, proxy = counted
    tables.write(*(every_type(n, 100) for n in range(6)))
    leaf = tables.leaf()
    proxy.requests.clear()
    assert rows_of(resources, leaf).num_rows == 600
    assert requests(proxy) == {"GET": 6}


def test_a_large_file_is_its_footer_and_few_ranges(
    counted: tuple[Tables, FaultProxy], resources: Resources
) -> None:
    tables, proxy = counted
    noise = np.random.default_rng(1).integers(0, 1 << 60, (4, 200_000))
    tables.write(pa.table({name: noise[i] for i, name in enumerate("abcd")}), compression="none")
    leaf = tables.leaf("a", "b", "c", "d")
    proxy.requests.clear()
    assert rows_of(resources, leaf).num_rows == 200_000
    # Its footer, of 400 row groups, is larger than what is asked for at first. 6.4 MB are one window.
    assert requests(proxy) == {"GET": 3}


def test_nothing_is_read_between_columns_that_are_far_apart(
    counted: tuple[Tables, FaultProxy], resources: Resources
) -> None:
    """DuckDB's own model of costs may read the column between them, too, by what reads take."""
    tables, proxy = counted
    groups, rows = 12, 150_000  # 1.2 MB of a row group are between its columns of 0.3 MB
    noise = np.random.default_rng(1).integers(0, 1 << 60, groups * rows)
    small = (noise % 1000).astype(np.int16)
    table = pa.table({"a": small, "b": noise, "c": small})
    kinds = dict.fromkeys("abc", "PLAIN")
    tables.write(
        table, compression="none", use_dictionary=False, column_encoding=kinds, row_group_size=rows
    )
    leaf = tables.leaf("a", "c")
    proxy.requests.clear()
    found = rows_of(resources, leaf, sql="SELECT * FROM in_0 WHERE c0 % 2 = 0")
    assert found["c1"].to_pylist() == small[small % 2 == 0].tolist()
    # The last column of a row group and the first one of the next are one range.
    assert requests(proxy) == {"GET": 1 + groups + 1}


def test_the_gap_between_columns_is_duckdbs_own_for_local_files(
    tables: Tables, resources: Resources
) -> None:
    tables.write(pa.table({"a": pa.array([1], pa.int64())}))
    settings = "SELECT value FROM duckdb_settings() WHERE name = 'parquet_prefetch_column_gap'"
    sql = f"SELECT coalesce(CAST(({settings}) AS BIGINT), -1) AS c0 FROM in_0"
    gaps = [
        rows_of(resources, tables.leaf("a", local=local), sql=sql).to_pylist()
        for local in (False, True, False)
    ]
    assert gaps == [[{"c0": engine._GAP_BYTES}], [{"c0": -1}], [{"c0": engine._GAP_BYTES}]]


def test_nothing_is_left_of_a_fragment(tables: Tables, resources: Resources) -> None:
    tables.write(every_type(0))
    rows_of(resources, tables.leaf())
    with pytest.raises(QueryError):
        rows_of(resources, tables.leaf(), sql="SELECT error('stop') FROM in_0")
    with (
        pytest.raises(ZeroDivisionError),
        DuckDbEngine().run(
            Fragment.of("SELECT * FROM in_0", [tables.leaf("n")], pa.schema([("c0", pa.int64())])),
            resources,
        ),
    ):
        raise ZeroDivisionError
    database = engine._database(resources, os.getpid())
    assert database._scans is not None
    assert database._scans.fragments == {}


def test_a_fragment_reaches_no_other_name(tables: Tables, resources: Resources) -> None:
    tables.write(every_type(0))
    for name in ("stagecoach-scan://files/x/0.parquet", tables.store.uri("t/0.parquet")):
        sql = f"SELECT n FROM in_0 UNION ALL SELECT n FROM read_parquet('{name}')"
        with pytest.raises(QueryError):
            rows_of(resources, tables.leaf("n"), sql=sql)


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_changed_file_is_a_lost_input(change: str, tables: Tables, resources: Resources) -> None:
    tables.write(every_type(0), every_type(1))
    leaf = tables.leaf()
    if change == "replaced":
        path = tables.folder / "t" / "other"
        pq.write_table(every_type(3), path)
        tables.put(1, path.read_bytes())
    else:
        tables.store.delete(["t/1.parquet"])
    with pytest.raises(InputLostError, match=r"t/1\.parquet.*(bytes instead of|no such file)"):
        rows_of(resources, leaf)


@pytest.mark.parametrize("checksums", [False, True])
def test_damage_is_named(checksums: bool, tables: Tables, resources: Resources) -> None:
    options = {"compression": "zstd", "write_page_checksum": checksums}
    tables.write(every_type(0), every_type(1), **options)
    path = tables.folder / "t" / "1.parquet"
    column = pq.read_metadata(path).row_group(3).column(5)
    content = bytearray(path.read_bytes())
    if checksums:
        content[column.data_page_offset + column.total_compressed_size // 3] ^= 1
    else:  # the header of a page
        content[column.data_page_offset : column.data_page_offset + 12] = bytes(12)
    tables.put(1, bytes(content))
    leaf = tables.leaf()
    with pytest.raises(DamagedFileError, match=r"t/1\.parquet.*column 'word', row group 3"):
        try:
            rows_of(resources, leaf)
        except QueryError as error:
            assert not checksums
            raise_if_damaged(error, [leaf])
            raise
