"""Name the functions that compute decimals exactly in DuckDB. Executors import this module too.

DuckDB's functions have fixed types, and there are too many pairs of decimal types to declare a
function for each. So a name holds the operation and the types, as in
`decimal_multiply_38_18_12_2_38_6`. The planner writes the name into the SQL of a stage, and the
worker declares the functions that it finds there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stagecoach.planner.types import MAX_PRECISION, DataType, decimal

_CALL = re.compile(r"\bdecimal_([a-z]+(?:_[a-z]+)*)((?:_\d+_\d+)+)\(")


@dataclass(frozen=True)
class DecimalFunction:
    """An operation on decimals of certain types.

    Args:
        operation: A key of `stagecoach.infra.engines.duckdb.decimals.OPERATIONS`.
        arguments: Types of the arguments.
        result: Type of the result, to whose scale it is rounded.
    """

    operation: str
    arguments: tuple[DataType, ...]
    result: DataType

    @property
    def name(self) -> str:
        """The name in SQL."""
        types = (*self.arguments, self.result)
        return f"decimal_{self.operation}_" + "_".join(f"{t.precision}_{t.scale}" for t in types)


def decimal_functions(sql: str) -> frozenset[DecimalFunction]:
    """The functions that the SQL calls."""
    found = set()
    for operation, digits in _CALL.findall(sql):
        numbers = [int(number) for number in digits[1:].split("_")]
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        if all(scale <= precision <= MAX_PRECISION for precision, scale in pairs):
            # Otherwise it is inside a string literal. Declaring an unused function is harmless.
            types = [decimal(*pair) for pair in pairs]
            found.add(DecimalFunction(operation, tuple(types[:-1]), types[-1]))
    return frozenset(found)
