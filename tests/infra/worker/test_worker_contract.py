"""What an executor needs: a task runs in a process that can import the worker's dependencies only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, ScanInput
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.infra.worker.spec import TaskSettings, TaskSpec
from stagecoach.planner.types import BIGINT

PACKAGES = (
    "arro3",
    "duckdb",
    "_duckdb",
    "fsspec",
    "google_crc32c",
    "numpy",
    "pyarrow",
)
"""What `pip` must install where tasks run on local files; object stores need s3fs besides."""

OURS = (
    "stagecoach.infra.engines.duckdb",
    "stagecoach.infra.engines.protocol",
    "stagecoach.infra.engines.registry",
    "stagecoach.infra.errors",
    "stagecoach.infra.formats",
    "stagecoach.infra.functions",
    "stagecoach.infra.host",
    "stagecoach.infra.integrity",
    "stagecoach.infra.pruning",
    "stagecoach.infra.reading",
    "stagecoach.infra.shuffle",
    "stagecoach.infra.storage",
    "stagecoach.infra.worker",
    "stagecoach.planner",
)
"""What of this repository a task may import."""

# `import pandas` and the like that pyarrow and numpy try by themselves are refused, too.
_RUN = f"""
import json, sys
from importlib.machinery import PathFinder

class Only:
    allowed = {PACKAGES!r}
    ours = {OURS!r}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition('.')[0]
        if top == 'stagecoach':
            if any(name == o or name.startswith(o + '.') or o.startswith(name + '.') for o in cls.ours):
                return None
        elif top in sys.stdlib_module_names or top in cls.allowed:
            return None
        elif top.startswith(('_sysconfigdata', '_cython', 'cython_runtime')):
            return None
        raise ModuleNotFoundError(f'an executor has no {{name}}', name=name)

sys.meta_path.insert(0, Only)
from stagecoach.infra.worker.process import settle
from stagecoach.infra.worker.spec import TaskSpec
from stagecoach.infra.worker.task import run_task

report = run_task(TaskSpec.from_dict(json.loads(sys.stdin.read())))
settle()
print(json.dumps(report.to_dict()))
"""


@pytest.fixture
def spec(tmp_path: Path) -> TaskSpec:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": range(100)}), file)
    return TaskSpec(
        query="q",
        stage_id=0,
        fingerprint="a" * 64,
        task_index=0,
        sql="SELECT c5 % 3 AS c0, count(*) AS c1 FROM in_0 GROUP BY 1",
        inputs=(
            ScanInput(columns=(LeafColumn("c5", "k", BIGINT),), files=(DataFile(str(file), 100),)),
        ),
        types=(BIGINT, BIGINT),
        output=OutputPartitioning(kind="shuffle", keys=(0,), num_partitions=2),
        settings=TaskSettings(
            store=open_store(tmp_path / "store").to_dict(),
            time_zone="UTC",
            memory_bytes=64 << 20,
            writer_memory_bytes=16 << 20,
            max_spill_bytes=0,
            spill_dir=str(tmp_path / "spill"),
            codec="lz4",
            directories=(str(tmp_path),),
        ),
    )


def run_elsewhere(code: str, spec: TaskSpec) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(spec.to_dict()),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_task_runs_with_the_dependencies_of_an_executor(spec: TaskSpec) -> None:
    done = run_elsewhere(_RUN, spec)
    assert done.returncode == 0, done.stderr
    report = TaskReport.from_dict(json.loads(done.stdout.splitlines()[-1]))
    assert report.failure is None, report.failure
    assert report.file is not None
    assert report.file.num_rows == 3


@pytest.mark.parametrize("missing", ["duckdb", "stagecoach.infra.shuffle"])
def test_without_one_of_them_it_does_not(spec: TaskSpec, missing: str) -> None:
    code = _RUN.replace(f"'{missing}', ", "")
    assert code != _RUN
    done = run_elsewhere(code, spec)
    told = done.stdout + done.stderr
    assert f"an executor has no {missing}" in told
