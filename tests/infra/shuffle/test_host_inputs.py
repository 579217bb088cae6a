"""Inputs that processes of a host share: read once, used by all, and gone when nobody has them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.host.process_folders import ProcessFolder, sweep_process_folders
from stagecoach.infra.host.shared_files import SharedFolder
from stagecoach.infra.shuffle import host_inputs
from stagecoach.infra.shuffle.host_inputs import HostInput
from stagecoach.infra.shuffle.map_file import Codec, OutputPartitioning
from stagecoach.infra.shuffle.reader import read_partitions
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.stores import open_store
from tests.acceptance.processes import ROOT
from tests.stage_outputs import commit_files, write_map_file

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
NUM_ROWS = 20_000
BATCHES = [
    pa.record_batch(
        [pa.array(range(start, start + NUM_ROWS)), pa.array([f"row {n}" for n in range(NUM_ROWS)])],
        schema=SCHEMA,
    )
    for start in range(0, 4 * NUM_ROWS, NUM_ROWS)
]
SIZE = sum(batch.nbytes for batch in BATCHES)
ROOM = 2 * SIZE

# Reads the input of this module in the folder that it is given, and says whether it came from here;
# `stop`, after so many batches of its own, waits to be killed, else for the end of its input.
WORKER = """
import resource, sys
from tests.infra.shuffle.test_host_inputs import BATCHES, SCHEMA, host_input
folder, stop, largest = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
reads = []
def read():
    reads.append(1)
    for number, batch in enumerate(BATCHES):
        if number == stop:
            print("stopped", flush=True)
            sys.stdin.read()
        yield batch
print("ready", flush=True)
sys.stdin.readline()
if largest:
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
found = list(host_input(folder).batches(read))
assert found == BATCHES
print("read" if reads else "mapped", flush=True)
sys.stdin.read()
del found
"""


class Source:
    """Counts how often it is read."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> Iterator[pa.RecordBatch]:
        self.reads += 1
        yield from BATCHES


def host_input(folder: str | Path, name: str = "a", max_bytes: int = ROOM) -> HostInput:
    return HostInput(str(folder), [name], SCHEMA, max_bytes)


def shared_names(folder: Path) -> list[str]:
    """Names of the files that are shared in a folder."""
    return [path.name for path in folder.glob("stagecoach-shared-*/*")]


class Worker:
    """Another process, which reads the input when it is told to."""

    def __init__(self, folder: Path, stop: int, largest: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder), str(stop), str(largest)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextmanager
def workers(
    folder: Path, count: int, *, stop: int = -1, largest: int = 0
) -> Iterator[list[Worker]]:
    """Processes that have imported all, and wait for `begin`; they end with the block."""
    started = [Worker(folder, stop, largest) for _ in range(count)]
    try:
        assert [worker.line() for worker in started] == ["ready"] * count
        yield started
    finally:
        for worker in started:
            worker.process.communicate()


def test_one_of_two_processes_reads_and_the_other_maps(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as started:
        for worker in started:
            worker.begin()
        said = [worker.line() for worker in started]
        assert sorted(said) == ["mapped", "read"]
        # Nobody else of this machine can read it.
        (folder,) = tmp_path.iterdir()
        (file,) = folder.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert file.stat().st_mode & 0o777 == 0o600
        started[said.index("read")].process.communicate()
        sweep_process_folders(str(tmp_path))
        assert file.exists(), "the other uses it"
        source = Source()
        assert list(host_input(tmp_path).batches(source)) == BATCHES
        assert source.reads == 0
    assert list(tmp_path.iterdir()) == [], "the last one has removed it when it ended"


def test_what_a_killed_reader_has_begun_is_read_anew(tmp_path: Path) -> None:
    with workers(tmp_path, 1, stop=2) as (reader,):
        reader.begin()
        assert reader.line() == "stopped"
        assert [name.endswith(".part") for name in shared_names(tmp_path)] == [True]
        source, found = Source(), list[pa.RecordBatch]()
        waiting = threading.Thread(
            target=lambda: found.extend(host_input(tmp_path).batches(source)), daemon=True
        )
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        assert source.reads == 0, "it waits for the other"
        reader.process.send_signal(signal.SIGKILL)
        waiting.join()
        assert found == BATCHES
        assert source.reads == 1
        assert [name.endswith(".part") for name in shared_names(tmp_path)] == [False]


def test_what_killed_processes_had_is_removed_by_the_next_that_spills(tmp_path: Path) -> None:
    with workers(tmp_path, 1) as (reader,), workers(tmp_path / "b", 1, stop=2) as (writer,):
        for worker, said in ((reader, "read"), (writer, "stopped")):
            worker.begin()
            assert worker.line() == said
            worker.process.send_signal(signal.SIGKILL)
            worker.process.wait()
    for folder in (tmp_path, tmp_path / "b"):
        assert len(shared_names(folder)) == 1
        ours = ProcessFolder(str(folder), "spill")
        assert shared_names(folder) == []
        ours.close()
        assert [path.name for path in folder.iterdir() if path.name != "b"] == []


def test_a_reader_that_stands_still_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_inputs, "_PATIENCE_SECONDS", 0.05)
    with workers(tmp_path, 1, stop=2) as (reader,):
        reader.begin()
        assert reader.line() == "stopped"
        source = Source()
        assert list(host_input(tmp_path).batches(source)) == BATCHES
        assert source.reads == 1
        reader.process.send_signal(signal.SIGKILL)


def test_a_full_disk_fails_nobody(tmp_path: Path) -> None:
    # The system refuses to let a file grow beyond its limit as it does where a disk is full.
    with workers(tmp_path, 1, largest=SIZE // 2) as (reader,):
        reader.begin()
        assert reader.line() == "read"
        assert shared_names(tmp_path) == []


def test_a_write_may_take_less_than_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr("os.write", lambda file, content: write(file, content[:100_000]))
    assert list(host_input(tmp_path).batches(Source())) == BATCHES
    assert shared_names(tmp_path) == [host_input(tmp_path).name]


def test_batches_stay_when_the_file_is_gone(tmp_path: Path) -> None:
    found = list(host_input(tmp_path).batches(Source()))
    (folder,) = tmp_path.iterdir()
    (file,) = folder.iterdir()
    file.unlink()
    assert found == BATCHES
    assert all(batch.column(1)[7].as_py() == "row 7" for batch in found)


def test_batches_are_maps_of_the_file(tmp_path: Path) -> None:
    allocated = pa.total_allocated_bytes()
    found = list(host_input(tmp_path).batches(Source()))
    assert pa.total_allocated_bytes() - allocated < SIZE // 10
    with open("/proc/self/maps") as maps:
        assert shared_names(tmp_path)[0] in maps.read()
    assert not np.asarray(found[0].column(0)).flags.writeable


def test_the_last_use_ends_with_the_last_batch(tmp_path: Path) -> None:
    found = list(host_input(tmp_path).batches(Source()))
    column = found[2].column(1)
    del found
    sweep_process_folders(str(tmp_path))
    assert len(shared_names(tmp_path)) == 1
    del column
    sweep_process_folders(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source, room = Source(), SIZE * 3 // 2
    first = list(host_input(tmp_path, "a", room).batches(source))
    second = list(host_input(tmp_path, "b", room).batches(source))
    assert first == second == BATCHES
    assert len(shared_names(tmp_path)) == 1, "the first is in use, and there is no room for both"
    del first, second
    second = list(host_input(tmp_path, "b", room).batches(source))
    assert shared_names(tmp_path) == [host_input(tmp_path, "b").name]
    assert source.reads == 3
    assert second == BATCHES


def test_nobody_waits_for_what_is_too_large(tmp_path: Path) -> None:
    source = Source()
    first = host_input(tmp_path, max_bytes=SIZE // 2).batches(source)
    begun = next(first)
    assert SharedFolder(str(tmp_path)).open(host_input(tmp_path).name) is None
    assert list(host_input(tmp_path).batches(source)) == BATCHES
    assert source.reads == 2
    assert [begun, *first] == BATCHES
    sweep_process_folders(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_reader_is_its_own(tmp_path: Path) -> None:
    def read() -> Iterator[pa.RecordBatch]:
        yield BATCHES[0]
        raise ShuffleReadError("q/stage_0", 0, 0, "uri", "lost")

    with pytest.raises(ShuffleReadError):
        list(host_input(tmp_path).batches(read))
    assert shared_names(tmp_path) == []
    source = Source()
    assert list(host_input(tmp_path).batches(source)) == BATCHES
    assert source.reads == 1


def test_what_is_corrupt_is_found_before_it_is_shared(tmp_path: Path) -> None:
    store, fingerprint = open_store(tmp_path / "root"), "1c" * 32
    partitioning = OutputPartitioning(kind="broadcast")
    files = [
        write_map_file(store, fingerprint, BATCHES[n : n + 1], SCHEMA, partitioning, task=n)
        for n in range(3)
    ]
    manifest = commit_files(store, fingerprint, files, SCHEMA, partitioning)
    path = Path(store.uri(layout.shuffle_file(fingerprint, files[2].name)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))

    def read() -> Iterator[pa.RecordBatch]:
        return read_partitions(store, manifest, 0, 1)[1]

    with pytest.raises(ShuffleReadError, match="corrupt"):
        list(host_input(tmp_path).batches(read))
    assert shared_names(tmp_path) == []


@pytest.mark.parametrize("case", ["a file", "of all", "a link", "no locks"])
def test_a_folder_that_cannot_be_used_is_said_once(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parent = tmp_path / "spill"
    shared = parent / f"stagecoach-shared-{os.geteuid()}"
    if case == "a file":
        parent.write_text("")
    elif case == "of all":
        shared.mkdir(parents=True, mode=0o755)
    elif case == "a link":
        parent.mkdir()
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        shared.symlink_to(tmp_path / "elsewhere")
    else:

        def refuse(*_: object) -> None:
            raise OSError(37, "No locks available")

        monkeypatch.setattr("fcntl.flock", refuse)
    source = Source()
    for _ in range(2):
        assert list(host_input(parent).batches(source)) == BATCHES
    assert source.reads == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "each reads for itself" in caplog.text
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [parent][: case == "a file"]


@pytest.mark.parametrize(
    ("codec", "num_bytes", "is_local", "expected"),
    [
        ("lz4", 1000, False, True),  # it saves requests
        ("none", 1000, False, True),
        ("lz4", 0, False, False),
        ("lz4", 65 << 20, False, False),  # larger than the bound even before it is decoded
        ("lz4", 1000, True, False),
        ("lz4", 32 << 20, True, True),
        ("none", 32 << 20, True, False),  # a map of the map file
        ("lz4", 65 << 20, True, False),
    ],
)
def test_what_is_shared(
    codec: Codec, num_bytes: int, is_local: bool, expected: bool, tmp_path: Path
) -> None:
    store, fingerprint = open_store(tmp_path), "1c" * 32
    file = write_map_file(store, fingerprint, BATCHES[:1], SCHEMA, codec=codec)
    manifest = commit_files(store, fingerprint, [file], SCHEMA, codec=codec)
    assert host_inputs.pays(manifest, num_bytes, 64 << 20, is_local=is_local) == expected
