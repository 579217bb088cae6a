"""The stage graph: the contract between the planner and everything that runs a query.

A `StageGraph` is a DAG of stages, leaves first, head last. Its shape is fixed at planning time;
decisions at run time, such as task counts, never change it.

    query ─▶ StageGraph
               ├─ Stage 0 (leaf)   fragment: operators over leaves, output: shuffle(keys, n)
               ├─ Stage 1          its leaves: scans and `StageInputExec`
               └─ Stage n (head)   output: gather, the result
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.limits.deep_stack import run_deep
from stagecoach.planner.plan.encoding import SPARSE, Json, encode
from stagecoach.planner.plan.expressions import Parameter, ProjectCall
from stagecoach.planner.plan.physical import ExchangeKind, PhysicalPlan, ScanExec, StageInputExec
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType, Field

FORMAT_VERSION = 2
PLANNER_VERSION = 6

BranchKind = OneOf["splits", "partitions", "single"]


@dataclass(frozen=True)
class StageOutput:
    """How a stage's rows are laid out for its consumers.

    Args:
        kind: The exchange above the stage; the head stage gathers.
        keys: Positions of the hash keys in the stage's schema.
        num_partitions: Partitions of every map file; 1 unless the kind is shuffle.
        reason: Why the exchange is there, for people.
    """

    kind: ExchangeKind
    keys: tuple[int, ...] = ()
    num_partitions: int = 1
    reason: str = field(default="", compare=False)


@dataclass(frozen=True)
class Branch:
    """Leaves of a fragment that one family of tasks reads together.

    A union has a branch for each input; every other fragment has one. A task belongs to one branch:
    the leaves of other branches are empty for it, leaves in no branch are read whole by every task.

    Args:
        kind: `splits`: one scan, each task a share of its files; `partitions`: shuffle inputs with
            equal partitioning, each task a range of partitions; `single`: one task reads all.
        leaves: Positions in `Stage.leaves`.
    """

    kind: BranchKind
    leaves: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """A maximal plan fragment without an exchange: one Dagster asset, one Spark job.

    Args:
        stage_id: Number in topological order, leaves first.
        title: One line for people: what the stage does.
        fragment: Operator tree; its columns are numbered from 0 in the order in which they appear.
        branches: Which leaves each family of tasks reads.
        output: Layout of the shuffle files.
        schema: Output columns by position, with pinned types; names are for people.
        engine: Name of the engine that runs the fragment; see `stagecoach.planner.engines`.
        engine_reason: Why it is that engine.
        sql: Text of the whole query, where the stage is the query handed to Spark as it stands.
        estimated_rows: Planner's guess of the output rows.
        estimated_bytes: Planner's guess of the output bytes.
        operator_rows: The same guess for each operator of the fragment, parents first, left to
            right (as `tree.walk` goes); empty where there is none.
        operator_bytes: Likewise.
        sql_functions: Functions of the project that the text of the whole query calls.
        cores: Cores that its only task may use; its rows are the same, in any order.
        incremental: Whether its tasks read groups of files, and a run computes only the groups that
            the last one did not have.
        whole_reason: Why it is computed whole, where the plan is to be incremental; else empty.
    """

    stage_id: int
    title: str
    fragment: PhysicalPlan
    branches: tuple[Branch, ...]
    output: StageOutput
    schema: tuple[Field, ...]
    engine: str
    engine_reason: str
    sql: str | None = None
    sql_tables: tuple[str, ...] = ()
    deterministic: bool = True
    estimated_rows: int = 0
    estimated_bytes: int = 0
    operator_rows: tuple[int, ...] = ()
    operator_bytes: tuple[int, ...] = ()
    sql_functions: tuple[ProjectFunction, ...] = field(default=(), metadata={SPARSE: True})
    cores: int = field(default=1, metadata={SPARSE: True})
    incremental: bool = field(default=False, metadata={SPARSE: True})
    whole_reason: str = field(default="", metadata={SPARSE: True})

    @cached_property
    def leaves(self) -> tuple[ScanExec | StageInputExec, ...]:
        """Scans and stage inputs of the fragment, left to right; `in_<position>` in its SQL."""
        found = (n for n in walk(self.fragment) if isinstance(n, ScanExec | StageInputExec))
        return tuple(found)

    @cached_property
    def leaf_positions(self) -> Mapping[ScanExec | StageInputExec, int]:
        """The position by which the SQL reads a leaf: one for all places of a leaf."""
        return {leaf: position for position, leaf in enumerate(self.leaves)}

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Numbers of the stages that this one reads, each once, ascending."""
        ids = {leaf.stage_id for leaf in self.leaves if isinstance(leaf, StageInputExec)}
        return tuple(sorted(ids))

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """Base tables that the stage reads, each once, sorted."""
        names = {leaf.table for leaf in self.leaves if isinstance(leaf, ScanExec)}
        return tuple(sorted(names | set(self.sql_tables)))

    @cached_property
    def operator_sizes(self) -> Mapping[PhysicalPlan, tuple[int, int]]:
        """Estimated rows and bytes of each operator; empty where nothing was estimated."""
        if not self.operator_rows:
            return {}
        known = zip(self.operator_rows, self.operator_bytes, strict=True)
        return dict(zip(walk(self.fragment), known, strict=True))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that the fragment refers to, sorted."""
        found: set[str] = set()
        for node in walk(self.fragment):
            for expr in node.expressions:
                found |= {e.name for e in walk(expr) if isinstance(e, Parameter)}
        return tuple(sorted(found))

    @cached_property
    def functions(self) -> tuple[ProjectFunction, ...]:
        """Functions of the project that the stage calls, each once, sorted by name."""
        found = set(self.sql_functions)
        for node in walk(self.fragment):
            for expr in node.expressions:
                found |= {e.function for e in walk(expr) if isinstance(e, ProjectCall)}
        return tuple(sorted(found, key=lambda function: function.name))

    @cached_property
    def plan_hash(self) -> str:
        """Hash of what the stage computes (hex, 64 characters): Dagster's code version.

        Names, numbers of stages and estimates do not enter it; inputs enter by position.
        """
        text = run_deep(lambda: json.dumps(_canonical(self), sort_keys=True, separators=(",", ":")))
        return hashlib.sha256(text.encode()).hexdigest()

    def read_later(
        self,
        fragment: Callable[[], PhysicalPlan],
        *,
        inputs: tuple[int, ...],
        tables: tuple[str, ...],
    ) -> Stage:
        """The stage with operators that are only read when they are asked for.

        Args:
            fragment: Reads them; of several threads, each may call it.
            inputs: The stages that they read, as `inputs`.
            tables: The tables that they read, as `tables`.
        """
        stage = object.__new__(Stage)
        values = vars(stage)
        values.update(vars(self), inputs=inputs, tables=tables, _read_fragment=fragment)
        del values["fragment"]
        return stage

    if not TYPE_CHECKING:  # else any attribute would be one

        def __getattr__(self, name: str) -> PhysicalPlan:
            """The fragment of a stage that is read later."""
            values = vars(self)
            if name != "fragment" or "_read_fragment" not in values:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            # Two threads must not see operators that are equal and not the same.
            return values.setdefault(name, values["_read_fragment"]())


@dataclass(frozen=True)
class ParameterSpec:
    """A parameter of a query.

    Args:
        name: Name without the colon; names with `@` are bound by the run itself.
        dtype: Its type.
        default: Canonical literal value as text, or None where a value must be given.
    """

    name: str
    dtype: DataType
    default: str | None = None


@dataclass(frozen=True)
class StageGraph:
    """A planned query.

    Args:
        query: Name of the query.
        sql: Its text.
        stages: Leaves first; the last one is the head.
        result: Names (as Spark gives them, duplicates included) and types of the result's columns;
            empty for a query that is one Spark stage and that no Spark has analysed yet.
        parameters: What must be bound before a run.
        tables: Base tables with the schema that the plan was made for.
        time_zone: Session time zone.
        ordered: Whether the result has an order that the SQL asks for.
        functions: Functions of the project that the SQL calls.
        fallback_reason: Why the query is one Spark stage; None where it was staged.
        planner_version: Version of the planner that made the graph.
    """

    query: str
    sql: str
    stages: tuple[Stage, ...]
    result: tuple[Field, ...]
    parameters: tuple[ParameterSpec, ...] = ()
    tables: tuple[tuple[str, tuple[Field, ...]], ...] = ()
    time_zone: str = "UTC"
    ordered: bool = False
    fallback_reason: str | None = None
    planner_version: int = PLANNER_VERSION
    functions: tuple[ProjectFunction, ...] = field(default=(), metadata={SPARSE: True})

    def __post_init__(self) -> None:
        for position, stage in enumerate(self.stages):
            if stage.stage_id != position or any(i >= position for i in stage.inputs):
                raise InternalPlanError(f"stage {stage.stage_id} of '{self.query}' is out of order")

    @property
    def head(self) -> Stage:
        """The stage that produces the result."""
        return self.stages[-1]

    @cached_property
    def plan_hash(self) -> str:
        """Hash of the whole graph: of its head and, through the inputs, of all stages."""
        hashes: list[str] = []
        for stage in self.stages:
            upstream = [
                hashes[leaf.stage_id] for leaf in stage.leaves if isinstance(leaf, StageInputExec)
            ]
            hashes.append(_sha([stage.plan_hash, *upstream]))
        # The text of a whole query says what its columns are, whether they are known or not.
        result = self.result if self.head.sql is None else ()
        return _sha([hashes[-1], self.time_zone, *(f"{f.name}:{f.dtype}" for f in result)])

    def consumers(self, stage_id: int) -> tuple[int, ...]:
        """Numbers of the stages that read that stage."""
        return tuple(s.stage_id for s in self.stages if stage_id in s.inputs)


def _sha(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _canonical(stage: Stage) -> Json:
    """What a stage computes, without names, numbers of stages and estimates."""
    fragment = encode(stage.fragment, names=False)
    _forget_stage_ids(fragment)
    return {
        "fragment": fragment,
        "branches": encode(stage.branches),
        "output": encode(stage.output, names=False),
        "types": [str(f.dtype) for f in stage.schema],
        "engine": stage.engine,
        "sql": stage.sql,
        "deterministic": stage.deterministic,
        "planner": PLANNER_VERSION,
        **({"functions": encode(stage.sql_functions)} if stage.sql_functions else {}),
    }


def _forget_stage_ids(data: Json) -> None:
    stack = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if item.get("node") == "StageInputExec":
                del item["stage_id"]
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
