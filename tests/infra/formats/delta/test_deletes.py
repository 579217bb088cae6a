"""Deletion vectors of Delta tables, and what checkpoints say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from stagecoach.infra.formats.delta.vectors import z85_bytes
from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import scan_request
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.planning import plan_query
from tests.infra.formats.delta.handmade import HandmadeTable, catalog_of, field, z85
from tests.infra.formats.iceberg.answers import rows

KINDS = pytest.mark.parametrize("kind", ["u", "p", "i"])


def numbers(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64())})


def new_table(folder: Path) -> HandmadeTable:
    table = HandmadeTable(folder / "t", ["deletionVectors", "v2Checkpoint"])
    table.schema(field("k", "long"))
    return table


def keys(folder: Path, table: HandmadeTable, where: str = "TRUE", source: str = "t") -> list[Any]:
    catalog = catalog_of(folder, t=table.folder)
    found = rows(catalog, f"SELECT k FROM {source} WHERE {where} ORDER BY k", folder)
    return [row["k"] for row in found]


def deltalakes(table: HandmadeTable) -> list[Any]:
    """What deltalake reads."""
    found = QueryBuilder().register("t", DeltaTable(table.folder)).execute("SELECT k FROM t")
    return sorted(pa.table(found.read_all())["k"].to_pylist())


@KINDS
def test_deletion_vectors_delete_rows(kind: str, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one, two = table.data(numbers(*range(10))), table.data(numbers(*range(10, 20)))
    table.commit(one, two)
    one = table.delete(one, [0, 3], kind)
    assert keys(tmp_path, table) == [1, 2, *range(4, 20)]
    one = table.delete(one, [0, 3, 9], kind, "ab" if kind == "u" else "")
    table.delete(two, list(range(10)), kind)
    assert keys(tmp_path, table) == [1, 2, *range(4, 9)] == deltalakes(table)
    assert keys(tmp_path, table, "k > 5") == [6, 7, 8]
    assert keys(tmp_path, table, source="t VERSION AS OF 0") == list(range(20))
    assert keys(tmp_path, table, source="t VERSION AS OF 1") == [1, 2, *range(4, 20)]
    # Rewritten without the rows, and then the vector of another file only.
    table.commit(table.data(numbers(1, 2)), removed=[one])
    assert keys(tmp_path, table) == [1, 2]


@pytest.mark.parametrize(
    "positions",
    [[], [0], [0, 1, 65535, 65536, 1 << 18], list(range(0, 100_000, 2)), list(range(5, 90_000))],
    ids=["none", "one", "edges", "bitmaps", "runs"],
)
@KINDS
def test_vectors_of_many_shapes(kind: str, positions: list[int], tmp_path: Path) -> None:
    table = new_table(tmp_path)
    count = (1 << 18) + 10
    add = table.data(numbers(*range(count)), group_rows=50_000)
    table.commit(add)
    table.delete(add, positions, kind)
    catalog = catalog_of(tmp_path, t=table.folder)
    found = rows(catalog, "SELECT count(*) AS n, sum(k) AS s FROM t", tmp_path)
    total = count * (count - 1) // 2 - sum(positions)
    assert found == [{"n": count - len(positions), "s": total}]


@pytest.mark.parametrize("kind", ["classic", "parts", "json", "sidecar"])
def test_checkpoints_of_every_kind(kind: str, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one, two, three = (table.data(numbers(i, i + 1, i + 2)) for i in (0, 10, 20))
    table.commit(one, two, three)
    table.delete(one, [1])
    two = table.delete(two, [0], "i")
    table.checkpoint(kind)
    assert keys(tmp_path, table) == [0, 2, 11, 12, 20, 21, 22] == deltalakes(table)
    table.forget(below=table.version)
    assert keys(tmp_path, table) == [0, 2, 11, 12, 20, 21, 22]
    table.delete(two, [0, 1])
    three = table.delete(three, [2], "p")
    table.commit(table.data(numbers(30)), removed=[three])
    assert keys(tmp_path, table) == [0, 2, 12, 30] == deltalakes(table)
    assert keys(tmp_path, table, source="t VERSION AS OF 3") == [0, 2, 12, 20, 21, 22]
    with pytest.raises(CatalogError, match="no longer has version 1: its log was cleaned up below"):
        keys(tmp_path, table, source="t VERSION AS OF 1")


def test_a_checkpoint_that_lacks_a_part_does_not_count(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one, two = table.data(numbers(0, 1)), table.data(numbers(10, 11))
    table.commit(one, two)
    table.delete(one, [0])
    table.checkpoint("parts")
    next(table.log.glob("*.0000000002.0000000002.parquet")).unlink()
    table.delete(two, [1])
    assert keys(tmp_path, table) == [1, 10]


def test_a_damaged_vector_is_named(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    add = table.data(numbers(*range(10)))
    table.commit(add)
    table.delete(add, [1, 2, 9])
    (path,) = table.folder.glob("*.bin")
    raw = bytearray(path.read_bytes())
    raw[-8] ^= 1
    path.write_bytes(raw)
    with pytest.raises(AssertionError, match="checksum mismatch of the deletion vector at byte"):
        keys(tmp_path, table)
    path.unlink()
    with pytest.raises(AssertionError, match=r"deletion_vector_.*there is no such file"):
        keys(tmp_path, table)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"pathOrInlineDv": "0" * 10}, "it begins with 00000000"),
        ({"pathOrInlineDv": "0" * 9}, "is not Z85: 9 digits"),
        ({"pathOrInlineDv": "~" * 10}, "is not Z85"),
        ({"cardinality": 7}, "it has 3 positions instead of 7"),
        ({"storageType": "x"}, "has the storage type 'x'"),
    ],
)
def test_a_damaged_vector_in_the_log_is_refused(
    change: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    table = new_table(tmp_path)
    add = table.data(numbers(*range(10)))
    table.commit(add)
    vector = table.vector([1, 2, 9], "i")
    table.commit({**add, "deletionVector": {**vector, **change}}, removed=[add])
    with pytest.raises(CatalogError, match=problem):
        keys(tmp_path, table)


def test_z85_is_that_of_its_specification() -> None:
    assert z85_bytes("HelloWorld") == bytes.fromhex("864fd26fb559f75b")
    for raw in (b"", bytes(4), b"\xff" * 8, bytes(range(64))):
        assert z85_bytes(z85(raw)) == raw


def test_the_fingerprint_is_of_the_files_that_are_read(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    low, high = table.data(numbers(1, 2)), table.data(numbers(101, 102))
    table.commit(low, high)

    def scanned() -> object:
        catalog = catalog_of(tmp_path, t=table.folder)
        graph = plan_query("SELECT k FROM t WHERE k < 50", catalog)
        (leaf,) = graph.stages[0].leaves
        assert isinstance(leaf, ScanExec)
        request = scan_request(graph.stages[0].fragment, leaf, "delta", {}, "UTC")
        return table_format("delta").scanned(request, catalog.state("t").snapshot)

    before = scanned()
    # Compaction of files that are not read, and deletes of their rows, change nothing.
    again = table.data(numbers(101, 102))
    table.commit(again, removed=[high])
    table.delete(again, [0])
    table.checkpoint("classic")
    assert scanned() == before
    table.schema(field("k", "long"), field("more", "string"))
    table.commit()
    assert scanned() == before
    low = table.delete(low, [0])
    after = scanned()
    assert after != before
    table.delete(low, [0, 1])
    assert scanned() not in (before, after)
