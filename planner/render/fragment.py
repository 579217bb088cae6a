"""Write the fragment of a stage as SQL for its engine.

The SQL is one SELECT over the stage's leaves `in_0`, `in_1`, … with columns `c<number>`. Its own
columns are `c0`, `c1`, … by position in the stage's schema, each cast to its type. Joins keep the
written order: the right side is hashed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import Formatter

from stagecoach.planner.engines.registry import planner_engine
from stagecoach.planner.errors import InternalPlanError, ParameterError, UnsupportedSqlError
from stagecoach.planner.limits.deep_stack import on_deep_stack
from stagecoach.planner.plan.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    ColumnRef,
    Expression,
    Lambda,
    Literal,
    Parameter,
    ProjectCall,
    SortKey,
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
    OneRowExec,
    PhysicalPlan,
    ProjectionExec,
    RangeExec,
    RepartitionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
    UnionExec,
    ValuesExec,
    WindowExec,
)
from stagecoach.planner.plan.repeated import repeated_parts
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.render.rows import RowWriter
from stagecoach.planner.render.windows import WindowText
from stagecoach.planner.types import Field

MAX_TEXT = 16 << 20
"""Characters of an expression's SQL."""
_LONG = 1024  # characters of an argument that is not written twice
Leaves = Mapping[ScanExec | StageInputExec, int]
"""The position of each leaf of a stage."""


@on_deep_stack
def render_fragment(stage: Stage, engine: str, parameters: Mapping[str, Literal] | None) -> str:
    """The SQL of a stage.

    Args:
        stage: Any stage that is not a whole query.
        engine: Name of the engine whose SQL to write.
        parameters: Values of all parameters that the stage refers to; Spark's text has markers for
            them. None writes `:name` for each, for people to read.

    Raises:
        ParameterError: If a parameter has no value.
        UnsupportedSqlError: The text would be too long, or the engine cannot hold a value in it.
    """
    renderer = _Renderer(engine, parameters)
    leaves = stage.leaf_positions
    fragment = engine_fragment(stage)
    block = renderer.whole(fragment, leaves)
    # What a task does to the rows afterwards gives other columns, but for a probe.
    same = fragment.columns == stage.fragment.columns
    fields = stage.schema if same else [Field(c.name, c.dtype) for c in fragment.columns]
    pairs = zip(fragment.columns, fields, strict=True)
    items = ", ".join(
        f"CAST({_c(column)} AS {renderer.dialect.type_name(field.dtype)}) AS c{position}"
        for position, (column, field) in enumerate(pairs)
    )
    select = f"SELECT {items}\nFROM {renderer.relation(block)}"
    return f"{renderer.parts()}{select}{_afterwards(stage, leaves)}"


def engine_fragment(stage: Stage) -> PhysicalPlan:
    """What an engine runs of a fragment: all but a Bloom filter at its root."""
    root = stage.fragment
    return root.children[0] if isinstance(root, BloomBuildExec | BloomProbeExec) else root


def _afterwards(stage: Stage, leaves: Leaves) -> str:
    """What a task does to the rows that the engine gives, as a comment."""
    root = stage.fragment
    if isinstance(root, BloomProbeExec):
        keys = _positions(root.left, root.keys)
        source = next(place for leaf, place in leaves.items() if leaf == root.right)
        return f"\n/* then the rows whose ({keys}) may be in the Bloom filter in_{source} */"
    if isinstance(root, BloomBuildExec):
        what = f"a Bloom filter of ({_positions(root.child, root.keys)})"
        return f"\n/* then {what if root.keys else 'the union of these Bloom filters'} */"
    return ""


def _positions(plan: PhysicalPlan, keys: Sequence[Expression]) -> str:
    places = {c.id: i for i, c in enumerate(plan.columns)}
    return ", ".join(f"c{places[k.id]}" for k in keys if isinstance(k, ColumnRef))


@on_deep_stack
def render_scalar(expr: Expression, engine: str, parameters: Mapping[str, Literal] | None) -> str:
    """The SQL of an expression over columns `c<number>`.

    Raises:
        ParameterError: If a parameter has no value.
        UnsupportedSqlError: The engine cannot evaluate it.
    """
    return _Renderer(engine, parameters).scalar(expr)


def _bounded(text: str) -> str:
    """The text of a call; one that names an argument twice doubles with each level of nesting."""
    if len(text) > MAX_TEXT:
        raise UnsupportedSqlError(
            f"an expression would be more than {MAX_TEXT >> 20} MiB of SQL for an engine"
        )
    return text


def _c(column: Column | ColumnRef) -> str:
    return f"c{column.id}"


@dataclass(frozen=True)
class _Block:
    """A SELECT under construction: FROM, WHERE, then either the input's columns or new ones."""

    source: str
    where: tuple[str, ...] = ()
    items: tuple[str, ...] | None = None
    tail: str = ""
    is_join: bool = False

    @property
    def is_bare(self) -> bool:
        return not self.where and self.items is None and not self.tail


class _Renderer:
    def __init__(self, engine: str, parameters: Mapping[str, Literal] | None) -> None:
        self.dialect = planner_engine(engine).dialect
        self._parameters = parameters
        self._aliases = itertools.count()
        self._names = itertools.count()
        self._rows = RowWriter(self.dialect, self.scalar, lambda: f"t{next(self._aliases)}")
        self._repeated: frozenset[PhysicalPlan] = frozenset()
        self._parts: dict[PhysicalPlan, tuple[str, str]] = {}

    # ------------------------------------------------------------ operators

    def whole(self, fragment: PhysicalPlan, leaves: Leaves) -> _Block:
        """A fragment; what it has in several places is written once, by `parts`."""
        if self.dialect.keeps_parts:
            self._repeated = repeated_parts(fragment)
        return self.plan(fragment, leaves)

    def parts(self) -> str:
        """The WITH clause of the parts that are computed once."""
        texts = [f"{name} AS MATERIALIZED ({text})" for name, text in self._parts.values()]
        return f"WITH {', '.join(texts)}\n" if texts else ""

    def plan(self, node: PhysicalPlan, leaves: Leaves) -> _Block:
        if node not in self._repeated:
            return self._plan(node, leaves)
        if node not in self._parts:
            text = self._text(self._plan(node, leaves))
            self._parts[node] = (f"part_{len(self._parts)}", text)
        return _Block(self._parts[node][0])

    def _plan(self, node: PhysicalPlan, leaves: Leaves) -> _Block:
        match node:
            case ScanExec() | StageInputExec():
                return _Block(f"in_{leaves[node]}")
            case OneRowExec():
                return _Block("(SELECT 1 AS one_row) AS one")
            case FilterExec():
                child = self._open(self.plan(node.child, leaves))
                conditions = self.dialect.conditions(node.predicate, self.scalar)
                return replace(child, where=(*child.where, *conditions))
            case ProjectionExec():
                child = self._open(self.plan(node.child, leaves))
                return replace(child, items=tuple(self._item(c, e) for c, e in node.items))
            case WindowExec():
                child = self._open(self.plan(node.child, leaves))
                text = WindowText(self.dialect, self.scalar)
                calls = (f"{text(e)} AS {_c(c)}" for c, e in node.calls)
                return replace(child, items=(*(_c(c) for c in node.child.columns), *calls))
            case AggregateExec():
                return self._aggregate(node, self._open(self.plan(node.child, leaves)))
            case SortExec() | SortPreservingMergeExec():
                return self._sort(node, self.plan(node.child, leaves))
            case RepartitionExec():
                return self.plan(node.child, leaves)
            case LimitExec():
                child = self._closed(self.plan(node.child, leaves))
                limit = f"LIMIT {node.limit}" if node.limit is not None else ""
                offset = f"OFFSET {node.offset}" if node.offset else ""
                return replace(child, tail=" ".join(filter(None, (limit, offset))))
            case UnionExec():
                return self._union(node, leaves)
            case HashJoinExec():
                return self._join(node, leaves)
            case ValuesExec():
                return _Block(self._rows.values(node))
            case RangeExec():
                return _Block(self._rows.range(node))
            case ExpandExec():
                child = self.plan(node.child, leaves)
                return _Block(self._rows.expand(node, self.relation(child)))
            case GenerateExec():
                child = self.plan(node.child, leaves)
                return _Block(self._rows.generate(node, self.relation(child)))
        raise InternalPlanError(f"{type(node).__name__} has no SQL")

    def relation(self, block: _Block) -> str:
        """The block as an item of FROM."""
        if block.is_bare:
            return block.source
        return f"({self._text(block)}) AS t{next(self._aliases)}"

    def _text(self, block: _Block) -> str:
        where = f" WHERE {' AND '.join(block.where)}" if block.where else ""
        tail = f" {block.tail}" if block.tail else ""
        return f"SELECT {', '.join(block.items or ('*',))} FROM {block.source}{where}{tail}"

    def _open(self, block: _Block) -> _Block:
        """A block whose columns are those of its FROM, so that WHERE and SELECT may be added."""
        return block if block.items is None and not block.tail else _Block(self.relation(block))

    def _closed(self, block: _Block) -> _Block:
        """A block to which a tail may be added."""
        return block if not block.tail else _Block(self.relation(block))

    def _item(self, column: Column, expr: Expression) -> str:
        text = self.scalar(expr)
        return text if text == _c(column) else f"{text} AS {_c(column)}"

    def _aggregate(self, node: AggregateExec, child: _Block) -> _Block:
        groups = [self._group(c, e) for c, e in node.groups]
        calls = [f"{self.dialect.aggregate(e, self.scalar)} AS {_c(c)}" for c, e in node.aggregates]
        numbers = ", ".join(str(i + 1) for i in range(len(groups)))
        tail = f"GROUP BY {numbers}" if groups else ""
        whole = replace(child, items=(*groups, *calls), tail=tail)
        if not node.range_ends or not self.dialect.aggregates_by_range:
            return whole
        parts = (
            self._text(replace(whole, where=(*whole.where, condition)))
            for condition in self._ranges(node)
        )
        return _Block(f"({' UNION ALL '.join(parts)}) AS t{next(self._aliases)}")

    def _ranges(self, node: AggregateExec) -> Iterator[str]:
        """A condition for each range of the group, of which each row meets one."""
        key = self.scalar(node.groups[node.range_group][1])
        ends = [self.scalar(end) for end in node.range_ends]
        yield f"({key} < {ends[0]} OR {key} IS NULL)"
        for start, end in itertools.pairwise(ends):
            yield f"{key} >= {start} AND {key} < {end}"
        yield f"{key} >= {ends[-1]}"

    def _group(self, column: Column, expr: Expression) -> str:
        key = self.dialect.group_key(self.scalar(expr), expr.dtype)
        return f"{key} AS {_c(column)}"

    def _sort(self, node: SortExec | SortPreservingMergeExec, child: _Block) -> _Block:
        keys = ", ".join(self._sort_key(k) for k in node.keys)
        fetch = f" LIMIT {node.fetch}" if node.fetch is not None else ""
        opened = child if child.is_bare else _Block(self.relation(child))
        return replace(opened, tail=f"ORDER BY {keys}{fetch}")

    def _sort_key(self, key: SortKey) -> str:
        order = "ASC" if key.ascending else "DESC"
        text = self.dialect.sort_key(self.scalar(key.expr), key.expr.dtype)
        return f"{text} {order} NULLS {'FIRST' if key.nulls_first else 'LAST'}"

    def _union(self, node: UnionExec, leaves: Leaves) -> _Block:
        parts = []
        for child in node.inputs:
            block = self.plan(child, leaves)
            pairs = zip(child.columns, node.outputs, strict=True)
            items = ", ".join(f"{_c(inner)} AS {_c(outer)}" for inner, outer in pairs)
            parts.append(f"SELECT {items} FROM {self.relation(block)}")
        return _Block(f"({' UNION ALL '.join(parts)}) AS t{next(self._aliases)}")

    def _join(self, node: HashJoinExec, leaves: Leaves) -> _Block:
        left = self.relation(self.plan(node.left, leaves))
        right_block = self.plan(node.right, leaves)
        right = self.relation(right_block)
        if right_block.is_join and right_block.is_bare:
            right = f"(SELECT * FROM {right}) AS t{next(self._aliases)}"
        null_safe = self.dialect.null_safe_equal
        parts = [
            f"{self.scalar(a)} {null_safe if safe else '='} {self.scalar(b)}"
            for a, b, safe in node.key_pairs
        ]
        if node.residual != TRUE:
            parts.append(self.scalar(node.residual))
        if not parts and node.kind == "inner":
            return _Block(f"{left} CROSS JOIN {right}", is_join=True)
        words = self.dialect.join(node.kind)
        return _Block(f"{left} {words} {right} ON {' AND '.join(parts) or 'true'}", is_join=True)

    # ------------------------------------------------------------ expressions

    def scalar(self, node: Expression) -> str:
        """The text of one expression."""
        match node:
            case ColumnRef():
                return _c(node)
            case Literal():
                return self.dialect.literal(node)
            case Parameter():
                if self._parameters is None:
                    return f":{node.name}"
                value = self._value(node, self._parameters)
                return self.dialect.parameter(node, value)
            case Cast():
                text = self.scalar(node.arg)
                cast = self.dialect.cast(text, node.arg.dtype, node.dtype, safe=node.safe)
                return _bounded(cast)
            case Call():
                return self._call(node)
            case ProjectCall():
                return _bounded(self.dialect.project_function(node, self.scalar))
            case Lambda():
                names = [_c(p) for p in node.parameters]
                return self.dialect.lambda_function(names, self.scalar(node.body))
        raise InternalPlanError(f"{type(node).__name__} has no SQL")

    def _value(self, node: Parameter, values: Mapping[str, Literal]) -> Literal:
        value = values.get(node.name)
        if value is None:
            raise ParameterError(f"parameter ':{node.name}' has no value")
        return Literal(node.dtype, value.value)

    def _call(self, node: Call) -> str:
        template = self.dialect.function(node)
        if "{*}" in template:
            template = template.replace("{*}", ", ".join(f"{{{i}}}" for i in range(len(node.args))))
        parts = {"type": self.dialect.type_name(node.dtype)}
        args: list[str] = []
        for number, arg in enumerate(node.args):
            if isinstance(arg, Lambda) and f"{{b{number}}}" in template:
                # The spelling binds the lambda's parameters itself.
                parts[f"b{number}"] = self.scalar(arg.body)
                parts |= {f"p{number}_{i}": _c(p) for i, p in enumerate(arg.parameters)}
                args.append("")
            else:
                args.append(self.scalar(arg))
        return _bounded(self._filled(template, args, parts))

    def _filled(self, template: str, args: list[str], parts: Mapping[str, str]) -> str:
        """A template with its arguments; a long one that it names twice is computed once.

        Otherwise the text would grow by a factor with each level, and with it an engine's planning.
        """
        bound = {}
        if self.dialect.binds and any(len(text) > _LONG for text in args):
            uses = Counter(field for _, field, _, _ in Formatter().parse(template))
            for number, text in enumerate(args):
                if len(text) > _LONG and uses[str(number)] > 1:
                    bound[text] = f"v{next(self._names)}_"
        for text in args:
            if text not in bound and self.dialect.must_bind(template, text):
                bound[text] = f"v{next(self._names)}_"
        body = template.format(*(bound.get(text, text) for text in args), **parts)
        for text, name in bound.items():
            body = self.dialect.bound(name, text, body)
        return body
