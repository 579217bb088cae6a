"""Tables of text files: what the catalog file says, and what the planner and a run are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import whole_table
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.infra.formats.text_files.csv_blocks import UnclearTextError
from stagecoach.infra.formats.text_files.csv_input import CsvInput
from stagecoach.infra.formats.text_files.options import FileOptions
from stagecoach.infra.formats.text_files.table_format import PIECE_BYTES
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query


def catalog(folder: Path, body: str) -> FileCatalog:
    (folder / "catalog.yaml").write_text(f"tables:\n  t: {body}\n", encoding="utf-8")
    return load_catalog(folder / "catalog.yaml")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{location: t, format: csv, options: {heder: true}}", "did you mean 'header'"),
        ("{location: t, format: csv, options: {header: maybe}}", "expected true or false"),
        ("{location: t, format: csv, options: {mode: STRICT}}", "PERMISSIVE, DROPMALFORMED"),
        ("{location: t, format: csv, options: {sep: [a]}}", "expected text"),
        ("{location: t, format: csv, options: {sep: a, delimiter: b}}", "mean the same"),
        ("{location: t, format: csv, options: {Sep: a, sep: b}}", "given twice"),
        ("{location: t, format: csv, options: header}", "'options' must map"),
        ("{location: t, format: csv, columns: {a: ARRAY<INT>}}", "CSV has no fields of type"),
        ("{location: t, format: json, columns: {_corrupt_record: INT}}", "is a STRING, not int"),
        ("{location: t, format: parquet, options: {header: true}}", "unknown key 'options'"),
        ("{location: t, format: text, options: {header: true}}", "unknown option 'header'"),
    ],
)
def test_what_a_catalog_file_cannot_say(body: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=message):
        catalog(tmp_path, body)


def test_columns_must_be_declared(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a\n")
    found = catalog(tmp_path, "{location: t, format: csv}")
    with pytest.raises(CatalogError, match="'stagecoach tables infer t' prints"):
        found.table("t")


def test_a_query_is_planned_without_files(tmp_path: Path) -> None:
    found = catalog(tmp_path, "{location: t, format: csv, columns: {a: INT}}")
    graph = plan_query("SELECT sum(a) AS s FROM t", found, PlannerOptions(), name="q")
    assert {stage.engine for stage in graph.stages} == {"duckdb"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{format: csv, columns: {a: INT}}", None),
        ("{format: csv, columns: {a: INT}, options: {header: true, nullValue: NA, sep: ';'}}", None),
        ("{format: csv, columns: {a: INT}, options: {samplingRatio: 0.5}}", None),
        ("{format: csv, columns: {a: INT}, options: {multiLine: true}}", "the option multiLine"),
        ("{format: csv, columns: {a: INT}, options: {sep: '||'}}", "the separator"),
        ("{format: csv, columns: {a: INT}, options: {quote: '#'}}", "the quote '#'"),
        ("{format: csv, columns: {a: INT}, options: {escape: '/'}}", "the escape '/'"),
        # Spark reads `""` at the end of a line as a quote then.
        ("{format: csv, columns: {a: INT}, options: {escape: ''}}", "the escape ''"),
        ("{format: csv, columns: {a: INT}, options: {escape: '', quote: ''}}", None),
        ("{format: csv, columns: {a: INT}, options: {nullValue: 'a,b'}}", "nullValue 'a,b'"),
        ("{format: csv, columns: {a: INT}, options: {encoding: UTF-16}}", "the encoding UTF-16"),
        ("{format: csv, columns: {a: INT}, options: {enforceSchema: false}}", "enforceSchema off"),
        ("{format: csv, columns: {a: FLOAT}}", "only Spark reads float from CSV"),
        ("{format: csv, columns: {_corrupt_record: STRING}}", "CSV with 0 columns"),
        ("{format: json, columns: {a: INT}}", None),
        ("{format: json, columns: {a: INT}, options: {multiLine: true}}", "the option multiLine"),
        ("{format: json, columns: {a: BINARY}}", "only Spark reads binary from JSON"),
        ("{format: json, columns: {'a b': INT}}", "names such as 'a b'"),
        ("{format: json, columns: {a: INT}, options: {encoding: UTF-16}}", "the option encoding"),
        ("{format: text}", None),
        ("{format: text, options: {wholetext: true}}", "the option wholetext"),
    ],
)  # fmt: skip
def test_who_reads_the_files(body: str, reason: str | None, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("1\n")
    info = catalog(tmp_path, body.replace("{", "{location: t, ", 1)).table("t")
    assert info is not None
    assert (info.native_reason is None) == (reason is None)
    assert reason is None or reason in (info.native_reason or "")


def test_a_header_that_may_be_in_another_range_is_left_to_spark() -> None:
    options = FileOptions((("header", "true"),))
    given = CsvInput(columns=(), units=(), fields=(), options=options, time_zone="UTC")
    assert list(given.without_header(iter([b"\n \nh\n", b"1\n"]))) == [b"", b"1\n"]
    assert list(given.without_header(iter([b"\n", b"h\n1\n"]))) == [b"1\n"]
    assert list(given.without_header(iter([]))) == []
    with pytest.raises(UnclearTextError, match="blank lines only"):
        list(given.without_header(iter([b"\n", b" \n"])))


def test_files_with_names_that_only_spark_understands(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv.snappy").write_bytes(b"")
    info = catalog(tmp_path, "{location: t, format: csv, columns: {a: INT}}").table("t")
    assert info is not None
    assert info.native_reason == "files compressed as .snappy are read by Spark"


def test_a_snapshot_keeps_the_options(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("1\n")
    found = catalog(
        tmp_path, "{location: t, format: csv, options: {header: true}, columns: {a: INT}}"
    )
    taken = take_snapshot(found, ["t"])
    assert Snapshot.from_json(taken.to_json()) == taken
    table = taken.table("t")
    assert table.detail == [["header", "true"]]
    scan = table_format("csv").plan_scan(whole_table("t", table.columns, "UTC"), table)
    assert len(scan.units) == 1


def test_options_and_columns_count_in_fingerprints(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("1\n")
    seen = set()
    for body in (
        "{location: t, format: csv, columns: {a: INT}}",
        "{location: t, format: csv, columns: {a: BIGINT}}",
        "{location: t, format: csv, columns: {a: INT}, options: {header: true}}",
        "{location: t, format: json, columns: {a: INT}}",
    ):
        table = take_snapshot(catalog(tmp_path, body), ["t"]).table("t")
        seen.add(str(table_format(table.format).scanned(None, table)))
    assert len(seen) == 4


def test_large_files_are_cut_and_compressed_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for name in ("a.csv", "b.csv.gz"):
        with open(tmp_path / "t" / name, "wb") as file:
            file.truncate(3 * PIECE_BYTES + 5)
    found = catalog(tmp_path, "{location: t, format: csv, columns: {a: INT, b: STRING}}")
    plain, packed = found.state("t").snapshot.files
    assert len(plain.row_groups) == 3
    assert len(packed.row_groups) == 1
    assert sum(plain.row_groups) == plain.num_rows
    assert plain.num_rows < packed.num_rows
