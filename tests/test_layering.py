"""Who may import whom, checked in fresh processes: what is loaded counts, not what is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENGINES = ("pyspark", "dagster", "duckdb", "s3fs", "fsspec", "yaml")
OURS = ("infra", "assets", "pipelines", "stagecoach")


def modules_of(package: str) -> list[str]:
    files = sorted((ROOT / package).rglob("*.py"))
    names = (".".join(f.relative_to(ROOT).with_suffix("").parts) for f in files)
    return [name.removesuffix(".__init__") for name in names]


def loaded_by(modules: list[str]) -> set[str]:
    """Top-level names of all modules in memory once these are imported."""
    code = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_planner_loads_no_engine_and_no_layer_above() -> None:
    modules = modules_of("planner")
    assert len(modules) > 30
    assert not loaded_by(modules) & {*ENGINES, *OURS}


def test_planning_loads_nothing_more_than_importing() -> None:
    code = (
        "import sys\n"
        "from planner.explain.display import render_graph\n"
        "from planner.serde import dump_graph\n"
        "from tests.planner.tpch import FORCED, tpch_graph\n"
        "graph = tpch_graph('q21', FORCED)\n"
        "dump_graph(graph)\n"
        "for kind in ('text', 'json', 'yaml', 'mermaid', 'dot'): render_graph(graph, kind)\n"
        f"found = sorted(set(sys.modules) & set({[*ENGINES, *OURS]!r}))\n"
        "assert not found, found"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# As in pyproject.toml's contract "Worker code runs on executors".
WORKER = ("infra.shuffle", "infra.storage", "infra.engines.duckdb", "infra.runtime.task")


def worker_modules() -> list[str]:
    return [m for m in modules_of("infra") if m.startswith(WORKER)]


@pytest.mark.parametrize("prefix", WORKER)
def test_worker_code_is_where_the_contract_says(prefix: str) -> None:
    assert any(m.startswith(prefix) for m in worker_modules())


def test_worker_code_loads_neither_spark_nor_dagster() -> None:
    assert not loaded_by(worker_modules()) & {"pyspark", "dagster", "assets", "stagecoach"}


def test_infra_loads_no_dagster() -> None:
    assert not loaded_by(modules_of("infra")) & {"dagster", "assets", "pipelines", "stagecoach"}


def test_assets_load_no_command_line() -> None:
    assert not loaded_by(modules_of("assets")) & {"stagecoach", "pipelines"}
