"""Write operators that make rows as items of FROM: VALUES, `range`, copies, generators.

The columns of an item are `c<number>`. No input is read more than once.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.planner.engines.dialect import Alias, Dialect, Scalar
from stagecoach.planner.plan.expressions import Column, Expression
from stagecoach.planner.plan.physical import ExpandExec, GenerateExec, RangeExec, ValuesExec


@dataclass(frozen=True)
class RowWriter:
    """Writes operators that make rows.

    Args:
        dialect: Of the engine.
        scalar: The text of an expression.
        alias: A new name for a relation.
    """

    dialect: Dialect
    scalar: Scalar
    alias: Alias

    def values(self, node: ValuesExec) -> str:
        """The written rows."""
        rows = ", ".join(f"({', '.join(self.scalar(e) for e in row)})" for row in node.rows)
        names = ", ".join(_c(c) for c in node.outputs)
        return self.dialect.values(rows, self.alias(), names)

    def range(self, node: RangeExec) -> str:
        """The numbers from start to below stop."""
        (column,) = node.outputs
        bounds = ", ".join(f"CAST('{n}' AS BIGINT)" for n in (node.start, node.stop, node.step))
        return f"({self.dialect.numbers(bounds, _c(column))}) AS {self.alias()}"

    def expand(self, node: ExpandExec, child: str) -> str:
        """Each row of the input once per projection: beside the number of the projection."""
        numbers = ", ".join(f"({i})" for i in range(len(node.projections)))
        copy = self.alias()
        listed = self.dialect.values(numbers, copy, "copy_number")
        items = ", ".join(
            f"{self._chosen(copy, [row[i] for row in node.projections])} AS {_c(column)}"
            for i, column in enumerate(node.outputs)
        )
        source = f"{child} CROSS JOIN {listed}"
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
        return self.dialect.generate(node, child, self.scalar, self.alias)


def _c(column: Column) -> str:
    return f"c{column.id}"
