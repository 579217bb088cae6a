"""Folders of processes: those of killed ones go, those of living ones stay."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagecoach.infra.host.process_folders import ProcessFolder, sweep_process_folders
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.stores import open_store
from tests.acceptance.processes import ROOT
from tests.infra.shuffle.test_shuffle import FINGERPRINT, hashed, numbers

if TYPE_CHECKING:
    import pytest

# Makes a folder of its own, then spills by both writers of spills, and waits to be killed.
SPILLER = """
import sys
import tempfile
from pathlib import Path
import pyarrow as pa
from stagecoach.infra.engines.duckdb import engine as duckdb
from stagecoach.infra.shuffle.writer import ShuffleWriter
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.stores import open_store
from tests.infra.shuffle.test_shuffle import FINGERPRINT, hashed, numbers

spill = sys.argv[1]
settings = duckdb.Resources(time_zone="UTC", memory_bytes=64 << 20, spill_dir=spill)
with duckdb.DuckDbEngine().run(duckdb.Fragment.of("SELECT 1 AS c0", [], pa.schema([("c0", pa.int32())])), settings) as rows:
    list(rows)
store = open_store(Path(spill).with_name("root"))
writer = ShuffleWriter(
    store, layout.map_file(FINGERPRINT, 0, 0), numbers(0).schema, hashed(2), memory_bytes=10_000, spill_dir=spill
)
for batch in numbers(5000).to_batches(max_chunksize=100):
    writer.write(batch)
print("spilled", flush=True)
sys.stdin.read()
"""


def kinds(parent: Path) -> list[str]:
    return sorted(path.name.split("-")[1] for path in parent.iterdir())


def test_what_a_killed_worker_has_spilled_is_removed_by_the_next(tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    command = [sys.executable, "-c", SPILLER, str(spill)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "spilled\n"
        assert kinds(spill) == ["duckdb", "spill"]
        sweep_process_folders(str(spill))
        assert kinds(spill) == ["duckdb", "spill"], "it lives"
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    store = open_store(tmp_path / "root")
    options: dict[str, Any] = {"memory_bytes": 10_000, "spill_dir": str(spill)}
    key = layout.map_file(FINGERPRINT, 1, 0)
    with ShuffleWriter(store, key, numbers(0).schema, hashed(2), **options) as writer:
        for batch in numbers(5000).to_batches(max_chunksize=100):
            writer.write(batch)
        assert [p.name.split("-")[2] for p in spill.iterdir()] == [str(os.getpid())]
    assert list(spill.iterdir()) == []


def test_the_number_of_a_process_says_nothing(tmp_path: Path) -> None:
    # Left by a process whose number this one has now, or by one of another machine.
    left = tmp_path / f"stagecoach-spill-{os.getpid()}-abc"
    left.mkdir()
    (left / "runs").write_text("x")
    ours = ProcessFolder(str(tmp_path), "spill")
    assert [str(p) for p in tmp_path.iterdir()] == [ours.path]
    # Of a process that is not to be seen here, such as another container's, but runs.
    other = tmp_path / f"stagecoach-spill-{(1 << 22) + 1}-abc"
    other.mkdir()
    lock = os.open(other, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    sweep_process_folders(str(tmp_path))
    assert other.exists()
    os.close(lock)
    ours.close()
    sweep_process_folders(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_of_a_process_stays(tmp_path: Path) -> None:
    names = ["stagecoach-spill", "stagecoach-host-notes", "warehouse", "stagecoach-spill-1-a.txt"]
    for name in names:
        (tmp_path / name).mkdir()
    aim = tmp_path / "aim"
    aim.mkdir()
    (aim / "kept").write_text("x")
    (tmp_path / "stagecoach-spill-1-link").symlink_to(aim)
    (tmp_path / "stagecoach-spill-1-file").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    sweep_process_folders(str(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[str] = []
    make = tempfile.mkdtemp

    def made_and_swept(**arguments: Any) -> str:
        path = make(**arguments)
        if not swept:
            swept.append(path)
            sweep_process_folders(str(tmp_path))
        return path

    monkeypatch.setattr("tempfile.mkdtemp", made_and_swept)
    ours = ProcessFolder(str(tmp_path), "spill")
    assert swept != [ours.path]
    assert [str(p) for p in tmp_path.iterdir()] == [ours.path]
    ours.close()


def test_where_nothing_can_be_locked_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    first, second = (ProcessFolder(str(tmp_path), "spill") for _ in range(2))
    assert len(list(tmp_path.iterdir())) == 2
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == []
