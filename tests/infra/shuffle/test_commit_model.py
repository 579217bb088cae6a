"""The commit protocol, exhaustively: real code, every interleaving, every crash, with and without CAS.

No reader ever sees part of a stage, and no committed stage loses a file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.runtime.records.pointers import StagePointer, read_pointer, write_pointer
from stagecoach.infra.runtime.records.run_marks import mark_begun, mark_ended
from stagecoach.infra.runtime.stages.commits import forget_if_damaged, usable_manifest
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.shuffle.commit import is_lost, load_manifest
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.shuffle.map_file import MapFile
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage import layout
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.planner.plan.stages import Stage
from tests.stage_outputs import commit_files, write_map_file

sys.path.insert(0, str(Path(__file__).parent))
from interleavings import NOW, Objects, Outcome, Search, World, aged

FINGERPRINT = "ab" * 32
SCHEMA = pa.schema([pa.field("a", pa.int64())])
ROWS = (1, 2)
BOTH = pytest.mark.parametrize("conditional", [True, False], ids=["conditional", "unconditional"])
# pytest.ini's limit is per test; these are pure computation, which a busy machine stretches.
pytestmark = pytest.mark.timeout(600)


class Attempt:
    """The map files of one attempt at a stage of two tasks, made once; each has its own bytes."""

    def __init__(self, name: str) -> None:
        self.contents: dict[str, bytes] = {}
        self.files: list[MapFile] = []
        for task, row in enumerate(ROWS):  # the same rows in every attempt
            world = World({}, conditional=True)
            rows = pa.RecordBatch.from_arrays([pa.array([row])], schema=SCHEMA)
            file = write_map_file(
                cast("Any", world), FINGERPRINT, [rows], SCHEMA, task=task, attempt=name
            )
            self.files.append(file)
            key = layout.map_file(FINGERPRINT, task, name)
            self.contents[key] = world.objects[key][0]
        self.name = name

    def write(self, store: World) -> None:
        for key, content in self.contents.items():
            store.write_bytes(key, content)

    def commit(self, store: World) -> Manifest:
        # Its name, so that no two manifests are the same text.
        return commit_files(store, FINGERPRINT, self.files, SCHEMA, created_at=self.name)

    def run(self, store: World) -> Manifest:
        self.write(store)
        return self.commit(store)


FIRST, SECOND, THIRD = (Attempt(name) for name in ("first", "second", "third"))


def context_of(store: World) -> Run:
    return cast("Run", SimpleNamespace(store=store, stage_name=lambda _: "q/stage_0"))


STAGE = cast("Stage", SimpleNamespace(stage_id=0))


def usable(store: World) -> Manifest | None:
    return usable_manifest(context_of(store), STAGE, FINGERPRINT)


def rows_of(store: World, manifest: Manifest) -> list[int]:
    return sorted(read_table(store, manifest).column(0).to_pylist())


def read(store: World) -> list[int] | None:
    """A reader: what is committed, whole, or None."""
    manifest = load_manifest(store, FINGERPRINT)
    return None if manifest is None else rows_of(store, manifest)


def committed(objects: Objects) -> Manifest | None:
    """What is committed in a state of the store, if it is not marked as lost."""
    still = World(objects, conditional=True)
    try:
        found = load_manifest(still, FINGERPRINT)
    except ManifestError:
        return None
    return None if found is None or is_lost(still, found) else found


def whole(objects: Objects) -> None:
    """The invariant of every state: what is committed has all of its files."""
    manifest = committed(objects)
    if manifest is not None:
        missing = [key for key in manifest.file_keys() if key not in objects]
        assert not missing, f"a committed stage has lost {missing}"


def explained(outcome: Outcome) -> str:
    return "\n".join(outcome.history)


def objects_of(*attempts: Attempt) -> Objects:
    world = World({}, conditional=True)
    for attempt in attempts:
        attempt.run(world)
    return world.objects


@BOTH
def test_writers_of_one_output_and_a_reader(conditional: bool) -> None:
    """Two runs race for one fingerprint, each may crash at any step; somebody reads meanwhile."""
    search = Search(
        actors={"one": FIRST.run, "other": SECOND.run, "reader": read},
        conditional=conditional,
        may_crash=frozenset(("one", "other")),
        look=whole,
    )
    for outcome in search.outcomes():
        assert outcome.results["reader"] in (None, [1, 2]), explained(outcome)
        for name in {"one", "other"} - outcome.crashed:
            manifest = outcome.results[name]
            assert isinstance(manifest, Manifest), explained(outcome)
            # What a writer is told is whole for good, even if another commit has replaced it.
            assert rows_of(World(outcome.objects, conditional=True), manifest) == [1, 2]
        if len(outcome.crashed) < 2:
            assert committed(outcome.objects) is not None, explained(outcome)
            if conditional and not outcome.crashed:
                hashes = {outcome.results[n].manifest_hash for n in ("one", "other")}
                assert len(hashes) == 1, explained(outcome)
    assert search.num_states > 300


@BOTH
def test_a_task_that_ends_late_changes_nothing(conditional: bool) -> None:
    """A speculative or retried task writes its file again, under another name, at any time."""

    def late(store: World) -> None:
        key, content = next(iter(THIRD.contents.items()))
        store.write_bytes(key, content)

    search = Search(
        actors={"one": FIRST.run, "late": late, "reader": read},
        conditional=conditional,
        may_crash=frozenset(("late", "one")),
        look=whole,
    )
    for outcome in search.outcomes():
        assert outcome.results["reader"] in (None, [1, 2]), explained(outcome)
        if "one" not in outcome.crashed:
            assert outcome.results["one"].files[0].attempt == "first"


def recover(attempt: Attempt) -> Callable[[World], list[int]]:
    """A run that needs the stage: reuses it, or finds it lost and computes it."""

    def run(store: World) -> list[int]:
        for _ in range(4):
            manifest = usable(store) or attempt.run(store)
            try:
                return rows_of(store, manifest)
            except ShuffleReadError:
                forget_if_damaged(store, manifest)
        raise AssertionError("no end of losses")

    return run


def damaged(how: str) -> Objects:
    objects = objects_of(FIRST)
    if how == "missing":
        del objects[next(iter(FIRST.contents))]
    else:
        objects[layout.manifest(FINGERPRINT)] = (b'{"format', NOW)
    return objects


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("how", ["missing", "manifest"])
def test_what_is_lost_is_computed_again_by_one_or_two(how: str, conditional: bool) -> None:
    """Two runs find a loss; no commit that one of them makes is undone by the other."""
    lost = load_first()

    def look(objects: Objects) -> None:
        found = committed(objects)
        if found is not None and found.manifest_hash != lost.manifest_hash:
            whole(objects)

    search = Search(
        actors={"one": recover(SECOND), "other": recover(THIRD)},
        objects=damaged(how),
        conditional=conditional,
        may_crash=frozenset(("one",)),
        look=look,
    )
    for outcome in search.outcomes():
        for name in {"one", "other"} - outcome.crashed:
            assert outcome.results[name] == [1, 2], explained(outcome)
        found = committed(outcome.objects)
        assert found is not None, explained(outcome)
        assert found.manifest_hash != lost.manifest_hash
        whole(outcome.objects)
    assert search.num_states > 200


def load_first() -> Manifest:
    found = load_manifest(World(objects_of(FIRST), conditional=True), FINGERPRINT)
    assert found is not None
    return found


def reuse(store: World) -> list[int]:
    """A run that reuses an output: looks, pins, looks again, reads; as `stagecoach.infra.runtime.stages.run_stage`."""
    mark_begun(store, "run", "run")
    manifest = usable(store)
    reused = manifest is not None
    while True:
        if manifest is None:
            manifest = SECOND.run(store)
        pointer = StagePointer(
            expected=FINGERPRINT, fingerprint=FINGERPRINT, manifest_hash=manifest.manifest_hash
        )
        write_pointer(store, "run", 0, pointer)
        if not reused or store.exists(layout.manifest(FINGERPRINT)):
            return rows_of(store, manifest)
        manifest, reused = usable(store), True
        reused = manifest is not None


@pytest.mark.slow
@BOTH
def test_collection_beside_a_run_that_reuses_what_has_expired(conditional: bool) -> None:
    def collect(store: World) -> None:
        collect_garbage(store, older_than=timedelta(days=7), now=NOW)

    search = Search(
        actors={"run": reuse, "gc": collect},
        objects=aged(objects_of(FIRST), timedelta(days=30)),
        conditional=conditional,
        may_crash=frozenset(("gc", "run")),
    )
    for outcome in search.outcomes():
        if "run" in outcome.crashed:
            continue
        found = outcome.results["run"]
        # It reads all, or is told of the loss: gc had taken the manifest away for a moment, or
        # crashed in that moment.
        assert found == [1, 2] or isinstance(found, ShuffleReadError), explained(outcome)
        pointer = read_pointer(World(outcome.objects, conditional=True), "run", 0)
        assert pointer is not None
        if "gc" not in outcome.crashed:
            manifest = committed(outcome.objects)
            assert manifest is not None, explained(outcome)
            whole(outcome.objects)
            assert rows_of(World(outcome.objects, conditional=True), manifest) == [1, 2]
    assert search.num_states > 200


@pytest.mark.slow
@BOTH
def test_collection_beside_a_run_that_computes(conditional: bool) -> None:
    """What a run in progress writes is no garbage, even with no age at all; its orphans are."""

    def compute(store: World) -> list[int]:
        mark_begun(store, "run", "run")
        manifest = SECOND.run(store)
        pointer = StagePointer(
            expected=FINGERPRINT, fingerprint=FINGERPRINT, manifest_hash=manifest.manifest_hash
        )
        write_pointer(store, "run", 0, pointer)
        return rows_of(store, manifest)

    def collect(store: World) -> None:
        collect_garbage(store, older_than=timedelta(0), now=NOW)

    orphans = aged({k: (c, NOW) for k, c in THIRD.contents.items()}, timedelta(days=1))
    search = Search(
        actors={"run": compute, "gc": collect},
        objects=orphans,
        conditional=conditional,
        may_crash=frozenset(("gc",)),
        look=whole,
    )
    for outcome in search.outcomes():
        assert outcome.results["run"] == [1, 2], explained(outcome)
        if "gc" not in outcome.crashed:
            assert not set(THIRD.contents) & set(outcome.objects), explained(outcome)


def test_the_search_finds_a_protocol_that_is_wrong() -> None:
    """Manifest before the files: a reader must be caught with part of a stage."""

    def hasty(store: World) -> None:
        FIRST.commit(store)
        FIRST.write(store)

    search = Search(actors={"hasty": hasty, "reader": read})
    found = [outcome.results["reader"] for outcome in search.outcomes()]
    assert any(isinstance(result, ShuffleReadError) for result in found)
    with pytest.raises(AssertionError, match="a committed stage has lost"):
        list(Search(actors={"hasty": hasty}, look=whole).outcomes())


def test_ended_runs_protect_nothing(tmp_path: Path) -> None:
    world = World(aged(objects_of(FIRST), timedelta(days=30)), conditional=True)
    mark_begun(world, "run", "run")
    mark_ended(world, "run", "run")
    collect_garbage(world, older_than=timedelta(days=7), now=NOW)
    assert not [key for key in world.objects if key.startswith("shuffle/")]
