"""A scheme that fsspec learns of holds tables as well as results, without a line of ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import InputLostError, StorageError
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.input_files import check_still_same
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.storage.table_files import list_files, open_file, read_tail, stat_file
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query
from tests.infra.stage_runs import run_here

FORCED = PlannerOptions(force_distribution=True, num_partitions=2, inline_bytes=0)


class ShelfFileSystem(MemoryFileSystem):
    """What a driver's package brings: a class for the scheme."""

    protocol = "shelf"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return MemoryFileSystem._strip_protocol(path.replace("shelf://", "memory://", 1))


@pytest.fixture(params=["shelf", "memory"])
def root(request: pytest.FixtureRequest) -> Iterator[str]:
    scheme = request.param
    if scheme == "shelf":
        fsspec.register_implementation("shelf", ShelfFileSystem, clobber=True)
    yield f"{scheme}://bucket"
    filesystem = fsspec.filesystem(scheme)
    if filesystem.exists("/bucket"):
        filesystem.rm("/bucket", recursive=True)


def write(root: str, key: str, values: list[int]) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"k": values, "v": [v % 3 for v in values]}), sink)
    open_store(root).write_bytes(key, bytes(sink.getvalue()))


def catalog_of(folder: Path, text: str) -> FileCatalog:
    path = folder / "catalog.yaml"
    path.write_text(f"tables:\n  t: {{{text}}}\n")
    return load_catalog(path)


def result_of(sql: str, catalog: FileCatalog, settings: EngineSettings) -> list[dict[str, Any]]:
    store = settings.open_store()
    graph = plan_query(sql, catalog, FORCED, name="q")
    runs = run_here(graph, catalog, settings, store)
    names = [field.name for field in graph.result]
    return read_table(store, runs[-1].manifest).rename_columns(names).to_pylist()


def test_tables_and_results_are_there(
    root: str, tmp_path: Path, spark_settings: EngineSettings
) -> None:
    for part in range(3):
        write(root, f"t/day=2024-01-0{part + 1}/a.parquet", list(range(10 * part, 10 * part + 10)))
    write(root, "t/day=2024-01-01/_hidden.parquet", [99])
    settings = dataclasses.replace(spark_settings, storage_root=f"{root}/results")
    catalog = catalog_of(tmp_path, f"location: '{root}/t'")
    sql = "SELECT v, count(*) AS n FROM t WHERE day > '2024-01-01' GROUP BY v ORDER BY v"
    assert result_of(sql, catalog, settings) == [
        {"v": 0, "n": 6},
        {"v": 1, "n": 7},
        {"v": 2, "n": 7},
    ]
    assert open_store(f"{root}/results").folders("")


@pytest.mark.parametrize(
    ("pattern", "files"),
    [("t", ["a", "b"]), ("t/a.parquet", ["a"]), ("t/*.parquet", ["a", "b"]), ("?/b*", ["b"])],
)
def test_folders_files_and_patterns_are_listed(root: str, pattern: str, files: list[str]) -> None:
    for name in ("a", "b", ".c"):
        write(root, f"t/{name}.parquet", [1])
    found = list_files(f"{root}/{pattern}")
    assert [entry.uri for entry in found] == [f"{root}/t/{name}.parquet" for name in files]
    assert all(stat_file(entry.uri) == entry for entry in found)
    assert read_tail(found[0], 4)[1] == b"PAR1"
    with open_file(found[0].uri)[0] as source:
        assert source.read(4) == b"PAR1"


def test_what_is_missing_is_named(root: str) -> None:
    with pytest.raises(CatalogError, match="nothing does not exist"):
        list_files(f"{root}/nothing")
    with pytest.raises(FileNotFoundError):
        stat_file(f"{root}/nothing/a.parquet")
    with pytest.raises(StorageError, match="no file system for scheme 'nosuch'"):
        list_files("nosuch://bucket/t")


def test_a_replaced_file_is_told(root: str) -> None:
    write(root, "t/a.parquet", [1, 2, 3])
    (before,) = list_files(f"{root}/t")
    file = DataFile(before.uri, 3, num_bytes=before.num_bytes, version=before.version)
    check_still_same([file])
    write(root, "t/a.parquet", [4, 5, 6])
    with pytest.raises(InputLostError, match="it has changed since"):
        check_still_same([file])


def test_deduplicated_tables_are_there(
    root: str, tmp_path: Path, spark_settings: EngineSettings
) -> None:
    catalog = catalog_of(tmp_path, f"kind: deduplicated, location: '{root}/d', primary_key: [k]")
    for version in range(2):
        rows = pa.table({"k": [1, 2, 2 + version], "v": [version] * 3})
        chunk_table(catalog, "t").append([rows], sort=version == 0)
    settings = dataclasses.replace(spark_settings, storage_root=f"{root}/results")
    found = result_of("SELECT k, v FROM t ORDER BY k", catalog, settings)
    assert found == [{"k": 1, "v": 1}, {"k": 2, "v": 1}, {"k": 3, "v": 1}]
