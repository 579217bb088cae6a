"""Rows of small text files are counted, once for each version; those of others are estimated."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path

import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.text_files import row_counts
from stagecoach.planner.catalog import TableStats

CSV = "format: csv, columns: {a: INT, b: STRING}"
JSON = "format: json, columns: {a: INT}"


def catalog(folder: Path, body: str) -> FileCatalog:
    (folder / "catalog.yaml").write_text(
        f"tables:\n  t: {{location: t, {body}}}\n", encoding="utf-8"
    )
    return load_catalog(folder / "catalog.yaml")


def stats(found: FileCatalog) -> TableStats:
    known = found.state("t").info.stats
    assert known is not None
    return known


def written(folder: Path, **contents: bytes) -> Path:
    (folder / "t").mkdir()
    for name, content in contents.items():
        (folder / "t" / name.replace("_", ".")).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("body", "content", "rows"),
    [
        (CSV, b"1,x\n2,y\n", 2),
        (CSV, b"1,x\n2,y", 2),
        (CSV, b"", 0),
        (CSV, b"\n\n", 0),
        (CSV, b"1,x\r\n\r\n \t \n\x0b\n2,y\r\n", 2),
        (CSV, b"\xef\xbb\xbf1,x\n2,y\n", 2),
        # Spark splits lines first, whatever quotes there are.
        (CSV, b'1,"x\ny",z\n"\n2,a"b\n"""\n', 5),
        (CSV, b'1\n1,2,3\n"x""y\\",2\n', 3),
        (f"{CSV}, options: {{header: true}}", b"a,b\n1,x\n", 1),
        (f"{CSV}, options: {{header: true}}", b"\n  \na,b\n\n1,x\n", 1),
        (f"{CSV}, options: {{header: true}}", b"a,b\n", 0),
        (f"{CSV}, options: {{header: true}}", b"\n", 0),
        (f"{CSV}, options: {{mode: FAILFAST}}", b"1,x\n2\n", 2),
        (f"{CSV}, options: {{sep: '\\t'}}", b"1\tx\n\t\n", 1),
        (f"{CSV}, options: {{sep: '||', quote: '#', dateFormat: dd}}", b"1||x\n", 1),
        ("format: csv, columns: {a: FLOAT, _corrupt_record: STRING}", b"1\nx,y\n", 2),
        (JSON, b'{"a": 1}\n\n \t\r\n  {"a"\n{}', 3),
        ("format: text", b"a\n\n \nb", 4),
        ("format: text", b"a\n", 1),
    ],
)
def test_exact(body: str, content: bytes, rows: int, tmp_path: Path) -> None:
    found = stats(catalog(written(tmp_path, a_txt=content), body))
    assert (found.num_rows, found.is_estimate) == (rows, False)


@pytest.mark.parametrize(
    ("body", "content", "rows"),
    [
        # At most as many.
        (f"{CSV}, options: {{multiLine: true}}", b'1,"x\ny"\n2,z\n', 3),
        (f"{CSV}, options: {{mode: DROPMALFORMED}}", b"1,x\n2\nz,z\n", 3),
        (f"{JSON}, options: {{mode: DROPMALFORMED}}", b'{"a": "x"}\n', 1),
        # From bytes.
        (CSV, b"1,x\x00\n" * 20, 4),
        (CSV, b"1,x\r2,y\n" * 20, 6),
        (CSV, b"1,\xff\n" * 20, 3),
        (f"{CSV}, options: {{comment: '#'}}", b"#,x\n" * 20, 3),
        (f"{CSV}, options: {{lineSep: ';'}}", b"1,x;" * 20, 3),
        (f"{CSV}, options: {{encoding: UTF-16}}", b"1,x\n" * 20, 3),
        (JSON, b'[{"a": 1}, {"a": 2}]\n' * 20, 35),
        (f"{JSON}, options: {{multiLine: true}}", b'{"a":\n1}\n' * 20, 15),
        ("format: text, options: {wholetext: true}", b"a\n" * 400, 10),
    ],
)
def test_estimated(body: str, content: bytes, rows: int, tmp_path: Path) -> None:
    found = stats(catalog(written(tmp_path, a_txt=content), body))
    assert (found.num_rows, found.is_estimate) == (rows, True)


def test_compressed_files_and_several(tmp_path: Path) -> None:
    text = b"a,b\n" + b"1,x\n" * 1000
    parts = {"a_csv": text, "b_csv_gz": gzip.compress(text), "c_csv_bz2": bz2.compress(text)}
    found = stats(catalog(written(tmp_path, **parts), f"{CSV}, options: {{header: true}}"))
    assert (found.num_rows, found.num_files, found.is_estimate) == (3000, 3, False)


@pytest.mark.parametrize(
    "content",
    [
        b"no gzip",
        gzip.compress(b"1,x\n")[:-4],
        gzip.compress(b"1,x\n" * 1000),
        gzip.compress(b"x" * 4000),
    ],
    ids=["other", "cut", "large", "one line"],
)
def test_what_cannot_be_unpacked_or_is_large_then(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_counts, "MOST_TEXT_BYTES", 2000)
    monkeypatch.setattr(row_counts, "_BLOCK_BYTES", 500)
    assert stats(catalog(written(tmp_path, a_csv_gz=content), CSV)).is_estimate


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_FILES"])
def test_large_tables(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, a_csv=b"1,x\n", b_csv=b"2,y\n")
    monkeypatch.setattr(row_counts, limit, {"MOST_BYTES": 7, "MOST_FILES": 1}[limit])
    assert stats(catalog(folder, CSV)).is_estimate


def test_a_file_is_read_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, a_csv=b"1,x\n", b_csv=b"2,y\n")
    found = catalog(folder, CSV)
    read: list[str] = []
    lines = row_counts.line_blocks

    def noting(file, *args, **options):  # type: ignore[no-untyped-def]
        read.append(Path(file.uri).name)
        return lines(file, *args, **options)

    monkeypatch.setattr(row_counts, "line_blocks", noting)
    assert stats(found).num_rows == 2
    assert stats(found).num_rows == 2
    assert sorted(read) == ["a.csv", "b.csv"]
    changed = folder / "t" / "b.csv"
    changed.write_bytes(b"2,y\n3,z\n")
    os.utime(changed, (1, 1))
    assert stats(found).num_rows == 3
    assert sorted(read) == ["a.csv", "b.csv", "b.csv"]


def test_a_file_with_a_header_only_is_still_read(tmp_path: Path) -> None:
    """Statistics do not decide what is read."""
    folder = written(tmp_path, a_csv=b"a,b\n", b_csv=b"")
    found = catalog(folder, f"{CSV}, options: {{header: true}}").state("t")
    assert found.info.stats is not None
    assert found.info.stats.num_rows == 0
    assert [file.num_rows for file in found.snapshot.files] == [1, 0]
