"""Paths of published tables: one to one, and below the table's folder."""

from __future__ import annotations

import pytest

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.partitions import partition_folder
from stagecoach.infra.formats.published import paths
from stagecoach.infra.storage import layout


def test_paths_are_below_the_folder_of_the_table() -> None:
    assert paths.table_current("q1") == "results/q1/current.json"
    assert paths.table_version("q1", 7) == "results/q1/versions/000000000007.json"
    assert layout.parse_table_version("results/q1/versions/000000000007.json") == 7
    assert layout.parse_table_version("results/q1/versions/.tmp-7.json") is None
    folders = [partition_folder("day", "2024-01-31"), partition_folder("k", None)]
    path = paths.table_file_path(folders, "x-00000.parquet")
    assert path == "files/day=2024-01-31/k=__HIVE_DEFAULT_PARTITION__/x-00000.parquet"
    assert paths.table_file("q1", path) == f"results/q1/{path}"


def test_folders_are_one_to_one() -> None:
    values = ["a|b", "a%7Cb", "a/b", "../..", "2024-01-01 00:00", "ü", "A", "a", "a=b", "..", "\0"]
    folders = {partition_folder("k", value) for value in values}
    assert len(folders) == len(values)
    for folder in folders:
        paths.table_file("t", paths.table_file_path([folder], "x.parquet"))


@pytest.mark.parametrize(
    "path",
    [
        "x.parquet",
        "files/../x.parquet",
        "files/..",
        "files/k=1/.x.parquet",
        "files//x.parquet",
        "files/plain/x.parquet",
        "versions/x.parquet",
        "files/x.json",
        "/files/x.parquet",
        "files",
    ],
)
def test_refuses_what_is_no_data_file(path: str) -> None:
    with pytest.raises(StorageError, match=r"is not the path of a data file"):
        paths.table_file("t", path)


@pytest.mark.parametrize("number", [0, -1, 10**12])
def test_counts_versions_from_1(number: int) -> None:
    with pytest.raises(StorageError, match=r"out of range"):
        paths.table_version("t", number)
