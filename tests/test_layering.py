"""Who may import whom, checked in fresh processes: what is loaded counts, not what is written."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
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
    """Names of all packages in memory once these are imported: `dagster`, `stagecoach.infra.spark`, …"""
    code = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted({p for name in sys.modules for p in ('.'.join(name.split('.')[:n]) for n in (1, 2, 3))})))"
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


def test_the_contract_names_all_table_formats() -> None:
    """A format that is not listed could be imported from anywhere."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = {c["name"]: c for c in tomllib.loads(text)["tool"]["importlinter"]["contracts"]}
    named = contracts["A table format is named in its folders only, and found through the registry"]
    folders = {
        f"stagecoach.{layer}.formats.{init.parent.name}"
        for layer in ("infra", "planner")
        for init in (ROOT / layer / "formats").glob("*/__init__.py")
    }
    assert len(folders) >= 4
    assert set(named["forbidden_modules"]) == folders


def test_that_contract_covers_all_packages() -> None:
    """All but the planner's phases below its formats, which import nothing above them anyway."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = {c["name"]: c for c in tomllib.loads(text)["tool"]["importlinter"]["contracts"]}
    named = contracts["A table format is named in its folders only, and found through the registry"]
    packages = {
        f"stagecoach.infra.{path.name}"
        for path in (ROOT / "infra").iterdir()
        if (path / "__init__.py").exists()
    } | {
        f"stagecoach.{path.parent.name}"
        for path in [*(ROOT / "stagecoach").glob("*/__init__.py")]
        if path.parent.name not in ("infra", "planner", "example")
    }
    missing = packages - set(named["source_modules"]) - {"stagecoach.infra.formats"}
    assert not missing


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


def test_a_code_location_loads_no_planner() -> None:
    """With compiled plans it plans nothing, and importing rules and functions would take longest."""
    found = loaded_by(["stagecoach.assets.definitions.location"])
    parts = ("aggregates", "analysis", "estimates", "functions", "planning")
    assert not found & {f"stagecoach.planner.{part}" for part in parts}


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
