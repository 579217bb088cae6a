"""Functions of a project in a DuckDB database, which lives longer than a query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.errors import FunctionError, QueryError
from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.functions.loading import SOURCE
from stagecoach.infra.functions.sources import find_code
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import BIGINT

F = ProjectFunction("f", "udf_duck:f", (BIGINT,), BIGINT, deterministic=True)


def run(resources: Resources, function: ProjectFunction, path: Path, rows: int = 3) -> list[object]:
    found = replace(resources, functions=FunctionSet((function,), (str(path),)))
    sql = f"SELECT {function.unique_name}(i) AS c0 FROM range({rows}) t(i)"
    schema = pa.schema([("c0", pa.int64())])
    with DuckDbEngine().run(Fragment(sql, {}, schema), found) as batches:
        return [value for batch in batches for value in batch.column(0).to_pylist()]


def declared(folder: Path, text: str, version: str = "") -> ProjectFunction:
    folder.mkdir(exist_ok=True)
    (folder / "udf_duck.py").write_text(text)
    code = version or SOURCE + find_code("udf_duck", (str(folder),)).digest
    return replace(F, code=code)


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    return Resources(time_zone="UTC", memory_bytes=64 << 20, spill_dir=str(tmp_path / "spill"))


def test_versions_of_a_function_are_functions_of_their_own(
    resources: Resources, tmp_path: Path
) -> None:
    one = declared(tmp_path / "one", "def f(i): return i + 1\n")
    two = declared(tmp_path / "two", "def f(i): return i + 2\n")
    assert one.unique_name != two.unique_name
    assert run(resources, one, tmp_path / "one") == [1, 2, 3]
    assert run(resources, two, tmp_path / "two") == [2, 3, 4]
    assert run(resources, one, tmp_path / "one") == [1, 2, 3]


def test_one_declared_version_in_two_folders_is_two_functions(
    resources: Resources, tmp_path: Path
) -> None:
    one = declared(tmp_path / "one", "def f(i): return i + 1\n", "version:1")
    two = declared(tmp_path / "two", "def f(i): return i + 2\n", "version:1")
    assert one == two
    assert run(resources, one, tmp_path / "one") == [1, 2, 3]
    assert run(resources, two, tmp_path / "two") == [2, 3, 4]


def test_many_rows_come_in_batches_and_keep_their_order(
    resources: Resources, tmp_path: Path
) -> None:
    found = run(resources, declared(tmp_path, "def f(i): return -i\n"), tmp_path, rows=5_000)
    assert found == [-i for i in range(5_000)]


def test_what_the_code_raises_is_for_spark_to_judge_and_said_plainly(
    resources: Resources, tmp_path: Path
) -> None:
    function = declared(tmp_path, "def f(i): raise OSError('no disk')\n")
    with pytest.raises(QueryError) as caught:
        run(resources, function, tmp_path)
    assert str(caught.value) == "function 'f' (udf_duck:f) raised OSError: no disk"


def test_code_that_is_not_there_is_an_error_of_its_own(
    resources: Resources, tmp_path: Path
) -> None:
    with pytest.raises(FunctionError, match="module 'udf_nowhere' was not found"):
        run(resources, replace(F, python="udf_nowhere:f", code="source:0"), tmp_path)
