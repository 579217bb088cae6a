"""Generates TPC-H tables and a catalog over them.

`tpchgen-cli` makes several files for each larger table and one for `nation` and `region`:

    data/tpch/lineitem/lineitem.1.parquet …
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from stagecoach.api.session import DEFAULT_CATALOG
from stagecoach.infra.errors import ConfigError, StorageError

DATA_FOLDER = Path("data/tpch")
_OWN_CATALOG = Path(".stagecoach/demo/catalog.yaml")

TABLES = (
    "customer",
    "lineitem",
    "nation",
    "orders",
    "part",
    "partsupp",
    "region",
    "supplier",
)


def has_tables(folder: Path) -> bool:
    """Whether every table is in the folder."""
    return all(any((folder / table).glob("*.parquet")) for table in TABLES)


def generate(folder: Path, scale_factor: float, *, parts: int = 4) -> bool:
    """Make the tables, unless they are there; return whether they were made.

    Args:
        folder: Where they go; it appears complete or not at all.
        scale_factor: 1 is about 1 GB of text, 0.3 GB of Parquet.
        parts: Files of each larger table.

    Raises:
        ConfigError: The generator is not installed, or it failed.
        StorageError: The folder holds something else, or cannot be written.
    """
    if has_tables(folder):
        return False
    if folder.exists() and any(folder.iterdir()):
        raise StorageError(
            f"{folder} is there but does not hold all eight TPC-H tables; "
            "remove it or choose another folder"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror or error}") from error
    try:
        _run_generator(building, scale_factor, parts)
        building.chmod(0o755)
        if folder.exists():
            folder.rmdir()
        os.rename(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return True


def example_catalog() -> Path:
    """Return the catalog of the example queries: the project's if it has one, else a new one."""
    project = Path(DEFAULT_CATALOG)
    if project.exists():
        return project
    write_catalog(_OWN_CATALOG, DATA_FOLDER)
    return _OWN_CATALOG


def write_catalog(path: Path, folder: Path | str) -> None:
    """Write a catalog file over the tables in `folder`, or under a URL."""
    lines = ["tables:"]
    for table in TABLES:
        if isinstance(folder, Path):
            location = os.path.relpath(folder / table, path.parent)
        else:
            location = f"{folder}/{table}"
        lines += [f"  {table}:", f"    location: {location}", "    format: parquet"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _run_generator(folder: Path, scale_factor: float, parts: int) -> None:
    program = _find_generator()
    command = [program, "parquet", "-s", f"{scale_factor:g}", f"--parts={parts}"]
    done = subprocess.run(
        [*command, "--output-dir", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode or not has_tables(folder):
        problem = (done.stderr or done.stdout).strip().splitlines()
        raise ConfigError(f"tpchgen-cli failed: {problem[-1] if problem else done.returncode}")


def _find_generator() -> str:
    """The program beside this Python, which need not be on the PATH."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if not found:
        raise ConfigError("TPC-H data needs the extra 'demo': pip install 'stagecoach[demo]'")
    return found
