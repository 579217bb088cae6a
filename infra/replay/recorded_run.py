"""What a run has left in storage: enough to compute each of its stages again.

    runs/<run>/plans, snapshot.json, clock.txt, stages/…  ─▶  RecordedRun

Only reads. What gc has removed since is an error that says so.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.runtime.planning.plan_tasks import StageReads, task_settings
from stagecoach.infra.runtime.records.parameters import bind_parameters
from stagecoach.infra.runtime.records.pointers import StagePointer, read_pointer
from stagecoach.infra.runtime.records.run_marks import BEGUN
from stagecoach.infra.runtime.records.run_plan import RunPlan, read_run_plans
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.worker.spec import TaskSettings
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import GraphFormatError, StagecoachError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.given_parameters import RUN_BOUND_PREFIX
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.project_function import ProjectFunction

_SHORTEST = 4
"""Characters by which a run may be named at least."""


class NotReplayableError(StagecoachError):
    """A run, or a stage of it, cannot be computed again: what it needs is not in storage."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run that has been, with all that its stages read.

    Args:
        run_id: Its folder in storage.
        store: The storage root.
        settings: How its stages are run now.
        graph: The plan that it went by.
        values: A value for every parameter, those of its clock among them.
        snapshot: The files of its tables.
        pointers: How its stages ended, by number; those that never ended are left out.
        code_path: Folders in which the code of the project's functions is.
    """

    run_id: str
    store: ObjectStore
    settings: EngineSettings
    graph: StageGraph
    values: Mapping[str, Literal]
    snapshot: Snapshot
    pointers: Mapping[int, StagePointer]
    code_path: tuple[str, ...] = ()

    def stage_name(self, stage_id: int) -> str:
        """Name of a stage as messages show it."""
        return f"{self.graph.query}/stage_{stage_id}"

    def output(self, stage_id: int) -> Manifest | None:
        """The commit that the run read, or None where the stage has none in this run.

        Raises:
            NotReplayableError: It is gone.
        """
        pointer = self.pointers.get(stage_id)
        if pointer is None or not pointer.manifest_hash:
            return None
        name = self.stage_name(stage_id)
        found = load_manifest(self.store, pointer.fingerprint, stage=name)
        if found is not None and found.manifest_hash == pointer.manifest_hash:
            return found
        what = "is gone: gc removed it" if found is None else "was replaced by a later computation"
        raise NotReplayableError(
            f"the output of {name} in run '{self.run_id}' {what}; run the query again and replay "
            "that run"
        )

    def reads(self, stage: Stage) -> StageReads:
        """What a stage read.

        Raises:
            NotReplayableError: A stage that it reads has no output in this run, or it is gone.
        """
        manifests: dict[int, Manifest] = {}
        for stage_id in stage.inputs:
            if (found := self.output(stage_id)) is None:
                raise NotReplayableError(
                    f"{self.stage_name(stage.stage_id)} cannot be replayed: run '{self.run_id}' "
                    f"has no output of {self.stage_name(stage_id)}, which it reads"
                )
            manifests[stage_id] = found
        return StageReads(self.graph, stage, self.snapshot, manifests, self.values)

    def code_of(self, functions: tuple[ProjectFunction, ...]) -> FunctionSet:
        """These functions of the project, with where their code is."""
        return FunctionSet(functions, self.code_path if functions else ())

    def task_settings(self, functions: tuple[ProjectFunction, ...]) -> TaskSettings:
        """What a task needs of the settings."""
        code = self.code_of(functions)
        zone = self.graph.time_zone
        return task_settings(self.settings, self.store, self.snapshot, zone, code)

    @cached_property
    def whole_query(self) -> str | None:
        """Why Spark made the result from the query's text instead of the head stage, or None."""
        pointer = self.pointers.get(self.graph.head.stage_id)
        if pointer is None or pointer.fingerprint == pointer.expected:
            return None
        return pointer.fallback_reason or "its result would have had other columns"


def open_run(store: ObjectStore, settings: EngineSettings, name: str) -> RecordedRun:
    """Open a run by its id, or by the first characters of it.

    Args:
        store: The storage root.
        settings: How its stages are run now.
        name: Id of the run as Dagster, logs and `runs/` in storage show it. A re-execution belongs
            to the run that it continues. A run of several queries has a folder for each:
            `<run>.<query>`.

    Raises:
        ConfigError: There is no such run, or several are meant.
        NotReplayableError: It has left too little.
    """
    run_id = _find(store, name)
    plans = _plans(store, run_id)
    pointers: dict[str, dict[int, StagePointer]] = {}
    for plan in plans:
        found = {s.stage_id: read_pointer(store, run_id, s.stage_id) for s in plan.graph.stages}
        of_plan = {i: p for i, p in found.items() if p is not None and _made_by(plan, p)}
        pointers[plan.graph.plan_hash] = of_plan
    # A re-execution may have had another plan; the one that made most of the outputs is shown.
    chosen = max(plans, key=lambda plan: len(pointers[plan.graph.plan_hash]))
    key = layout.run_snapshot(run_id)
    try:
        snapshot = Snapshot.from_json(store.read_bytes(key))
    except ObjectMissingError as error:
        raise NotReplayableError(
            f"run '{run_id}' has no snapshot of its tables ({store.uri(key)}): it failed before it "
            "read any, or gc has removed the run; run the query again"
        ) from error
    return RecordedRun(
        run_id=run_id,
        store=store,
        settings=settings,
        graph=chosen.graph,
        values=_values(store, run_id, chosen),
        snapshot=snapshot,
        pointers=pointers[chosen.graph.plan_hash],
    )


def _made_by(plan: RunPlan, pointer: StagePointer) -> bool:
    return pointer.plan in ("", plan.graph.plan_hash)


def _values(store: ObjectStore, run_id: str, plan: RunPlan) -> Mapping[str, Literal]:
    clock = [p.name for p in plan.graph.parameters if p.name.startswith(RUN_BOUND_PREFIX)]
    if clock and not store.exists(layout.run_clock(run_id)):
        raise NotReplayableError(
            f"run '{run_id}' has no clock ({store.uri(layout.run_clock(run_id))}), and the query "
            "asks for the time: it failed before it read the clock, or gc has removed the run"
        )
    return bind_parameters(plan.graph, plan.parameters, store, run_id)


def _plans(store: ObjectStore, run_id: str) -> Sequence[RunPlan]:
    try:
        plans = read_run_plans(store, run_id)
    except (ValueError, KeyError, TypeError, GraphFormatError) as error:
        raise NotReplayableError(
            f"the plan of run '{run_id}' in {store.uri(layout.run_plans(run_id))} cannot be read "
            f"({error}); run the query again and replay that run"
        ) from error
    if not plans:
        raise NotReplayableError(
            f"run '{run_id}' has not kept its plan: an older Stagecoach ran it, or gc has removed "
            "it; run the query again and replay that run"
        )
    return plans


# ---------------------------------------------------------------- which run is meant


def _find(store: ObjectStore, name: str) -> str:
    """The folder of the run that is meant."""
    try:
        if next(iter(store.list(layout.run_plans(name))), None) is not None:
            return name
    except StagecoachError as error:
        raise ConfigError(f"'{name}' is not the id of a run: {error}") from error
    folders = store.folders(layout.RUNS_ROOT)
    whole = [folder for folder in folders if folder == name or folder.startswith(f"{name}.")]
    begun = [folder for folder in folders if folder.startswith(name)]
    found = whole or (begun if len(name) >= _SHORTEST else [])
    if not found:
        found = [f for f in folders if _has_begun(store, f, name)]
    queries = [folder for folder in found if not _is_of_check(folder)] or found
    if len(queries) == 1:
        return queries[0]
    where = store.uri(layout.RUNS_ROOT)
    if queries:
        shown = ", ".join(f"'{folder}'" for folder in queries[:10])
        raise ConfigError(f"'{name}' may be any of {len(queries)} runs: {shown}; name one of them")
    near = {folder[: len(name)]: folder for folder in reversed(folders)}
    close = [near[found] for found in difflib.get_close_matches(name, near, n=3)]
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ConfigError(f"there is no run '{name}' in {where}{hint or _without(folders)}")


def _has_begun(store: ObjectStore, folder: str, name: str) -> bool:
    """Whether a re-execution of that name works in a folder."""
    marks = store.list(f"{layout.run_prefix(folder)}/{BEGUN}")
    runs = (mark.rsplit("/", 1)[1] for mark in marks)
    return any(run == name or run.partition(".")[0] == name for run in runs)


def _is_of_check(folder: str) -> bool:
    """Whether a folder is that of a check's query: `<run>.<query>.<check>.<number>`."""
    return Counter(folder)["."] >= 3


def _without(folders: Sequence[str]) -> str:
    if not folders:
        return ", which has no runs; --storage says where runs are"
    others = f"{len(folders)} other{'' if len(folders) == 1 else 's'}"
    return f", which has {others}; `stagecoach gc` removes old ones"
