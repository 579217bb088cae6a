"""One fault of a stored object: who reads the object then, and how that ended."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal
from unittest import mock

from benchmarks.stored_faults.warehouse import Warehouse
from stagecoach.infra.formats.deduplicated.operations import ChunkOperations
from stagecoach.infra.runtime.stages import attempt as execution
from stagecoach.infra.runtime.stages.run_stage import run_stage
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.verify.verification import verify_storage
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.expressions import Literal as LiteralValue
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.render.fragment import render_fragment
from tests.contexts import run_stages

TABLE_OF = {
    "published file": "published",
    "published version": "published",
    "published hint": "published",
    "parquet chunk": "parquet_chunks",
    "chunk version": "parquet_chunks",
    "chunk hint": "parquet_chunks",
    "arrow chunk": "arrow_chunks",
}
OUTPUTS = ("map file", "index", "manifest")
OF_RUNS = ("snapshot", "pointer", "analysis")
KINDS = (*TABLE_OF, *OUTPUTS, *OF_RUNS, "plan")
HOWS = ("bit flip", "bit flip", "zeros", "cut")
"""Bit flips are the hardest to notice, so there are more of them."""

GOOD = ("right, noticed", "right, harmless", "clear error")
BAD = ("wrong rows", "silent", "unclear error", "not verified")
_REMEDIES = ("start a new run", "again", "restore", "write it", "remove", "lists")


@dataclass(frozen=True)
class Fault:
    """A fault to be met.

    Attributes:
        number: Its number in the campaign.
        kind: What is damaged.
        how: How.
        spark: Whether Spark runs the fragments, instead of DuckDB.
        recover: Whether lost outputs are computed again.
    """

    number: int
    kind: str
    how: str
    spark: bool
    recover: bool


@dataclass(frozen=True)
class Ending:
    """How a fault ended.

    Attributes:
        fault: The fault.
        ending: One of `GOOD` or `BAD`.
        note: The object, what was done to it, and the error.
    """

    fault: Fault
    ending: str
    note: str


def meet(warehouse: Warehouse, fault: Fault, dice: Random, expected: dict[str, Any]) -> Ending:
    """Damage an object, read it, and tell how that ended; then the object is whole again."""
    table = TABLE_OF.get(fault.kind, "published")
    if fault.kind in OUTPUTS or fault.kind in OF_RUNS:
        return _meet_in_run(warehouse, fault, dice, expected[table])
    store, key = dice.choice(list(warehouse.victims(fault.kind)))
    # Half of the queries that Spark meets are whole on Spark, and no task of ours reads a file.
    whole = fault.spark and dice.random() < 0.5
    is_planned = dice.random() < 0.5  # before the damage, or after it
    graph = warehouse.plan(table, whole=whole) if is_planned else None
    with damaged(store, key, fault.how, dice) as what:
        verified = _is_verified(warehouse, store, key)

        def read() -> list[dict[str, Any]]:
            if fault.kind == "plan":
                return warehouse.answer(warehouse.kept_plan())
            return warehouse.answer(graph or warehouse.plan(table, whole=whole))

        return _judged(fault, what, store.uri(key), verified, expected[table], read)


def _meet_in_run(
    warehouse: Warehouse, fault: Fault, dice: Random, expected: list[dict[str, Any]]
) -> Ending:
    """Damage what a run has written when it is half done, and let its re-execution go on."""
    graph = warehouse.plan("published")
    first = warehouse.context(graph, fresh=False, recover=fault.recover)
    cut = dice.randrange(1, len(graph.stages) + 1)
    with warehouse.running(graph):
        for stage in graph.stages[:cut]:
            run_stage(stage.stage_id, first)
    before, warehouse.last_run = warehouse.last_run, first.run_id
    try:
        found = list(warehouse.victims(fault.kind))
        if fault.kind in OUTPUTS:
            own = {first.fingerprints[stage.stage_id] for stage in graph.stages[:cut]}
            found = [item for item in found if item[1].split("/")[2] in own]
        store, key = dice.choice(found)
        with damaged(store, key, fault.how, dice) as what:
            verified = _is_verified(warehouse, store, key)

            def read() -> list[dict[str, Any]]:
                again = warehouse.context(
                    graph, fresh=False, recover=fault.recover, root_run_id=first.run_id
                )
                with warehouse.running(graph):
                    return run_stages(again)[0].to_pylist()

            return _judged(fault, what, store.uri(key), verified, expected, read)
    finally:
        warehouse.last_run = before
        _forget_outputs(warehouse, graph)


def _forget_outputs(warehouse: Warehouse, graph: StageGraph) -> None:
    """Let the next run of the query compute everything anew."""
    store = warehouse.store
    own = {m.fingerprint for m in warehouse.manifests()}
    keys = [key for key in store.list("shuffle") if key.split("/")[2] in own]
    store.delete(keys)


def _judged(
    fault: Fault, what: str, uri: str, verified: bool, expected: list[dict[str, Any]], read: Any
) -> Ending:
    note = f"{uri}: {what}"
    engine = mock.patch.object(execution, "render_fragment", _broken_on_duckdb)
    try:
        if fault.spark:
            with engine:
                found = read()
        else:
            found = read()
    except StagecoachError as error:
        return Ending(fault, _judged_error(error, uri, verified), f"{note}: {error}")
    except Exception as error:  # noqa: BLE001  # whatever it is, it is none of ours
        return Ending(fault, "unclear error", f"{note}: {type(error).__name__}: {error}")
    if found != expected:
        return Ending(fault, "wrong rows", note)
    if verified:
        # Of a table every byte is read; anything else is made again, or is not needed.
        is_read = fault.kind in ("published file", "parquet chunk", "arrow chunk")
        return Ending(fault, "silent" if is_read else "right, noticed", note)
    is_hint = fault.kind.endswith("hint") or fault.kind == "index"
    ending = "right, harmless" if is_hint or what.startswith("nothing") else "not verified"
    return Ending(fault, ending, note)


def _broken_on_duckdb(
    stage: Stage, engine: Literal["duckdb", "spark"], parameters: Mapping[str, LiteralValue] | None
) -> str:
    """The fragment's SQL, which on DuckDB raises, so that Spark runs the stage."""
    sql = render_fragment(stage, engine, parameters)
    if engine != "duckdb":
        return sql
    return f"SELECT * FROM ({sql}) AS broken WHERE CAST(error('of the campaign') AS BOOLEAN)"


def _judged_error(error: StagecoachError, uri: str, verified: bool) -> str:
    text = str(error)
    names = uri.rsplit("/", 1)[-1] in text or uri in text
    if not names and not any(remedy in text for remedy in _REMEDIES):
        return "unclear error"
    return "clear error" if verified else "not verified"


def _is_verified(warehouse: Warehouse, store: ObjectStore, key: str) -> bool:
    """Whether `storage verify` names the object, and nothing else."""
    tables = [
        ChunkOperations(warehouse.chunk_table(name)) for name in ("parquet_chunks", "arrow_chunks")
    ]
    uris = {damage.uri for damage in verify_storage(warehouse.store, tables).damages}
    assert uris <= {store.uri(key)}, uris
    return bool(uris)


@contextmanager
def damaged(store: ObjectStore, key: str, how: str, dice: Random) -> Iterator[str]:
    """Damage an object while the block runs; yields what was done to it.

    It is whole again afterwards unless somebody has written it anew.
    """
    good = store.read_bytes(key)
    bad, what = _damage(good, how, dice)
    if store.is_local:
        _write_in_place(store.uri(key), bad)
    else:
        store.write_bytes(key, bad)
    try:
        yield what
    finally:
        if store.exists(key) and store.read_bytes(key) == bad:
            store.write_bytes(key, good)


def _write_in_place(path: str, content: bytes) -> None:
    """Change a file and leave its time of modification, as a device that rots does."""
    status = os.stat(path)
    Path(path).write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _damage(content: bytes, how: str, dice: Random) -> tuple[bytes, str]:
    position = dice.randrange(len(content))
    match how:
        case "bit flip":
            bit = dice.randrange(8)
            made = bytearray(content)
            made[position] ^= 1 << bit
            return bytes(made), f"bit {bit} of byte {position} of {len(content)} is flipped"
        case "zeros":
            length = min(dice.choice((1, 16, 512, 4096)), len(content) - position)
            made = bytearray(content)
            made[position : position + length] = bytes(length)
            is_same = bytes(made) == content
            what = f"{length} bytes from {position} of {len(content)} are zeros"
            return bytes(made), "nothing, for " + what if is_same else what
    return content[:position], f"cut after {position} of {len(content)} bytes"
