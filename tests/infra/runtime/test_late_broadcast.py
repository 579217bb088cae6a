"""A small input of a partitioned join that every task reads whole: when, what it saves, its rows."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.adaptive.broadcast import BroadcastRule, read_as_broadcast
from stagecoach.infra.runtime.adaptive.estimator import (
    FileRange,
    InputSizes,
    PartitionRange,
    TaskAssignment,
    assign_tasks,
)
from stagecoach.infra.runtime.adaptive.skew import splittable_leaves
from stagecoach.infra.shuffle import broadcast_cache
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.spec import ShuffleInput
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.planning import plan_query
from tests.fault_proxy import FaultProxy
from tests.infra.runtime.test_adaptive import (
    KINDS,
    SELF,
    SPLIT,
    WHOLE,
    aggregate,
    join,
    leaf,
    stage_of,
)
from tests.infra.stage_runs import StageRun, run_here
from tests.s3_server import S3Server, s3_server

__all__ = ["s3_server"]

MB = 1 << 20
RULE = BroadcastRule(
    max_bytes=16 * MB,
    slots=4,
    task_bytes=4 * MB,
    request_bytes=1 * MB,
    max_request_bytes=64 * MB,
    cached_bytes=40 * MB,
)
OPTIONS = PlannerOptions(
    force_distribution=True, num_partitions=12, inline_bytes=0, broadcast_bytes=0
)


def decide(
    stage: Stage, sizes: InputSizes, rule: BroadcastRule = RULE, *, is_head: bool = False
) -> tuple[tuple[TaskAssignment, ...], list[str]]:
    tasks = assign_tasks(
        stage, sizes, parallelism=rule.slots, target_task_bytes=100 * MB, min_task_bytes=4 * MB
    )
    splittable = splittable_leaves(stage, is_head=is_head)
    found, decisions = read_as_broadcast(stage, sizes, tasks, splittable, rule)
    assert decisions or found == tasks
    return found, [d.text for d in decisions]


def even(large_files: int = 40, *, small: int = 2 * MB, partitions: int = 100) -> InputSizes:
    """A large input and a small one, evenly spread."""
    return InputSizes(
        {},
        {0: [800 * MB // partitions] * partitions, 1: [small // partitions] * partitions},
        {0: [800 * MB // large_files] * large_files, 1: [small]},
    )


def test_files_are_shared_out_where_that_saves_requests() -> None:
    stage = stage_of(join(leaf(), leaf()))
    tasks, (text,) = decide(stage, even())
    assert len(tasks) == 12
    assert {task.slices[1] for task in tasks} == {PartitionRange(0, 100, shared=True)}
    ranges = [task.slices[0] for task in tasks]
    covered = [n for r in ranges if isinstance(r, FileRange) for n in range(r.low, r.high)]
    assert sorted(covered) == list(range(40))
    # 12 tasks x (40 + 1) map files before; 40 files and the small one in each of 4 workers now.
    assert "44 requests instead of 492" in text


def test_partitions_are_read_where_files_win_nothing() -> None:
    stage = stage_of(join(leaf(), leaf()))
    cheap = dataclasses.replace(RULE, request_bytes=8 << 10)
    for sizes, rule in (
        (even(), cheap),  # local files
        (even(2), RULE),  # too few files for the slots
        (even(small=20 * MB), RULE),  # above the limit
        (even(), dataclasses.replace(RULE, max_bytes=0)),  # switched off
        (dataclasses.replace(even(), files={}), RULE),  # nothing known of files
    ):
        tasks, texts = decide(stage, sizes, rule)
        assert not texts
        assert not any(isinstance(part, FileRange) for task in tasks for part in task.slices)
    # Map files are even where keys are not: worth it for local files, too.
    partitions = [760 * MB] + [40 * MB // 99] * 99
    skewed = InputSizes({}, {0: partitions, 1: [20_000] * 100}, {0: [20 * MB] * 40, 1: [2 * MB]})
    tasks, texts = decide(stage, skewed, cheap)
    assert texts
    assert max(task.num_bytes for task in tasks) <= 200 * MB


def test_only_an_input_whose_rows_meet_partners_one_by_one_is_shared_out() -> None:
    sizes = even()
    for kind in KINDS:
        texts = decide(stage_of(join(leaf(), leaf(), kind)), sizes)[1]
        assert bool(texts) == (kind not in ("right", "full"))
    assert decide(stage_of(aggregate(join(leaf(), leaf()), "partial")), sizes)[1]
    assert not decide(stage_of(aggregate(join(leaf(), leaf()), "final")), sizes)[1]
    # The small one may be aggregated first: each task has all of its rows.
    assert decide(stage_of(join(leaf(), aggregate(leaf(), "final"))), sizes)[1]
    assert not decide(stage_of(join(aggregate(leaf(), "final"), leaf())), sizes)[1]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> FileCatalog:
    folder = tmp_path_factory.mktemp("late")
    rng = random.Random(5)
    keys = [rng.choice([None, *range(60)]) for _ in range(6000)]
    hot = [(k, rng.getrandbits(40)) for k in keys]
    facts = [(k, k * 10 + i) for k in range(0, 50, 2) for i in range(2)] + [(7, 1), (None, 5)]
    for name, value, content in (("hot", "v", hot), ("facts", "w", facts)):
        (folder / name).mkdir()
        schema = pa.schema([("k", pa.int64()), (value, pa.int64())])
        columns = {"k": [k for k, _ in content], value: [v for _, v in content]}
        table = pa.table(columns, schema=schema)
        pq.write_table(table, folder / name / "a.parquet", row_group_size=500)
    (folder / "catalog.yaml").write_text(
        "tables:\n  hot:\n    location: hot\n  facts:\n    location: facts\n"
    )
    return load_catalog(folder / "catalog.yaml")


def run(
    sql: str,
    catalog: FileCatalog,
    store: ObjectStore,
    folder: Path,
    max_bytes: int,
    *,
    one_task: bool = False,
) -> tuple[list[str], list[StageRun], set[str]]:
    settings = EngineSettings(
        storage_root=str(folder),
        parallelism=2,
        min_task_bytes=MB if one_task else 0,
        target_task_bytes=12_000,
        skew_bytes=MB,
        late_broadcast_bytes=max_bytes,
    )
    runs = list(run_here(plan_query(sql, catalog, OPTIONS, name="q"), catalog, settings, store))
    rows = sorted(json.dumps(row) for row in read_table(store, runs[-1].manifest).to_pylist())
    return rows, runs, {d.kind for run in runs for d in run.decisions}


@pytest.mark.parametrize("number", range(len(SPLIT) + len(SELF) + len(WHOLE)))
def test_rows_are_the_same(number: int, catalog: FileCatalog, tmp_path: Path) -> None:
    sql = [*SPLIT, *SELF, *WHOLE][number]
    found = {}
    for name, limit in (("off", 0), ("on", MB)):
        store = open_store(str(tmp_path / name))
        found[name] = run(sql, catalog, store, tmp_path / name, limit, one_task=not limit)
    assert found["on"][0] == found["off"][0]
    assert len(found["on"][0]) > 3
    assert "broadcast" not in found["off"][2]
    if sql not in SELF:
        assert ("broadcast" in found["on"][2]) == (sql in SPLIT)


@pytest.mark.s3
def test_requests_are_a_fraction(s3_server: S3Server, catalog: FileCatalog, tmp_path: Path) -> None:
    proxy = FaultProxy(s3_server.endpoint_url)
    rows, requests = {}, {}
    with proxy.running():
        options = {**s3_server.options.to_dict(), "endpoint_url": proxy.url}
        for limit in (0, MB):
            broadcast_cache.SHARED.clear()
            store = open_store(s3_server.new_root(), options)
            rows[limit], runs, _ = run(SPLIT[0], catalog, store, tmp_path, limit)
            joined = next(r for r in runs if len(r.specs[0].inputs) == 2)
            inputs = {
                leaf.fingerprint
                for leaf in joined.specs[0].inputs
                if isinstance(leaf, ShuffleInput)
            }
            files = sum(len(r.manifest.files) for r in runs if r.manifest.fingerprint in inputs)
            names = [
                path.split("?")[0].rsplit("/", 1)[-1]
                for method, path in proxy.requests
                if method == "GET" and any(fingerprint in path for fingerprint in inputs)
            ]
            requests[limit] = sum(n.endswith(".arrow") and "index" not in n for n in names)
            proxy.requests.clear()
            tasks = len(joined.specs)
            # Two at a time, so workers share what they read.
            assert {spec.settings.num_readers for spec in joined.specs} == {2}
    assert rows[0] == rows[MB]
    # Each map file once: the tasks of this process read the small input once for all of them.
    assert requests[MB] == files
    assert tasks > 2
    assert requests[0] >= 3 * requests[MB]
