"""Pointers: what each stage of a run ended with, as later readers of the run see it.

`runs/<root run>/stages/stage_<n>.json` pins the hash of the manifest that the run read first, so
that all consumers of a stage read the same one. Re-executions share the pointers of their root
run: they read the same snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.rereads import reread
from stagecoach.planner.types import Field, parse_result_type

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class StagePointer:
    """How a stage of a run ended.

    Args:
        expected: The fingerprint that the stage has by its plan and inputs.
        fingerprint: Where its output is; another one where Spark ran the whole query instead.
        manifest_hash: Which commit; empty if there is none.
        deferred: Why the stage left its work to the head stage, or None.
        columns: Names and types of the result's columns, for the head stage.
        engine: What ran it.
        fallback_reason: Why it is not the engine of the plan, or None.
        content: Hash of what the commit's files hold; empty if there is none.
        ancestry: Such hashes of all stages upstream that it was computed from, by fingerprint; in
            storage it is called `lineage`.
        plan: Hash of the run's plan, which keeps the plan from gc; empty if it is not known.
    """

    expected: str
    fingerprint: str
    manifest_hash: str = ""
    deferred: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    engine: str = ""
    fallback_reason: str | None = None
    content: str = ""
    ancestry: Mapping[str, str] = field(default_factory=dict)
    plan: str = ""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The result's columns."""
        return tuple(Field(name, parse_result_type(kind)) for name, kind in self.columns)


def write_pointer(
    store: ObjectStore, run_id: str, stage_id: int | str, pointer: StagePointer
) -> None:
    """Say how a stage ended; the last word counts."""
    values = dict(vars(pointer))
    values["lineage"] = values.pop("ancestry")
    store.write_bytes(_key(run_id, stage_id), checked_json.dump(values))


def pin_base(store: ObjectStore, run_id: str, stage_id: int, base: StagePointer) -> None:
    """Keep a commit from gc while a stage of the run takes files over from it."""
    write_pointer(store, run_id, f"{stage_id}-base", base)


def pin(store: ObjectStore, run_id: str, stage_id: int, pointer: StagePointer) -> StagePointer:
    """Write a pointer unless there is one for the same output; return the one that counts."""
    found = read_pointer(store, run_id, stage_id)
    if found is None or found.expected != pointer.expected:
        write_pointer(store, run_id, stage_id, pointer)
        return pointer
    return found


def read_pointer(store: ObjectStore, run_id: str, stage_id: int) -> StagePointer | None:
    """How a stage of a run ended, or None if it has not.

    A pointer that is damaged counts as none: what is committed is then pinned anew.
    """
    key = _key(run_id, stage_id)

    damaged = (ValueError, TypeError, KeyError)
    try:
        return reread(store, key, lambda: parse_pointer(store.read_bytes(key)), damaged)
    except ObjectMissingError:
        return None
    except damaged as error:
        log.warning("the pointer %s is damaged (%s), so it counts as none", store.uri(key), error)
        return None


def parse_pointer(text: bytes) -> StagePointer:
    """Return the pointer with this text.

    Raises:
        ValueError, TypeError, KeyError: The text is damaged.
    """
    values = checked_json.load(text)
    columns = tuple((name, kind) for name, kind in values["columns"])
    ancestry = values.pop("lineage", {})
    return StagePointer(**{**values, "columns": columns, "ancestry": ancestry})


def _key(run_id: str, stage_id: int | str) -> str:
    return layout.run_stage(run_id, f"stage_{stage_id}")
