"""DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.planner.engines.dialect import Alias, Dialect, Scalar
from stagecoach.planner.engines.duckdb.aggregates import aggregate_text
from stagecoach.planner.engines.duckdb.generators import generate_text
from stagecoach.planner.engines.duckdb.windows import distance_text, range_key_text, window_text
from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.functions import REGISTRY
from stagecoach.planner.functions.casts import cast_template
from stagecoach.planner.functions.spell_collections import normalized, order_key
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Expression,
    Literal,
    ProjectCall,
    WindowCall,
    conjuncts,
)
from stagecoach.planner.plan.operators import JoinKind
from stagecoach.planner.plan.physical import GenerateExec
from stagecoach.planner.text.quoting import duckdb_text
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType


class DuckDbDialect(Dialect):
    """How DuckDB writes SQL."""

    def type_name(self, dtype: DataType) -> str:
        """DuckDB's name of a type."""
        return duckdb_type(dtype)

    def text(self, value: str) -> str:
        """A text literal, which cannot hold the character NUL."""
        return duckdb_text(value)

    def cast(self, text: str, source: DataType, target: DataType, *, safe: bool) -> str:
        """A cast that gives Spark's values."""
        template = cast_template(source, target, safe=safe)
        return template.format(text, type=duckdb_type(target))

    def conditions(self, predicate: Expression, scalar: Scalar) -> Sequence[str]:
        """Conditions on members of structs are written so that scans do not take them over.

        DuckDB 2.0 takes `s.a IN (1)` or `s.b LIKE 'x%'` as true for NULLs, too, where a row group
        of a Parquet file has one value of the member beside NULL: the statistics of a member do not
        tell that it has NULLs, and the condition is computed for the one value and left out.
        """
        if not _reads_member(predicate):
            return (scalar(predicate),)
        parts = ((_reads_member(part), scalar(part)) for part in conjuncts(predicate))
        return tuple(f"({text} IS TRUE)" if reads else text for reads, text in parts)

    def function(self, node: Call) -> str:
        """The template of a call.

        Raises:
            InternalPlanError: DuckDB is not proven to compute it.
        """
        spelling = REGISTRY[node.function].duckdb
        if spelling is None:
            raise InternalPlanError(f"function '{node.function}' has no DuckDB spelling")
        return spelling if isinstance(spelling, str) else spelling(node)

    keeps_parts = True
    binds = True
    aggregates_by_range = True

    def bound(self, name: str, value: str, body: str) -> str:
        """A lambda over a list of one, because SQL has no LET."""
        return f"list_transform([{value}], lambda {name}: {body})[1]"

    def must_bind(self, template: str, text: str) -> bool:
        """TRY takes no volatile function, which error() is."""
        return "TRY(" in template and "error(" in text

    def project_function(self, node: ProjectCall, scalar: Scalar) -> str:
        """A call by a name of its own: a database is used by several queries, and projects."""
        pairs = zip(node.args, node.function.arguments, strict=True)
        args = (f"CAST({scalar(arg)} AS {duckdb_type(dtype)})" for arg, dtype in pairs)
        return f"{node.function.unique_name}({', '.join(args)})"

    def lambda_function(self, names: Sequence[str], body: str) -> str:
        """A function of these parameters."""
        return f"lambda {', '.join(names)}: {body}"

    def aggregate(self, node: AggregateCall, scalar: Scalar) -> str:
        """An aggregate call, cast to its type: DuckDB sums integers in 128 bits."""
        return aggregate_text(node, scalar)

    def join(self, kind: JoinKind) -> str:
        """The words between the sides of a join."""
        return {"semi": "SEMI JOIN", "anti": "ANTI JOIN"}.get(kind) or super().join(kind)

    def group_key(self, text: str, dtype: DataType) -> str:
        """A key of GROUP BY."""
        # NOTE: Spark groups -0.0 with 0.0 and shows 0.0; DuckDB shows whichever came first.
        return normalized("{0}", dtype).format(text)

    def sort_key(self, text: str, dtype: DataType) -> str:
        """A key of ORDER BY."""
        # NOTE: NULL members come first in Spark's order, last in DuckDB's.
        return order_key("{0}", dtype).format(text)

    def numbers(self, bounds: str, column: str) -> str:
        """A SELECT of whole numbers."""
        return f"SELECT range AS {column} FROM range({bounds})"

    def generate(self, node: GenerateExec, child: str, scalar: Scalar, alias: Alias) -> str:
        """Each row of the child with each row that the generator makes of it."""
        return generate_text(node, child, scalar, alias)

    def window_call(self, call: WindowCall, scalar: Scalar, over: str) -> str:
        """A window call, whose window is the text `over`."""
        return window_text(call, scalar, over)

    def partition_key(self, text: str, dtype: DataType) -> str:
        """A key of PARTITION BY; zeros of both signs are one value."""
        return normalized("{0}", dtype).format(text)

    def range_key(self, text: str, key: DataType, offset: DataType) -> str:
        """The sort key of a RANGE by days or microseconds as a whole number of them."""
        return range_key_text(text, key, offset)

    def distance(self, offset: Literal, key: DataType | None) -> str:
        """The bound of a frame."""
        return distance_text(offset, key) or super().distance(offset, key)


def _reads_member(predicate: Expression) -> bool:
    return any(isinstance(e, Call) and e.function == "get_field" for e in walk(predicate))
