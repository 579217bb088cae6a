"""The demo as a newcomer runs it, the data that it makes, and the queries that come with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pipelines
from stagecoach import tpch
from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.errors import StorageError
from stagecoach.planner import plan_query

QUERIES = sorted((Path(pipelines.__path__[0]) / "queries").glob("q*.sql"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "tpch"
    assert tpch.generate(folder, 0.001, parts=2)
    return folder


@pytest.fixture(scope="module")
def catalog(folder: Path) -> FileCatalog:
    path = folder.parent / "catalog" / "catalog.yaml"
    tpch.write_catalog(path, folder)
    return load_catalog(path)


def test_data_has_several_files_a_table_and_is_made_once(folder: Path) -> None:
    assert len(list((folder / "lineitem").glob("*.parquet"))) == 2
    assert not tpch.generate(folder, 0.001)
    assert [p.name for p in folder.parent.iterdir() if p.name.startswith(".")] == []


def test_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(StorageError, match="does not hold all eight TPC-H tables"):
        tpch.generate(tmp_path, 0.001)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_there_are_22_queries() -> None:
    assert [path.stem for path in QUERIES] == [f"q{n:02}" for n in range(1, 23)]


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_each_query_is_described_and_planned(path: Path, catalog: FileCatalog) -> None:
    sql = path.read_text(encoding="utf-8")
    front_matter = parse_front_matter(sql)
    assert front_matter.description
    assert front_matter.tags["query"] == path.stem
    graph = plan_query(sql, catalog, name=path.stem)
    assert graph.fallback_reason is None
    assert graph.result


@pytest.mark.slow
@pytest.mark.spark
def test_demo_twice(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "STAGECOACH_STORAGE"}
    command = [sys.executable, "-m", "stagecoach.commands.main", "demo"]
    first, second = (
        subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        for _ in range(2)
    )
    assert first.returncode == 0, first.stderr
    for text in (
        "Generating TPC-H data",
        "FROM customer, orders, lineitem",
        "┌───── Stage 5",
        "(10 rows)",
        ".arrow",
        "manifest.json",
        "rows by partition:",
        "6 stages in",
    ):
        assert text in first.stdout
    assert "q03, stage 0: started" in first.stderr
    assert second.returncode == 0, second.stderr
    assert "All 6 stages were reused" in second.stdout
    assert second.stderr.count("reused") == 6
    table = first.stdout.split("The rows")[1].split("What it left")[0]
    assert table in second.stdout
    assert "WARN" not in first.stderr + second.stderr
