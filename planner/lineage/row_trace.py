"""Trace rows of a stage back to the rows of its inputs that they come from.

    some rows of the output ─▶ for each leaf: which of its rows can contribute to them

What is known of a chosen row are the values of its columns. Going down through the operators, each
of these turns into a *need*: an expression over the columns of a leaf that must equal a column of
a chosen row. Group keys, keys of joins and columns that are passed through carry needs; what an
aggregate or a window computes does not, because all rows of the group enter it. Where a need gets
lost, more rows than necessary are traced, never fewer: computing the stage over the traced rows
alone gives the chosen rows again (but for a LIMIT, see `StageTrace.is_exact`).

Rows of one side of a join need a partner on the other. So a leaf may also be traced by the rows of
another leaf that have been traced before, as `customer` by the customers of the traced orders.

A function may raise for a row that a filter would have kept away from it, so an expression is only
evaluated on a leaf if the engine of the stage does that as well, and whoever runs the trace can do
with columns alone (`LeafTrace.plan`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagecoach.planner.limits.deep_stack import on_deep_stack
from stagecoach.planner.plan.expressions import (
    TRUE,
    Call,
    Column,
    ColumnRef,
    Expression,
    ProjectCall,
    conjoin,
    conjuncts,
    substitute,
)
from stagecoach.planner.plan.physical import (
    AggregateExec,
    BloomBuildExec,
    BloomProbeExec,
    ExpandExec,
    FilterExec,
    GenerateExec,
    HashJoinExec,
    LimitExec,
    PhysicalPlan,
    ProjectionExec,
    RepartitionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
    UnionExec,
    WindowExec,
)
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.tree import walk

CHOSEN = -1
"""The source that is the chosen rows of the stage; others are positions of leaves."""

Leaf = ScanExec | StageInputExec


@dataclass(frozen=True)
class Need:
    """What a row of an input must have to contribute.

    Args:
        expr: Over the columns of the input.
        source: Whose rows tell the value: `CHOSEN`, or the position of a leaf.
        value: Over the columns of the source.
        join: Number of the join that it comes from; needs of one join hold for the same row of the
            source.
    """

    expr: Expression
    source: int
    value: Expression
    join: int = 0


@dataclass(frozen=True)
class LeafTrace:
    """Which rows of a leaf can contribute.

    Args:
        position: Of the leaf in `Stage.leaves`.
        leaf: The leaf.
        needs: All must hold; none where the leaf is traced as a whole.
        filters: Predicates that the stage asks of a row by itself.
        notes: Why there are not more of them.
    """

    position: int
    leaf: Leaf
    needs: tuple[Need, ...] = ()
    filters: tuple[Expression, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """The leaves that must have been traced before, and `CHOSEN`."""
        return tuple(dict.fromkeys(need.source for need in self.needs))

    @property
    def is_narrowed(self) -> bool:
        """Whether some rows may be left out."""
        return bool(self.needs or self.filters)

    def without(self, sources: Collection[int]) -> LeafTrace:
        """The same without the needs that come from these."""
        return replace(self, needs=tuple(n for n in self.needs if n.source not in sources))

    def plain(self) -> LeafTrace:
        """The same, but for expressions: only columns are compared."""
        needs = tuple(need for need in self.needs if isinstance(need.expr, ColumnRef))
        return replace(self, needs=needs, filters=())

    def columns(self, source: int) -> tuple[str, ...]:
        """Names of the leaf's columns that the needs of a source read."""
        names = {column.id: column.name for column in self.leaf.outputs}
        read = (i for n in self.needs if n.source == source for i in sorted(n.expr.column_ids))
        return tuple(dict.fromkeys(names[i] for i in read))


@dataclass(frozen=True)
class StageTrace:
    """How chosen rows of a stage are traced to its leaves.

    Args:
        leaves: In the order in which they are traced: a leaf comes after its sources.
        is_exact: Whether the stage over the traced rows alone gives exactly the chosen rows. It
            does not if there is a LIMIT: which rows it keeps depends on the others.
    """

    leaves: tuple[LeafTrace, ...]
    is_exact: bool


def trace_rows(stage: Stage) -> StageTrace:
    """How any chosen rows of a stage, all of whose columns are known, are traced to its leaves.

    Args:
        stage: Any stage that is not a whole query.
    """
    return _trace(stage)


@on_deep_stack
def _trace(stage: Stage) -> StageTrace:
    tracer = _Tracer(stage)
    root = stage.fragment
    needs = [Need(c.ref, CHOSEN, c.ref) for c in root.columns if c.dtype.kind != "map"]
    if not isinstance(root, BloomBuildExec):
        tracer.visit(root, _Known(needs=tuple(needs)))
    return StageTrace(tracer.ordered(), tracer.is_exact)


def leaf_plan(
    stage: Stage, trace: LeafTrace
) -> tuple[PhysicalPlan, tuple[tuple[int, StageInputExec], ...]]:
    """The plan that gives the rows of a leaf which can contribute.

    Args:
        stage: The stage.
        trace: Of one of its leaves.

    Returns:
        The plan, and the leaf that stands for each source in it. Columns of the leaf keep their
        numbers, those of sources get others.
    """
    plan: PhysicalPlan = trace.leaf
    if trace.filters:
        plan = FilterExec(plan, conjoin(list(trace.filters)))
    groups: dict[tuple[int, int], list[Need]] = defaultdict(list)
    for need in trace.needs:
        groups[need.source, need.join].append(need)
    fresh = 1 + max((c.id for node in walk(stage.fragment) for c in node.columns), default=0)
    found: dict[int, tuple[StageInputExec, Mapping[int, Expression]]] = {}
    for (source, _), needs in groups.items():
        if source not in found:
            columns = _source_columns(stage, source)
            outputs = tuple(replace(c, id=fresh + i) for i, c in enumerate(columns))
            fresh += len(outputs)
            pairs = zip(columns, outputs, strict=True)
            renamed: Mapping[int, Expression] = {old.id: new.ref for old, new in pairs}
            # Of no stage: a leaf has the number of one.
            found[source] = (StageInputExec(-2 - source, "broadcast", outputs), renamed)
        right, renamed = found[source]
        plan = HashJoinExec(
            left=plan,
            right=right,
            kind="semi",
            left_keys=tuple(need.expr for need in needs),
            right_keys=tuple(substitute(need.value, renamed) for need in needs),
            residual=TRUE,
            broadcast=True,
            null_safe=(True,) * len(needs),
        )
    return plan, tuple((source, right) for source, (right, _) in found.items())


def _source_columns(stage: Stage, source: int) -> Sequence[Column]:
    return stage.fragment.columns if source == CHOSEN else stage.leaves[source].columns


# ---------------------------------------------------------------- going down


@dataclass(frozen=True)
class _Known:
    """What must hold for a row of an operator's output to matter.

    Args:
        needs: Over its columns.
        filters: Predicates over its columns.
        is_strict: Whether more rows than those that matter would do harm: above is an aggregate,
            say, to which they would be added.
        notes: What got lost on the way.
    """

    needs: tuple[Need, ...] = ()
    filters: tuple[Expression, ...] = ()
    is_strict: bool = False
    notes: tuple[str, ...] = ()

    def over(self, mapping: Mapping[int, Expression]) -> _Known:
        """The same over other columns."""
        needs = tuple(replace(n, expr=substitute(n.expr, mapping)) for n in self.needs)
        filters = tuple(substitute(f, mapping) for f in self.filters)
        return replace(self, needs=needs, filters=filters)

    def within(self, columns: Iterable[Column]) -> _Known:
        """What of it is about these columns alone."""
        return self.reading({column.id for column in columns})

    def reading(self, ids: Collection[int]) -> _Known:
        """What of it reads only columns with these numbers."""

        def fits(expr: Expression) -> bool:
            return bool(expr.column_ids) and expr.column_ids <= set(ids)

        needs = tuple(n for n in self.needs if fits(n.expr))
        return replace(self, needs=needs, filters=tuple(f for f in self.filters if fits(f)))

    def with_note(self, note: str) -> _Known:
        """The same with one more note."""
        return replace(self, notes=(*self.notes, note))

    def strict(self) -> _Known:
        """The same where more rows would do harm."""
        return replace(self, is_strict=True)

    def plus(self, needs: Iterable[Need]) -> _Known:
        """The same with more needs."""
        return replace(self, needs=(*self.needs, *(n for n in needs if n not in self.needs)))


@dataclass
class _Tracer:
    """Collects what is known of each leaf.

    Args:
        stage: The stage.
    """

    stage: Stage
    is_exact: bool = True
    _found: dict[int, _Known] = field(default_factory=dict)
    _joins: int = 0

    def __post_init__(self) -> None:
        leaves = self.stage.leaves
        self._positions = self.stage.leaf_positions
        counted = Counter(leaves)
        self._repeated = {leaf for leaf, number in counted.items() if number > 1}

    def visit(self, node: PhysicalPlan, known: _Known) -> None:
        """Go down to the leaves of an operator."""
        match node:
            case ScanExec() | StageInputExec():
                self._found[self._positions[node]] = known
            case FilterExec():
                filters = tuple(conjuncts(node.predicate))
                self.visit(node.child, replace(known, filters=(*known.filters, *filters)))
            case ProjectionExec():
                self.visit(node.child, known.over({c.id: e for c, e in node.items}))
            case AggregateExec():
                self._aggregate(node, known)
            case WindowExec():
                self._window(node, known)
            case SortExec() | SortPreservingMergeExec():
                self.visit(node.child, known if node.fetch is None else self._limited(known))
            case LimitExec():
                self.visit(node.child, self._limited(known))
            case RepartitionExec():
                self.visit(node.child, known)
            case HashJoinExec():
                self._join(node, known)
            case UnionExec():
                for child in node.inputs:
                    pairs = zip(node.outputs, child.columns, strict=True)
                    self.visit(child, known.over({o.id: c.ref for o, c in pairs}))
            case GenerateExec():
                self.visit(node.child, known.within(node.child.columns))
            case ExpandExec():
                self._expand(node, known)
            case BloomProbeExec():
                self.visit(node.left, known)
            case BloomBuildExec():
                self.visit(node.child, _Known())

    def _aggregate(self, node: AggregateExec, known: _Known) -> None:
        keys = known.within(c for c, _ in node.groups)
        below = keys.over({c.id: e for c, e in node.groups}).strict()
        if not node.groups:
            below = below.with_note("an aggregate without groups reads all rows")
        elif not keys.needs:
            below = below.with_note("no key of the groups is known")
        self.visit(node.child, below)

    def _window(self, node: WindowExec, known: _Known) -> None:
        keys = [e.id for e in node.partition if isinstance(e, ColumnRef)]
        below = known.reading(keys)
        whole = [n for n in known.needs if n.expr in node.partition and n not in below.needs]
        below = below.plus(whole).strict()
        if not node.partition:
            note = "a window without PARTITION BY reads all rows"
        else:
            note = "a window reads all rows of its partition"
        self.visit(node.child, below.with_note(note))

    def _limited(self, known: _Known) -> _Known:
        self.is_exact = False
        if known.is_strict:
            return _Known(is_strict=True, notes=(*known.notes, "a LIMIT compares all rows"))
        return known

    def _expand(self, node: ExpandExec, known: _Known) -> None:
        """A column that is alike in all copies of a row carries needs; others do not."""
        alike: dict[int, Expression] = {}
        for position, column in enumerate(node.outputs):
            copies = {row[position] for row in node.projections}
            if len(copies) == 1:
                alike[column.id] = copies.pop()
        below = known.reading(alike).over(alike)
        if len(below.needs) < len(known.needs):
            below = below.with_note("grouping sets copy each row")
        self.visit(node.child, below)

    # ------------------------------------------------------------ joins

    def _join(self, node: HashJoinExec, known: _Known) -> None:
        left, right = known.within(node.left.columns), known.within(node.right.columns)
        match node.kind:
            case "right":
                left = _null_supplying(left)
            case "left":
                right = _null_supplying(right)
            case "full":
                left, right = self._full(node, known)
            case "semi" | "anti":
                right = _Known(is_strict=known.is_strict or node.kind == "anti", notes=known.notes)
        if node.kind == "full":
            self.visit(node.left, left)
            self.visit(node.right, right)
            return
        to_left, to_right = node.kind in ("inner", "right"), node.kind != "right"
        before_left, before_right = left.needs, right.needs
        for a, b, _ in node.key_pairs:
            if to_right and b.column_ids:
                right = right.plus(replace(n, expr=b) for n in before_left if n.expr == a)
            if to_left and a.column_ids:
                left = left.plus(replace(n, expr=a) for n in before_right if n.expr == b)
        self._joins += 1
        if to_right:
            right = right.plus(self._partners(node, node.left, swapped=False))
        if node.kind in ("inner", "right", "semi"):
            left = left.plus(self._partners(node, node.right, swapped=True))
        self.visit(node.left, left)
        self.visit(node.right, right)

    def _full(self, node: HashJoinExec, known: _Known) -> tuple[_Known, _Known]:
        """Of a full join, only `coalesce` of both keys, as USING has it, tells of both sides."""
        note = "a full join adds rows of both sides"
        empty = _Known(is_strict=True, notes=(*known.notes, note))
        left: list[Need] = []
        right: list[Need] = []
        for need in known.needs:
            for a, b, _ in node.key_pairs:
                if _is_coalesce(need.expr, a, b):
                    left.append(replace(need, expr=a))
                    right.append(replace(need, expr=b))
        return empty.plus(left), empty.plus(right)

    def _partners(self, node: HashJoinExec, side: PhysicalPlan, *, swapped: bool) -> list[Need]:
        """Needs of the other side's keys, by the rows of the leaves of this side."""
        found: list[Need] = []
        for a, b, null_safe in node.key_pairs:
            ours, theirs = (b, a) if swapped else (a, b)
            origin = self._origin(side, ours)
            if origin is None or not theirs.column_ids:
                continue
            position, value, is_nullable = origin
            # NULL of a missing partner is none of the leaf's values; it only matches by `<=>`.
            if not (null_safe and is_nullable):
                found.append(Need(theirs, position, value, self._joins))
        return found

    def _origin(self, node: PhysicalPlan, expr: Expression) -> tuple[int, Expression, bool] | None:
        """The leaf whose rows give an expression its values, the same over that leaf's columns.

        The last value says whether it may be NULL although no row of the leaf has it so.
        """
        is_nullable = False
        while expr.column_ids:
            match node:
                case ScanExec() | StageInputExec():
                    if node in self._repeated:
                        return None
                    return self._positions[node], expr, is_nullable
                case ProjectionExec():
                    expr, node = substitute(expr, {c.id: e for c, e in node.items}), node.child
                case AggregateExec():
                    groups = {c.id: e for c, e in node.groups}
                    if not expr.column_ids <= groups.keys():
                        return None
                    expr, node = substitute(expr, groups), node.child
                case (
                    FilterExec()
                    | SortExec()
                    | SortPreservingMergeExec()
                    | LimitExec()
                    | RepartitionExec()
                    | WindowExec()
                    | GenerateExec()
                ):
                    node = node.child
                case HashJoinExec():
                    is_left = expr.column_ids <= {c.id for c in node.left.columns}
                    if not is_left and not expr.column_ids <= {c.id for c in node.right.columns}:
                        return None
                    if node.kind == "full" or node.kind == ("right" if is_left else "left"):
                        if not isinstance(expr, ColumnRef):
                            return None  # NULL may become anything in an expression
                        is_nullable = True
                    node = node.left if is_left else node.right
                case BloomProbeExec():
                    node = node.left
                case _:
                    return None
            if not expr.column_ids <= {c.id for c in node.columns}:
                return None
        return None

    # ------------------------------------------------------------ the order of leaves

    def ordered(self) -> tuple[LeafTrace, ...]:
        """The leaves with what is known of them, each after its sources."""
        left = {p: self._leaf(p, known) for p, known in self._found.items()}
        done: list[LeafTrace] = []
        narrowed: set[int] = {CHOSEN}
        while left:
            position = min(left, key=lambda p: (*_rank(left[p], narrowed), p))
            trace = left.pop(position)
            trace = trace.without(set(trace.sources) - narrowed)
            if trace.is_narrowed:
                narrowed.add(position)
            done.append(trace)
        return tuple(done)

    def _leaf(self, position: int, known: _Known) -> LeafTrace:
        leaf = self.stage.leaves[position]
        notes = tuple(dict.fromkeys(known.notes))
        if leaf in self._repeated:
            return LeafTrace(position, leaf, notes=("it is read in several places",))
        trace = LeafTrace(position, leaf, _bearable(known.needs), known.filters, notes)
        if any(isinstance(n, ProjectCall) for f in trace.filters for n in walk(f)):
            trace = replace(trace, filters=())
        return trace


def _null_supplying(side: _Known) -> _Known:
    """What is known of the side of an outer join that may lack a partner: nothing by itself.

    NULL in its columns may be of a row, or of none.
    """
    known = replace(side, needs=(), filters=()).strict()
    return known.with_note("an outer join adds rows without a partner") if side.needs else known


def _rank(trace: LeafTrace, narrowed: Collection[int]) -> tuple[int, int]:
    """By how little a leaf depends on others: lower goes first."""
    usable = [need for need in trace.needs if need.source in narrowed]
    chosen = sum(need.source == CHOSEN for need in usable)
    if chosen:
        return 0, -chosen
    return (1 if usable else 2 if trace.filters else 3), 0


def _bearable(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Needs that may be evaluated on any row: those that call no code of the project."""
    return tuple(n for n in needs if not any(isinstance(e, ProjectCall) for e in walk(n.expr)))


def _is_coalesce(expr: Expression, left: Expression, right: Expression) -> bool:
    return isinstance(expr, Call) and expr.function == "coalesce" and expr.args == (left, right)
