"""Functions that are only another way to write an expression, such as `nvl` or `isnull`.

In: the name of a Spark function and its arguments. Out: the expression that it stands for. One
module a group; each has a table `MACROS` by Spark's name.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.expressions import Expression
from planner.functions.macros import members, operators, scalars, times

Macro = Callable[[tuple[Expression, ...]], Expression]

_TABLES = (members, operators, scalars, times)

MACROS: dict[str, Macro] = {name: fn for table in _TABLES for name, fn in table.MACROS.items()}
