"""Who may import whom, checked in fresh processes: what is loaded counts, not what is written."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from stagecoach.planner.engines.registry import PLANNER_ENGINES

ROOT = Path(__file__).parents[1]
ENGINES = ("pyspark", "dagster", "duckdb", "s3fs", "fsspec", "yaml")
ABOVE = ("stagecoach.infra", "stagecoach.assets", "stagecoach.api", "stagecoach.commands")


def modules_of(package: str) -> list[str]:
    files = sorted((ROOT / "stagecoach" / package).rglob("*.py"))
    names = (".".join(f.relative_to(ROOT).with_suffix("").parts) for f in files)
    return [name.removesuffix(".__init__") for name in names]


def loaded_by(modules: list[str]) -> set[str]:
    """Names of all packages in memory once these are imported: `dagster`, `stagecoach.infra`, …"""
    code = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted({p for name in sys.modules for p in (name.split('.')[0], '.'.join(name.split('.')[:2]))})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_planner_loads_no_engine_and_no_layer_above() -> None:
    modules = modules_of("planner")
    assert len(modules) > 30
    assert not loaded_by(modules) & {*ENGINES, *ABOVE}


def test_planning_loads_nothing_more_than_importing() -> None:
    code = (
        "import sys\n"
        "from stagecoach.planner.explain.display import render_graph\n"
        "from stagecoach.planner.plan.serde import dump_graph\n"
        "from tests.planner.tpch import FORCED, tpch_graph\n"
        "graph = tpch_graph('q21', FORCED)\n"
        "dump_graph(graph)\n"
        "for kind in ('text', 'json', 'yaml', 'mermaid', 'dot'): render_graph(graph, kind)\n"
        f"found = sorted(set(sys.modules) & set({[*ENGINES, *ABOVE]!r}))\n"
        "assert not found, found"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# As in pyproject.toml's contract "Worker code runs on executors".
WORKER = (
    "stagecoach.infra.host",
    "stagecoach.infra.shuffle",
    "stagecoach.infra.storage",
    "stagecoach.infra.reading",
    "stagecoach.infra.engines.duckdb",
    "stagecoach.infra.worker",
)


def worker_modules() -> list[str]:
    return [m for m in modules_of("infra") if m.startswith(WORKER)]


@pytest.mark.parametrize("prefix", WORKER)
def test_worker_code_is_where_the_contract_says(prefix: str) -> None:
    assert any(m.startswith(prefix) for m in worker_modules())


def test_worker_code_loads_neither_spark_nor_dagster() -> None:
    assert not loaded_by(worker_modules()) & {"pyspark", "dagster", *ABOVE[1:]}


def test_infra_loads_no_dagster() -> None:
    assert not loaded_by(modules_of("infra")) & {"dagster", *ABOVE[1:]}


def test_assets_load_no_command_line() -> None:
    assert not loaded_by(modules_of("assets")) & set(ABOVE[2:])


def test_no_phase_of_the_planner_tells_engines_apart_by_name() -> None:
    named = []
    for path in sorted((ROOT / "planner").rglob("*.py")):
        if "engines" in path.relative_to(ROOT / "planner").parts[:1]:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            tests = node.comparators if isinstance(node, ast.Compare) else []
            for test in [*tests, *(node.keys if isinstance(node, ast.Dict) else [])]:
                if isinstance(test, ast.Constant) and test.value in PLANNER_ENGINES.names:
                    named.append(f"{path}:{test.lineno}")
    assert not named
