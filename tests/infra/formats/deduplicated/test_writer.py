"""Deduplicated tables as the protocol of formats has them: staged writes, versions, metadata."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.deduplicated.errors import AppendError
from stagecoach.planner.errors import CatalogError


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    path = tmp_path / "catalog.yaml"
    path.write_text("tables: {t: {kind: deduplicated, location: t, primary_key: [k]}}")
    found = load_catalog(path)
    writer = found.open("t").writer("first")
    assert writer.stage([pa.table({"k": [1, 2]})]) == 2
    assert writer.publish() == 1
    return found


def files_of(catalog: FileCatalog) -> list[str]:
    folder = Path(catalog.source("t").location) / "chunks"
    return sorted(path.name for path in folder.iterdir())


def test_nothing_is_visible_before_it_is_published(catalog: FileCatalog) -> None:
    writer = catalog.open("t").writer("second")
    assert writer.stage([pa.table({"k": [3], "v": [1]})]) == 1
    assert writer.stage([pa.table({"k": [4], "w": ["x"]})]) == 1
    assert catalog.state("t").snapshot.num_rows == 2
    assert writer.publish() == writer.publish() == 2
    assert catalog.state("t").snapshot.num_rows == 4
    assert [field.name for field in catalog.state("t").info.columns] == ["k", "v", "w"]


def test_a_token_is_published_once_whatever_came_after(catalog: FileCatalog) -> None:
    for token in ("second", "first", "second"):
        writer = catalog.open("t").writer(token)
        writer.stage([pa.table({"k": [5]})])
        assert writer.publish() == 2
    assert catalog.state("t").snapshot.num_rows == 3
    assert len(files_of(catalog)) == 2, "files of a repeated commit are removed"


def test_discarded_rows_leave_no_file(catalog: FileCatalog) -> None:
    before = files_of(catalog)
    writer = catalog.open("t").writer("second")
    writer.stage([pa.table({"k": [6]})])
    assert files_of(catalog) != before
    writer.discard()
    assert files_of(catalog) == before
    with pytest.raises(AppendError):
        writer.stage([pa.table({"v": [6]})])
    assert files_of(catalog) == before


def test_older_versions_are_read(catalog: FileCatalog) -> None:
    table = catalog.open("t")
    writer = table.writer("second")
    writer.stage([pa.table({"k": [2, 3]})])
    writer.publish()
    assert [table.state(number).snapshot.num_rows for number in (1, 2)] == [2, 4]
    with pytest.raises(StorageError, match="has no version 3"):
        table.state(3)
    versions = table.metadata()["versions"]().to_pylist()
    assert [(v["version"], v["num_rows"], v["num_files"]) for v in versions] == [
        (1, 2, 1),
        (2, 4, 2),
    ]
    assert table.metadata()["files"]().column("num_rows").to_pylist() == [2, 2]


def test_tables_that_are_only_read_have_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text("tables: {t: {location: t}}")
    with pytest.raises(CatalogError, match="can only be read"):
        load_catalog(path).open("t").writer("x")
