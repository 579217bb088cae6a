"""Fingerprints of tasks: the identity of what one task of an incremental stage puts out.

A task knows of nothing but its `TaskSpec`, so the fingerprint is a hash of that: the SQL with its
constants, the rows of files and the partitions of other outputs that it reads, how its output is
divided. Left out is what changes no row: the run, the number of the task, where the output goes,
how much memory there is. Of another output the content counts, whichever commit holds it.

A pure function, so that any process computes the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.runtime.planning.fingerprint import computing_versions, digest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.worker.spec import TaskSpec
from stagecoach.planner.plan.stages import Stage

_OF_THE_RUN = ("query", "stage_id", "fingerprint", "task_index", "settings", "trial", "inputs")
_OF_A_COMMIT = ("fingerprint", "manifest_hash", "stage", "shared")


def stage_key(spec: TaskSpec, plan_hash: str, tables: Sequence[str]) -> str:
    """Identity of an incremental stage, whatever its files are.

    Args:
        spec: Any of its tasks.
        plan_hash: Hash of its plan.
        tables: The tables that it reads.
    """
    return digest({**_told(spec), "plan": plan_hash, "tables": sorted(tables)})


def task_fingerprint(spec: TaskSpec, plan_hash: str, inputs: Mapping[str, Manifest]) -> str:
    """Identity of what a task puts out.

    Args:
        spec: The task.
        plan_hash: Hash of the plan of its stage.
        inputs: The outputs that it reads, by fingerprint.
    """
    values = spec.to_dict()["inputs"]
    read = [_read(value, inputs) for value in values]
    return digest({**_told(spec), "plan": plan_hash, "inputs": read})


def shared_fingerprint(spec: TaskSpec, stage: Stage, inputs: Mapping[str, Manifest]) -> str:
    """Identity of what every task of a stage reads: broadcasts, runtime filters, small tables.

    Args:
        spec: Any of the tasks.
        stage: The stage.
        inputs: The outputs that they read, by fingerprint.
    """
    divided = {leaf for branch in stage.branches for leaf in branch.leaves}
    values = spec.to_dict()["inputs"]
    return digest([_read(v, inputs) for leaf, v in enumerate(values) if leaf not in divided])


def _told(spec: TaskSpec) -> dict[str, Any]:
    values = spec.to_dict()
    return {
        **{name: value for name, value in values.items() if name not in _OF_THE_RUN},
        "time_zone": spec.settings.time_zone,
        "codec": spec.settings.codec,
        "functions": [function.to_dict() for function in spec.settings.functions.functions],
        "versions": computing_versions(),
    }


def _read(value: dict[str, Any], inputs: Mapping[str, Manifest]) -> Any:
    if value["kind"] == "shuffle":
        content = inputs[value["fingerprint"]].content_hash
        kept = {k: v for k, v in value.items() if k not in _OF_A_COMMIT}
        return {**kept, "content": content}
    if value["kind"] == "scan":
        return {**value, "files": [_file(file) for file in value["files"]]}
    return value


def _file(file: list[Any]) -> list[Any]:
    """A file without what may be added later and changes no row.

    The checksums of its columns are added by `verify --adopt`. How it stores its columns is noted
    once another file of the table stores them in another way.
    """
    return replace(DataFile.from_list(file), checksums="", stored_types=()).to_list()
