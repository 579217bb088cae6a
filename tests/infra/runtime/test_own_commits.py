"""What a process knows of a run is not asked for again, and is forgotten once anything is lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.faults.local_runs import FORCED, LocalRuns, tasks_here, write_tables
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.records.pointers import StagePointer
from stagecoach.infra.runtime.stages import own_commits
from stagecoach.infra.runtime.stages.commits import look_ahead
from stagecoach.infra.runtime.stages.own_commits import OwnCommits
from stagecoach.infra.runtime.stages.run_stage import run_stage
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker import pinned_manifests
from tests.fault_proxy import FaultProxy
from tests.s3_server import S3Server, s3_server
from tests.stage_outputs import commit_files, write_map_file

__all__ = ["s3_server"]

FINGERPRINT = "ab" * 32
SCHEMA = pa.schema([("c0", pa.int64())])


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    store = open_store(tmp_path)
    file = write_map_file(store, FINGERPRINT, [pa.record_batch({"c0": [1, 2]})], SCHEMA)
    return commit_files(store, FINGERPRINT, [file], SCHEMA)


def test_contents_are_those_that_are_known(manifest: Manifest) -> None:
    own = OwnCommits()
    key = layout.manifest(FINGERPRINT)
    assert own.contents([manifest]) == {key: manifest.to_json()}
    own.note_index(manifest.index_key, b"index")
    assert own.contents([manifest]) == {key: manifest.to_json(), manifest.index_key: b"index"}
    own.forget()
    assert own.contents([manifest]) == {key: manifest.to_json()}


def test_what_is_large_is_read_again(manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnCommits()
    own.note_index("large", bytes(own_commits.MOST_INDEX_BYTES + 1))
    large = replace(manifest, index_name="large")
    assert len(own.contents([large])) == 1
    monkeypatch.setattr(own_commits, "MOST_CARRIED_BYTES", len(manifest.to_json()) + 10)
    other = replace(manifest, fingerprint="cd" * 32)
    assert list(own.contents([manifest, other])) == [layout.manifest(FINGERPRINT)]
    monkeypatch.setattr(own_commits, "MOST_FILES", 0)
    own.note_manifest(manifest.manifest_hash, manifest)
    assert own.manifest(manifest.manifest_hash) is None
    assert own.contents([manifest]) == {}


def test_an_output_is_absent_until_it_is_pinned_or_something_is_lost() -> None:
    own = OwnCommits()
    own.note_absent(["a", "b", "c"])
    own.note_pointer(0, StagePointer(expected="a", fingerprint="a"))
    assert [own.is_absent(name) for name in "abcd"] == [False, True, True, False]
    own.forget()
    assert not own.is_absent("b")
    assert own.pointer(0) is None


@pytest.fixture
def far(s3_server: S3Server, tmp_path: Path) -> Iterator[tuple[LocalRuns, FaultProxy]]:
    """Runs whose storage is on S3, behind a proxy that counts requests."""
    pinned_manifests.KEPT.clear()
    with FaultProxy(s3_server.endpoint_url).running() as proxy:
        options = replace(s3_server.options, endpoint_url=proxy.url)
        settings = EngineSettings(
            storage_root=s3_server.new_root(),
            storage_options=options,
            spill_dir=str(tmp_path / "spill"),
            parallelism=2,
        )
        yield LocalRuns(write_tables(tmp_path / "tables"), settings), proxy


@pytest.mark.s3
@pytest.mark.parametrize("fresh", [False, True])
def test_requests_of_a_run(far: tuple[LocalRuns, FaultProxy], fresh: bool) -> None:
    """Nothing that the run has written is read again, but each manifest once, to be sure."""
    runs, proxy = far
    graph = runs.plan("shared", FORCED)
    context = runs.context(graph, fresh=fresh)
    look_ahead(context, is_hosted=True)
    proxy.requests.clear()
    with tasks_here():
        for stage in graph.stages:
            run_stage(stage.stage_id, context)
    asked = Counter(
        f"{method} {re.sub(r'[0-9a-f]{16,}|[0-9]+', 'X', path.rsplit('/', 1)[-1])}"
        for method, path in proxy.requests
    )
    commits = len(graph.stages)
    assert asked["PUT manifest.json"] == commits
    assert asked["PUT index-X.arrow"] == commits
    assert asked["PUT stage_X.json"] == commits
    assert asked["GET index-X.arrow"] == 0
    assert asked["GET stage_X.json"] == 0
    # A run that may share outputs with others looks before it claims one and after.
    assert asked["GET manifest.json"] == commits * (1 if fresh else 3)
    assert asked["PUT claim.json"] == (0 if fresh else commits)
