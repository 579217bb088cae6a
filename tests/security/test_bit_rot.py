"""One flipped bit in a stored file: the right rows or a clear error, never other rows."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import InputLostError, QueryError
from stagecoach.infra.formats.deduplicated import table_format
from stagecoach.infra.formats.deduplicated.compaction import compact
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.formats.version_json import seal
from stagecoach.infra.integrity import parquet as integrity
from stagecoach.infra.integrity.checksums import unpack_chunks
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.parquet import compute_checksums, find_damage
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.runtime.stages.run_stage import Run
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import CatalogError
from tests.contexts import new_context, run_stages
from tests.infra.runtime.test_stage import broken_on
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server
from tests.security.bit_rot import (
    Rotting,
    deduplicated,
    middle,
    places,
    published,
    random_places,
    rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("published", "parquet chunks", "arrow chunks")
ONE_WITH_SPARK = ("published", False)
PLACES = (
    "dictionary page",
    "dictionary header",
    "page header",
    "data page",
    "footer",
    "length of the footer",
    "trailer",
)


def settings_in(folder: Path) -> EngineSettings:
    return EngineSettings(
        storage_root=str(folder / "store"),
        spill_dir=str(folder / "spill"),
        parallelism=1,
        memory_bytes=256 << 20,
    )


def table(kind: str, folder: Path, settings: EngineSettings | None = None) -> Rotting:
    settings = settings or settings_in(folder)
    if kind == "published":
        return published(settings.open_store(), settings)
    location = str(folder / "chunks")
    sort = kind == "parquet chunks"
    return deduplicated(settings.open_store(), settings, location, sort=sort)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_anywhere_gives_the_right_rows_or_the_error(
    kind: str, tmp_path: Path
) -> None:
    rotting = table(kind, tmp_path)
    graph = rotting.plan()
    expected = rotting.answer(graph)
    found = 0
    for number, key in enumerate(rotting.keys):
        content = rotting.tables.read_bytes(key)
        for position, bit in random_places(content, 40, seed=number):
            with rotting.flipped(key, position, bit):
                try:
                    assert rotting.answer(graph) == expected, (key, position, bit)
                except DamagedFileError as error:
                    found += 1
                    assert not error.retryable
                    assert key.rsplit("/", 1)[-1] in str(error)
                except CatalogError as error:  # the footer of a published file, while planning
                    found += 1
                    assert key.rsplit("/", 1)[-1] in str(error)
    assert found >= 70  # nearly all bytes are read
    assert rotting.answer(graph) == expected


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["published", "parquet chunks"])
def test_every_part_of_a_parquet_file_is_checked(kind: str, place: str, tmp_path: Path) -> None:
    rotting = table(kind, tmp_path)
    graph = rotting.plan()
    key = rotting.keys[-1]
    position = places(rotting.tables.read_bytes(key))[place]
    with (
        rotting.flipped(key, position),
        pytest.raises((DamagedFileError, CatalogError)) as raised,
    ):
        rotting.answer(graph)
    if "footer" not in place and place != "trailer":
        assert isinstance(raised.value, DamagedFileError)
        assert (raised.value.column, raised.value.row_group) == ("name", 0)
        assert "table 't'" in str(raised.value)


@pytest.mark.parametrize("place", ["the schema", "a record batch", "the footer"])
def test_every_part_of_an_arrow_file_is_checked(place: str, tmp_path: Path) -> None:
    rotting = table("arrow chunks", tmp_path)
    graph = rotting.plan()
    key = rotting.keys[0]
    size = len(rotting.tables.read_bytes(key))
    position = {"the schema": 60, "a record batch": size // 2, "the footer": size - 30}[place]
    with rotting.flipped(key, position), pytest.raises(DamagedFileError) as raised:
        rotting.answer(graph)
    assert raised.value.row_group == (None if place == "the footer" else 0)


def test_columns_that_are_not_read_are_not_checked(tmp_path: Path) -> None:
    rotting = table("published", tmp_path)
    graph = rotting.plan("SELECT sum(id) AS ids FROM t")
    key = rotting.keys[0]
    with rotting.flipped(key, places(rotting.tables.read_bytes(key))["data page"]):
        assert rotting.answer(graph) == [{"c0": sum(range(len(rows()) * 2))}]


def test_a_flip_between_two_queries_is_found(tmp_path: Path) -> None:
    """A check counts for the version of the file that was checked, whatever its size and time."""
    rotting = table("published", tmp_path)
    graph = rotting.plan()
    rotting.answer(graph)
    for key in rotting.keys:
        position = places(rotting.tables.read_bytes(key))["data page"]
        with rotting.flipped(key, position), pytest.raises(DamagedFileError):
            rotting.answer(graph)
        rotting.answer(graph)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_are_checked_once_on_a_host(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stagecoach.infra.integrity import arrow, local

    checked: list[int] = []
    real = integrity.range_checksum

    def counted(reader: Any, start: int, *rest: Any) -> int:
        checked.append(start)
        return real(reader, start, *rest)

    for module in (integrity, arrow):
        monkeypatch.setattr(module, "range_checksum", counted)
    rotting = table(kind, tmp_path)
    graph = rotting.plan()
    rotting.answer(graph)
    assert checked
    checked.clear()
    rotting.answer(graph)
    local._checked_parts.cache_clear()  # as another process of the host
    rotting.answer(graph)
    assert not checked
    always = replace(rotting, settings=replace(rotting.settings, verify_seconds=0.0))
    always.answer(graph)
    assert checked


def test_checks_can_be_turned_off(tmp_path: Path) -> None:
    rotting = table("published", tmp_path)
    graph = rotting.plan()
    expected = rotting.answer(graph)
    trusting = replace(rotting, settings=replace(rotting.settings, verify_files=False))
    key = rotting.keys[0]
    metadata = pq.read_metadata(rotting.path(key))
    value = metadata.row_group(0).column(1)
    assert value.path_in_schema == "value"
    with rotting.flipped(key, middle(value)):
        assert trusting.answer(graph) != expected
        with pytest.raises(DamagedFileError):
            rotting.answer(graph)


def test_damage_of_a_published_table_names_the_run(tmp_path: Path) -> None:
    rotting = table("published", tmp_path)
    graph = rotting.plan()
    version = read_current(rotting.store, "t")
    assert version is not None
    marked = replace(
        version, number=3, parts=tuple(replace(p, run_id=f"run-{p.version}") for p in version.parts)
    )
    rotting.store.write_bytes("results/t/versions/000000000003.json", marked.to_json())
    position = places(rotting.tables.read_bytes(rotting.keys[1]))["data page"]
    with (
        rotting.flipped(rotting.keys[1], position),
        pytest.raises(DamagedFileError) as raised,
    ):
        rotting.answer(graph)
    text = str(raised.value)
    assert "of table 't', version 3 is damaged (column 'name', row group 0)" in text
    assert "run run-2 wrote it" in text
    assert "stagecoach tables clear t" in text


@pytest.mark.parametrize("kind", ["parquet chunks", "arrow chunks"])
def test_compaction_refuses_and_leaves_the_table(kind: str, tmp_path: Path) -> None:
    rotting = table(kind, tmp_path)
    graph = rotting.plan()
    expected = rotting.answer(graph)
    catalog: Any = rotting.catalog()
    chunks = chunk_table(catalog, "t")
    before = sorted(rotting.tables.list(""))
    for key in rotting.keys:
        content = rotting.tables.read_bytes(key)
        for position, bit in random_places(content[:-12], 12, seed=3):
            with (
                rotting.flipped(key, max(position, 8), bit),
                pytest.raises(DamagedFileError, match=key.rsplit("/", 1)[-1]),
            ):
                compact(chunks)
    assert sorted(rotting.tables.list("")) == before
    assert rotting.answer(graph) == expected
    assert compact(chunks).merged == 1
    assert rotting.answer(graph) == expected


@pytest.mark.s3
@pytest.mark.parametrize("kind", KINDS)
def test_damage_on_s3_is_found(kind: str, tmp_path: Path, s3_server: S3Server) -> None:
    root = s3_server.new_root()
    settings = replace(settings_in(tmp_path), storage_root=root, storage_options=s3_server.options)
    store = open_store(root, s3_server.options)
    rotting = (
        published(store, settings)
        if kind == "published"
        else deduplicated(store, settings, f"{root}/chunks", sort=kind == "parquet chunks")
    )
    graph = rotting.plan()
    expected = rotting.answer(graph)
    for number, key in enumerate(rotting.keys):
        content = rotting.tables.read_bytes(key)
        for position, bit in random_places(content, 6, seed=number):
            with rotting.flipped(key, position, bit):
                try:
                    assert rotting.answer(graph) == expected
                except (DamagedFileError, CatalogError, InputLostError):
                    continue
    key = rotting.keys[0]
    middle = len(rotting.tables.read_bytes(key)) // 2
    # As if the object's ETag had stayed the same: stored bytes that have rotted keep it.
    with rotting.flipped(key, middle), pytest.raises(DamagedFileError):
        rotting.answer(graph)
    assert rotting.answer(graph) == expected


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "whole"),
    [
        pytest.param(kind, whole, marks=() if (kind, whole) == ONE_WITH_SPARK else pytest.mark.slow)
        for kind in KINDS
        for whole in (False, True)
    ],
)
def test_damage_is_found_where_spark_reads(
    kind: str,
    whole: bool,
    tmp_path: Path,
    spark: SparkSession,
    spark_settings: EngineSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = replace(spark_settings, storage_root=str(tmp_path / "store"))
    rotting = table(kind, tmp_path, settings)
    graph = rotting.plan()
    engines = ("duckdb", "spark") if whole else ("duckdb",)

    def context() -> Run:
        return new_context(graph, settings, rotting.catalog(), lambda: spark)

    monkeypatch.setattr(execution, "render_fragment", broken_on(*engines))
    expected = run_stages(context())[0].to_pylist()
    key = rotting.keys[0]
    with rotting.flipped(key, len(rotting.tables.read_bytes(key)) // 3):
        with pytest.raises(DamagedFileError) as raised:
            run_stages(replace(context(), fresh=True))
        assert "table 't'" in str(raised.value)
        assert not raised.value.retryable
    assert run_stages(replace(context(), fresh=True))[0].to_pylist() == expected


# --------------------------------------------------------------- files of users


def users_table(folder: Path, settings: EngineSettings, **written: Any) -> Rotting:
    """A table of the catalog, written by somebody else."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(), folder / "a.parquet", row_group_size=2_000, **written)
    text = f"tables:\n  t: {{location: {folder}}}\n"
    (folder.parent / "users.yaml").write_text(text)
    return Rotting(
        settings.open_store(),
        LocalStore(str(folder)),
        ("a.parquet",),
        lambda: load_catalog(folder.parent / "users.yaml"),
        settings,
    )


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["zstd", "snappy", "none"])
def test_pages_of_a_users_file_are_checked(codec: str, version: str, tmp_path: Path) -> None:
    rotting = users_table(
        tmp_path / "t",
        settings_in(tmp_path),
        compression=codec,
        data_page_version=version,
        write_page_checksum=True,
    )
    graph = rotting.plan()
    expected = rotting.answer(graph)
    content = rotting.tables.read_bytes("a.parquet")
    metadata = pq.read_metadata(pa.BufferReader(content))
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            position = middle(chunk)
            with (
                rotting.flipped("a.parquet", position, group),
                pytest.raises(DamagedFileError) as raised,
            ):
                rotting.answer(graph)
            error = raised.value
            assert (error.column, error.row_group) == (chunk.path_in_schema, group)
            assert "a.parquet of table 't' is damaged" in str(error)
            assert not error.retryable
    assert rotting.answer(graph) == expected


@pytest.mark.parametrize("codec", ["gzip", "snappy", "none"])
def test_a_file_that_cannot_be_decoded_is_damaged_and_no_fault_of_the_query(
    codec: str, tmp_path: Path
) -> None:
    """Without checksums of pages not all damage is found; what an engine finds is told so."""
    rotting = users_table(tmp_path / "t", settings_in(tmp_path), compression=codec)
    graph = rotting.plan()
    content = rotting.tables.read_bytes("a.parquet")
    length = int.from_bytes(content[-8:-4], "little")
    found: list[DamagedFileError] = []
    for position, bit in random_places(content[: -8 - length], 60, seed=1):
        with rotting.flipped("a.parquet", position, bit):
            try:
                rotting.answer(graph)
            except DamagedFileError as error:
                found.append(error)
            except QueryError as error:  # of values that nobody can tell to be wrong
                assert "ConversionException" in str(error) or "not valid UTF8" in str(error)
    assert found
    assert all("a.parquet of table 't'" in str(error) for error in found)
    assert any(error.column and error.row_group is not None for error in found)


@pytest.mark.spark
@pytest.mark.slow
def test_a_users_damaged_page_is_named_where_spark_reads(
    tmp_path: Path,
    spark: SparkSession,
    spark_settings: EngineSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = replace(spark_settings, storage_root=str(tmp_path / "store"))
    rotting = users_table(tmp_path / "t", settings, compression="none", write_page_checksum=True)
    graph = rotting.plan()
    content = rotting.tables.read_bytes("a.parquet")
    chunk = pq.read_metadata(pa.BufferReader(content)).row_group(1).column(1)
    monkeypatch.setattr(execution, "render_fragment", broken_on("duckdb"))
    with (
        rotting.flipped("a.parquet", middle(chunk)),
        pytest.raises(DamagedFileError) as raised,
    ):
        run_stages(new_context(graph, settings, rotting.catalog(), lambda: spark))
    assert (raised.value.column, raised.value.row_group) == ("value", 1)


# --------------------------------------------------------------- old roots


def as_format_1(text: bytes) -> bytes:
    """A version's text as an older Stagecoach wrote it."""
    values = json.loads(text)
    for file in values.get("files", []) + values.get("chunks", []):
        del file["checksums"]
    del values["checksum"]
    return seal({**values, "format_version": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_without_checksums_is_read_with_one_warning(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rotting = table(kind, tmp_path)
    graph = rotting.plan()
    expected = rotting.answer(graph)
    for key in [k for k in rotting.tables.list("") if "/versions/" in f"/{k}"]:
        rotting.tables.write_bytes(key, as_format_1(rotting.tables.read_bytes(key)))
    # A version never changes, so what this process read of it would still be true.
    table_format._STATES.clear()
    with caplog.at_level(logging.WARNING):
        assert rotting.answer(graph) == expected
        assert rotting.answer(graph) == expected
    told = [r.getMessage() for r in caplog.records if "--adopt" in r.getMessage()]
    # Arrow chunks have always had a checksum of the whole file.
    assert len(told) == (0 if kind == "arrow chunks" else 1)
    assert all("'t'" in text for text in told)


def test_checksums_of_an_existing_file_are_those_of_its_writing(tmp_path: Path) -> None:
    rotting = table("published", tmp_path)
    version = read_current(rotting.store, "t")
    assert isinstance(version, TableVersion)
    for file, key in zip(version.files, version.file_keys(), strict=True):
        with rotting.tables.open_input(key) as source:
            found = compute_checksums(source, file.num_bytes)
            assert found == (file.footer_checksum, file.checksums)
            assert len(unpack_chunks(file.checksums)) == len(file.row_groups) * 4
            damage = find_damage(source, file.num_bytes, footer=found[0], checksums=found[1])
            assert not list(damage)
