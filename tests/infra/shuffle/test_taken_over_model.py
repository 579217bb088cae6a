"""Commits that take files over from earlier ones, beside gc: every interleaving, every crash.

A commit never loses a file that another commit has the folder of, and no file stays for ever.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from stagecoach.infra.runtime.records.hints import Hint, write_hint
from stagecoach.infra.runtime.records.pointers import StagePointer, write_pointer
from stagecoach.infra.runtime.records.run_marks import mark_begun
from stagecoach.infra.runtime.stages import taken_over
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.shuffle.commit import load_files, load_manifest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.shuffle.map_file import MapFile
from stagecoach.infra.shuffle.reader import read_table
from stagecoach.infra.storage import layout
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.planner.plan.stages import Stage
from tests.stage_outputs import commit_files, write_map_file

sys.path.insert(0, str(Path(__file__).parent))
from interleavings import NOW, Objects, Outcome, Search, World, aged

KEY = "ee" * 32
FIRST, SECOND = "ab" * 32, "cd" * 32
SCHEMA = pa.schema([pa.field("a", pa.int64())])
BOTH = pytest.mark.parametrize("conditional", [True, False], ids=["conditional", "unconditional"])
STAGE = cast("Stage", SimpleNamespace(stage_id=0))
MONTH = timedelta(days=30)
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


class Written:
    """A map file, made once: its key, its bytes and what its task reported."""

    def __init__(self, fingerprint: str, task: int, row: int, name: str) -> None:
        world = World({}, conditional=True)
        rows = pa.RecordBatch.from_arrays([pa.array([row])], schema=SCHEMA)
        file = write_map_file(
            cast("Any", world), fingerprint, [rows], SCHEMA, task=task, attempt=name
        )
        self.file: MapFile = replace(file, task_fingerprint=f"{row:064x}")
        self.key = layout.map_file(fingerprint, task, name)
        self.content = world.objects[self.key][0]

    def write(self, store: World) -> MapFile:
        store.write_bytes(self.key, self.content)
        return self.file


OLD = [Written(FIRST, task, task + 1, "old") for task in range(2)]
NEW = Written(SECOND, 1, 3, "new")
# What the run computes itself where it finds nothing to take over.
OWN = Written(SECOND, 0, 1, "own")


def begun() -> Objects:
    """A commit of a month ago, and the hint at it."""
    world = World({}, conditional=True)
    manifest = commit_files(world, FIRST, [file.write(world) for file in OLD], SCHEMA)
    hint = Hint(fingerprint=FIRST, manifest_hash=manifest.manifest_hash)
    write_hint(world, KEY, hint)
    return aged(world.objects, MONTH)


def context_of(store: World) -> Run:
    said = {"store": store, "root_run_id": "run", "stage_name": lambda _: "q/stage_0"}
    graph = SimpleNamespace(plan_hash="")
    return cast("Run", SimpleNamespace(**said, graph=graph))


def take(store: World) -> Manifest:
    """A run over the rows 1 and 3, of which the earlier commit has 1; as `attempt.run_in_tasks`."""
    mark_begun(store, "run", "run")
    base = taken_over._pinned_base(context_of(store), STAGE, KEY)
    files = [NEW.file]
    alike = {} if base is None else taken_over._alike(base, [OWN.file.task_fingerprint])
    if base is not None and (found := taken_over._whole(store, base, alike)):
        files.append(replace(load_files(store, base, {found[0]})[found[0]], task_index=0))
    else:
        files.append(OWN.write(store))
    NEW.write(store)
    manifest = commit_files(store, SECOND, files, SCHEMA)
    pointer = StagePointer(
        expected=SECOND, fingerprint=SECOND, manifest_hash=manifest.manifest_hash
    )
    write_pointer(store, "run", 0, pointer)
    return manifest


def collect(store: World) -> None:
    collect_garbage(store, older_than=timedelta(days=7), now=NOW)


def whole(objects: Objects) -> None:
    """The invariant of every state: the new commit has all of its files."""
    manifest = load_manifest(World(objects, conditional=True), SECOND)
    if manifest is not None:
        missing = [key for key in manifest.file_keys() if key not in objects]
        assert not missing, f"a committed stage has lost {missing}"


def explained(outcome: Outcome) -> str:
    return "\n".join(outcome.history)


@BOTH
def test_gc_beside_a_run_that_takes_files_over(conditional: bool) -> None:
    search = Search(
        actors={"run": take, "gc": collect},
        objects=begun(),
        conditional=conditional,
        may_crash=frozenset(("gc", "run")),
        look=whole,
    )
    taken = 0
    for outcome in search.outcomes():
        if "run" in outcome.crashed:
            continue
        manifest = outcome.results["run"]
        assert isinstance(manifest, Manifest), explained(outcome)
        still = World(outcome.objects, conditional=True)
        assert sorted(read_table(still, manifest).column(0).to_pylist()) == [1, 3]
        taken += manifest.files[0].home == FIRST
    assert taken
    assert search.num_states > 200


def after(*, keeps_first: bool) -> Objects:
    """Both commits, the second over a file of the first, and a run that has pinned one of them."""
    world = World(begun(), conditional=True)
    take(world)
    world.objects = aged(
        {k: v for k, v in world.objects.items() if not k.startswith("runs/")}, MONTH
    )
    pin(world, FIRST if keeps_first else SECOND)
    return world.objects


def pin(store: World, fingerprint: str) -> bool:
    """A run that reuses an output, if it is still there after it is pinned."""
    mark_begun(store, f"run-{fingerprint[:2]}", "run")
    write_pointer(
        store,
        f"run-{fingerprint[:2]}",
        0,
        StagePointer(expected=fingerprint, fingerprint=fingerprint),
    )
    return store.exists(layout.manifest(fingerprint))


@BOTH
@pytest.mark.parametrize("keeps_first", [True, False])
def test_two_collections_beside_a_commit_that_stays(keeps_first: bool, conditional: bool) -> None:
    """Each commit needs the file that both name; the other commit goes, and all that only it has."""
    kept, gone = (FIRST, SECOND) if keeps_first else (SECOND, FIRST)

    def look(objects: Objects) -> None:
        manifest = load_manifest(World(objects, conditional=True), kept)
        assert manifest is not None
        assert not [key for key in manifest.file_keys() if key not in objects]

    search = Search(
        actors={"gc": collect, "again": collect},
        objects=after(keeps_first=keeps_first),
        conditional=conditional,
        may_crash=frozenset(("gc",)),
        look=look,
    )
    for outcome in search.outcomes():
        manifest = load_manifest(World(outcome.objects, conditional=True), kept)
        assert manifest is not None
        left = {key for key in outcome.objects if key.startswith("shuffle/")}
        assert left == set(manifest.file_keys()), explained(outcome)
        assert layout.manifest(gone) not in outcome.objects
    assert search.num_states > 20


@BOTH
def test_gc_beside_a_run_that_pins_the_commit_that_took_files_over(conditional: bool) -> None:
    """Both have expired. What is put back has the files that lie in the folder of the other."""
    objects = after(keeps_first=True)
    objects = {key: value for key, value in objects.items() if not key.startswith("runs/")}
    search = Search(
        actors={"run": lambda store: pin(store, SECOND), "gc": collect},
        objects=objects,
        conditional=conditional,
    )
    kept = 0
    for outcome in search.outcomes():
        if outcome.results["run"] is True:
            kept += 1
            assert layout.manifest(SECOND) in outcome.objects, explained(outcome)
            whole(outcome.objects)
    assert kept


def test_the_search_finds_a_run_that_does_not_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A protocol that is wrong: the earlier commit is not pinned before it is looked at."""
    monkeypatch.setattr(taken_over, "pin_base", lambda *_: None)
    search = Search(actors={"run": take, "gc": collect}, objects=begun(), look=whole)
    with pytest.raises(AssertionError, match="a committed stage has lost"):
        list(search.outcomes())
