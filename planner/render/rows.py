"""Write operators that make rows as items of FROM: VALUES, `range`, copies, generators.

The columns of an item are `c<number>`. No input is read more than once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.expressions import Call, Column, Expression
from stagecoach.planner.plan.physical import ExpandExec, GenerateExec, RangeExec, ValuesExec
from stagecoach.planner.text.type_names import type_name
from stagecoach.planner.types import DataType

Scalar = Callable[[Expression], str]


@dataclass(frozen=True)
class RowWriter:
    """Writes operators that make rows for one engine.

    Args:
        engine: `duckdb` or `spark`.
        scalar: The text of an expression.
        alias: A new name for a relation.
    """

    engine: str
    scalar: Scalar
    alias: Callable[[], str]

    def values(self, node: ValuesExec) -> str:
        """The written rows."""
        rows = ", ".join(f"({', '.join(self.scalar(e) for e in row)})" for row in node.rows)
        names = ", ".join(_c(c) for c in node.outputs)
        if self.engine == "spark":
            return f"VALUES {rows} AS {self.alias()}({names})"
        return f"(VALUES {rows}) AS {self.alias()}({names})"

    def range(self, node: RangeExec) -> str:
        """The numbers from start to below stop."""
        (column,) = node.outputs
        bounds = ", ".join(f"CAST('{n}' AS BIGINT)" for n in (node.start, node.stop, node.step))
        if self.engine == "spark":
            return f"(SELECT id AS {_c(column)} FROM range({bounds})) AS {self.alias()}"
        return f"(SELECT range AS {_c(column)} FROM range({bounds})) AS {self.alias()}"

    def expand(self, node: ExpandExec, child: str) -> str:
        """Each row of the input once per projection: beside the number of the projection."""
        numbers = ", ".join(f"({i})" for i in range(len(node.projections)))
        copy = self.alias()
        # NOTE: Spark takes bare VALUES in FROM, DuckDB wants them in parentheses.
        listed = f"VALUES {numbers}" if self.engine == "spark" else f"(VALUES {numbers})"
        items = ", ".join(
            f"{self._chosen(copy, [row[i] for row in node.projections])} AS {_c(column)}"
            for i, column in enumerate(node.outputs)
        )
        source = f"{child} CROSS JOIN {listed} AS {copy}(copy_number)"
        return f"(SELECT {items} FROM {source}) AS {self.alias()}"

    def _chosen(self, copy: str, options: list[Expression]) -> str:
        """The value for each copy of a row."""
        if len(set(options)) == 1:
            return self.scalar(options[0])
        # A common value stands in ELSE, which keeps the text of wide cubes short.
        common = max(dict.fromkeys(options), key=options.count)
        branches = " ".join(
            f"WHEN {number} THEN {self.scalar(option)}"
            for number, option in enumerate(options)
            if option != common
        )
        return f"CASE {copy}.copy_number {branches} ELSE {self.scalar(common)} END"

    def generate(self, node: GenerateExec, child: str) -> str:
        """Each row of the input with the rows that the generator makes of it."""
        if self.engine == "spark":
            outer = "OUTER " if node.outer else ""
            names = ", ".join(_c(c) for c in node.outputs)
            text = f"{self._spark_generator(node.generator)} {self.alias()} AS {names}"
            # A subquery of its own: LATERAL VIEW binds the whole FROM before it.
            return f"(SELECT * FROM {child} LATERAL VIEW {outer}{text}) AS {self.alias()}"
        lists, values = self._unnested(node)
        made = [f"generated_{i}" for i in range(len(lists))]
        if node.outer:
            size = f"len({lists[0]})"
            lists = [f"CASE WHEN {size} > 0 THEN {text} ELSE [NULL] END" for text in lists]
        unnests = ", ".join(f"unnest({t}) AS {n}" for t, n in zip(lists, made, strict=True))
        kept = "".join(f"{_c(c)}, " for c in node.child.columns)
        shown = ", ".join(
            f"CAST({value} AS {type_name(column.dtype, self.engine)}) AS {_c(column)}"
            for value, column in zip(values, node.outputs, strict=True)
        )
        rows = f"(SELECT {kept}{unnests} FROM {child}) AS {self.alias()}"
        return f"(SELECT {kept}{shown} FROM {rows}) AS {self.alias()}"

    def _spark_generator(self, call: Call) -> str:
        args = ", ".join(self.scalar(a) for a in call.args)
        if call.function == "repeat_row":
            return f"explode(sequence(CAST(1 AS BIGINT), {args}))"
        return f"{call.function}({args})"

    def _unnested(self, node: GenerateExec) -> tuple[list[str], list[str]]:
        """Lists of one length to unnest side by side, and the outputs from their elements."""
        call = node.generator
        text = self.scalar(call.args[0])
        positions = f"range(len({text}))"
        dtype: DataType = call.args[0].dtype
        if call.function == "repeat_row":
            return [f"range({text})"], ["generated_0"]
        # NOTE: DuckDB's unnest drops rows whose list is empty or NULL, as explode does; several
        # unnest of one SELECT advance together.
        if dtype.kind == "map":
            positions = f"range(CAST(cardinality({text}) AS BIGINT))"
            entries = [f"map_keys({text})", f"map_values({text})"]
            if call.function == "explode":
                return entries, ["generated_0", "generated_1"]
            return [positions, *entries], ["generated_0", "generated_1", "generated_2"]
        if call.function == "explode":
            return [text], ["generated_0"]
        if call.function == "posexplode":
            return [positions, text], ["generated_0", "generated_1"]
        if call.function == "inline":
            # NOTE: a NULL struct gives a row of NULLs in both engines.
            fields = dtype.fields[0].dtype.fields
            names = [f.name.replace("'", "''") for f in fields]
            return [text], [f"struct_extract(generated_0, '{name}')" for name in names]
        raise InternalPlanError(f"generator '{call.function}' has no DuckDB spelling")


def _c(column: Column) -> str:
    return f"c{column.id}"
