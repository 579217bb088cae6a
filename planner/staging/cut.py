"""Cut a physical plan at its exchanges into stages, leaves first.

Stages that compute the same become one, so a common subplan that is exchanged in the same way is
computed once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.distribution.reasons import RESULT, reason_of
from stagecoach.planner.distribution.wide_tasks import stage_cores
from stagecoach.planner.engines.protocol import Conditions
from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.expressions import Call, Column, ColumnRef, Expression, Lambda
from stagecoach.planner.plan.physical import (
    BloomProbeExec,
    ExchangeExec,
    ExchangeKind,
    HashJoinExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SharedScanExec,
    StageInputExec,
    UnionExec,
)
from stagecoach.planner.plan.stages import Branch, BranchKind, Stage, StageOutput
from stagecoach.planner.staging.engines import choose_engine
from stagecoach.planner.staging.incremental import why_whole
from stagecoach.planner.staging.titles import stage_title
from stagecoach.planner.tree import transform_up, walk
from stagecoach.planner.types import Field

_MOST = 1e18
Sizer = Callable[[PhysicalPlan], tuple[float, float]]


def cut_into_stages(
    plan: PhysicalPlan,
    tables: Mapping[str, TableInfo],
    options: PlannerOptions,
    size: Sizer,
    shared: Sequence[SharedSource] = (),
) -> tuple[Stage, ...]:
    """The stages of a plan, leaves first; the last one produces the result.

    Args:
        plan: Physical plan with exchanges.
        tables: Catalog entries, which may forbid an engine.
        options: For the choice of engines.
        size: Estimated rows and bytes of an operator.
        shared: What its `SharedScanExec` read, each after those that it reads itself.
    """
    cutter = _Cutter(tables, options, size)
    for source in shared:
        cutter.share(source)
    cutter.add(plan, StageOutput("gather", reason=RESULT), plan)
    return tuple(cutter.stages)


@dataclass(frozen=True)
class SharedSource:
    """A shared subplan with its exchanges.

    Args:
        name: The table of its scans.
        exchange: The subplan below the exchange through which it is read.
        columns: Numbers of its columns by the names that scans read them by.
    """

    name: str
    exchange: ExchangeExec
    columns: Mapping[str, int]


@dataclass(frozen=True)
class _SharedStage:
    """The stage of a shared subplan: its number, its columns, and their positions by name."""

    stage_id: int
    columns: tuple[Column, ...]
    positions: Mapping[str, int]


class _Cutter:
    def __init__(
        self, tables: Mapping[str, TableInfo], options: PlannerOptions, size: Sizer
    ) -> None:
        self.stages: list[Stage] = []
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}
        self._shared: dict[str, _SharedStage] = {}
        self._conditions = Conditions(tables, options.time_zone, options.exact_math)
        self._options = options
        self._size = size
        self._numbers = itertools.count(-1, -1)  # of columns that the plan does not have
        self._read_whole: dict[SharedScanExec, PhysicalPlan] = {}

    def add(self, fragment: PhysicalPlan, output: StageOutput, measured: PhysicalPlan) -> int:
        """Append the stage of a fragment, after the stages that it reads; its number."""
        operators = list(operators_of(fragment))
        sizes = list(self._sizes(operators))
        read: set[ExchangeExec] = set()
        fragment = transform_down_to_inputs(fragment, lambda border: self._cut(border, read))
        canonical = renumber_fragment(fragment)
        branches = branches_of(canonical)
        engine, reason = choose_engine(canonical, self._conditions, self._options.engine)
        rows, num_bytes = self._size(measured)
        stage = Stage(
            stage_id=len(self.stages),
            title=stage_title(canonical, output),
            fragment=canonical,
            branches=branches,
            output=output,
            schema=tuple(Field(c.name, c.dtype) for c in canonical.columns),
            engine=engine,
            engine_reason=reason,
            deterministic=not _tells_the_user(canonical),
            estimated_rows=_whole(rows),
            estimated_bytes=_whole(num_bytes),
            operator_rows=tuple(_whole(count) for count, _ in sizes),
            operator_bytes=tuple(_whole(size) for _, size in sizes),
            cores=self._cores(operators, branches, engine),
        )
        if self._options.incremental:
            reason = why_whole(stage)
            stage = replace(stage, incremental=not reason, whole_reason=reason)
        inputs = tuple(x.stage_id for x in stage.leaves if isinstance(x, StageInputExec))
        key = (stage.plan_hash, inputs)
        if key not in self._known:
            self._known[key] = stage.stage_id
            self.stages.append(stage)
        return self._known[key]

    def _cores(
        self, operators: Sequence[PhysicalPlan], branches: Sequence[Branch], engine: str
    ) -> int:
        if engine == SPARK or self._options.force_distribution:
            return 1
        return stage_cores(operators, branches, self._size, self._options.task_cores)

    def share(self, source: SharedSource) -> None:
        """Append the stage of a shared subplan, for all scans of it that come."""
        columns = source.exchange.child.columns
        places = {column.id: i for i, column in enumerate(columns)}
        positions = {name: places[i] for name, i in source.columns.items() if i in places}
        stage_id = self._cut_exchange(source.exchange).stage_id
        self._shared[source.name] = _SharedStage(stage_id, columns, positions)

    def _sizes(self, operators: Iterable[PhysicalPlan]) -> Iterator[tuple[float, float]]:
        """Those of operators, and of the projections that `_cut` puts above inputs."""
        read: set[ExchangeExec] = set()
        for node in operators:
            yield self._size(node)
            renames = isinstance(node, SharedScanExec) and not self._reads_all(node)
            if renames or (isinstance(node, ExchangeExec) and _is_read_again(node, read)):
                yield self._size(node)

    def _reads_all(self, scan: SharedScanExec) -> bool:
        """Whether a scan has the columns of the stage that it reads, in their order."""
        stage = self._shared[scan.table]
        return [stage.positions[n] for n in scan.source] == list(range(len(stage.columns)))

    def _read_shared(self, scan: SharedScanExec) -> PhysicalPlan:
        """The input that a scan of a shared subplan is, and only the columns that it reads."""
        stage = self._shared[scan.table]
        kind: ExchangeKind = "shuffle" if scan.read == "split" else "broadcast"
        if self._reads_all(scan):
            return StageInputExec(stage.stage_id, kind, scan.outputs)
        outputs = self._renamed(stage.columns)
        items = [
            (column, outputs[stage.positions[name]].ref)
            for column, name in zip(scan.outputs, scan.source, strict=True)
        ]
        return ProjectionExec(StageInputExec(stage.stage_id, kind, outputs), tuple(items))

    def _renamed(self, columns: Iterable[Column]) -> tuple[Column, ...]:
        return tuple(replace(column, id=next(self._numbers)) for column in columns)

    def _cut(self, border: ExchangeExec | SharedScanExec, read: set[ExchangeExec]) -> PhysicalPlan:
        """The input in place of a border; `read` are the exchanges that the fragment has so far."""
        if isinstance(border, SharedScanExec):
            if border.read != "all":
                return self._read_shared(border)
            # Equal parts of a fragment must stay equal, or they are computed twice.
            if border not in self._read_whole:
                self._read_whole[border] = self._read_shared(border)
            return self._read_whole[border]
        source = self._cut_exchange(border)
        if not _is_read_again(border, read):
            return source
        # Tasks deal out the partitions of each leaf, so two places are two leaves.
        outputs = self._renamed(source.outputs)
        items = [(old, new.ref) for old, new in zip(source.outputs, outputs, strict=True)]
        return ProjectionExec(replace(source, outputs=outputs), tuple(items))

    def _cut_exchange(self, exchange: ExchangeExec) -> StageInputExec:
        child = exchange.child
        positions = {c.id: i for i, c in enumerate(child.columns)}
        keys = tuple(positions[k] for k in exchange.keys)
        output = StageOutput(
            exchange.kind, keys, exchange.num_partitions, reason=reason_of(exchange)
        )
        stage_id = self.add(child, output, exchange)
        return StageInputExec(stage_id, exchange.kind, child.columns)


def _is_read_again(exchange: ExchangeExec, read: set[ExchangeExec]) -> bool:
    """Whether tasks share out what comes through an exchange, and a fragment has read it before.

    Args:
        exchange: It.
        read: Those that the fragment has read; this one is added.
    """
    is_again = exchange in read and exchange.kind != "broadcast"
    read.add(exchange)
    return is_again


def _tells_the_user(fragment: PhysicalPlan) -> bool:
    """Whether a fragment tells who runs it: another user must not be given its output."""
    parts = (part for node in walk(fragment) for expr in node.expressions for part in walk(expr))
    return any(isinstance(part, Call) and part.function == "current_user" for part in parts)


def _whole(number: float) -> int:
    """An estimate as a whole number of 64 bits, whatever joins of joins are thought to give."""
    return round(min(number, _MOST))


def operators_of(fragment: PhysicalPlan) -> Iterator[PhysicalPlan]:
    """The operators down to the topmost exchanges, each of which will be a stage input."""
    stack = [fragment]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ExchangeExec):
            stack.extend(reversed(node.children))


def transform_down_to_inputs(
    plan: PhysicalPlan, cut: Callable[[ExchangeExec | SharedScanExec], PhysicalPlan]
) -> PhysicalPlan:
    """The plan with its topmost borders replaced; what lies below them is the callback's."""
    if isinstance(plan, ExchangeExec | SharedScanExec):
        return cut(plan)
    return plan.with_children(tuple(transform_down_to_inputs(c, cut) for c in plan.children))


def renumber_fragment(fragment: PhysicalPlan) -> PhysicalPlan:
    """The fragment with its columns numbered from 0 in the order in which operators make them."""
    numbers: dict[int, int] = {}
    counter = itertools.count()

    def column(old: Column) -> Column:
        if old.id not in numbers:
            numbers[old.id] = next(counter)
        return replace(old, id=numbers[old.id])

    def visit_expression(node: Expression) -> Expression:
        if isinstance(node, ColumnRef):
            return replace(node, id=numbers[node.id])
        if isinstance(node, Lambda):
            return replace(node, parameters=tuple(column(p) for p in node.parameters))
        return node

    def scalar(expr: Expression) -> Expression:
        for node in walk(expr):
            if isinstance(node, Lambda):  # its body is visited before it
                for parameter in node.parameters:
                    column(parameter)
        return transform_up(expr, visit_expression)

    def visit(node: PhysicalPlan) -> PhysicalPlan:
        renamed = node.with_expressions(tuple(scalar(e) for e in node.expressions))
        return renamed.with_produced(column)

    return transform_up(fragment, visit)


def branches_of(fragment: PhysicalPlan) -> tuple[Branch, ...]:
    """Which leaves the tasks of a stage share out, by union branch (see `Branch`)."""
    leaves = [n for n in walk(fragment) if isinstance(n, ScanExec | StageInputExec)]
    positions: dict[PhysicalPlan, int] = {leaf: i for i, leaf in enumerate(leaves)}
    found = _branches(fragment, positions)
    shared_out = [leaf for branch in found if branch.kind != "single" for leaf in branch.leaves]
    if len(set(shared_out)) < len(shared_out):
        raise InternalPlanError("two inputs whose parts tasks share out are the same leaf")
    return found or (Branch("single", ()),)


def _branches(node: PhysicalPlan, positions: Mapping[PhysicalPlan, int]) -> tuple[Branch, ...]:
    match node:
        case ScanExec():
            return (Branch("splits", (positions[node],)),) if node.read == "split" else ()
        case StageInputExec():
            if node.kind == "broadcast":
                return ()
            kind: BranchKind = "partitions" if node.kind == "shuffle" else "single"
            return (Branch(kind, (positions[node],)),)
        case BloomProbeExec():
            return _branches(node.left, positions)
        case HashJoinExec() if node.broadcast:
            return _branches(node.left, positions)
        case HashJoinExec():
            return _merged(_branches(node.left, positions), _branches(node.right, positions))
        case UnionExec():
            return _union_branches([_branches(child, positions) for child in node.inputs])
    if node.children:
        return _branches(node.children[0], positions)
    return ()


def _union_branches(parts: list[tuple[Branch, ...]]) -> tuple[Branch, ...]:
    found = tuple(branch for part in parts for branch in part)
    if found and all(branch.kind == "single" for branch in found):
        return (Branch("single", tuple(x for branch in found for x in branch.leaves)),)
    return found


def _merged(left: tuple[Branch, ...], right: tuple[Branch, ...]) -> tuple[Branch, ...]:
    if not left or not right:
        return left or right
    if (
        len(left) != 1
        or len(right) != 1
        or left[0].kind != right[0].kind
        or left[0].kind == "splits"
    ):
        raise InternalPlanError("the sides of a partitioned join are not partitioned alike")
    return (Branch(left[0].kind, (*left[0].leaves, *right[0].leaves)),)
