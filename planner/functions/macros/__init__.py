"""Functions that are shorthand for another expression, such as `nvl` or `isnull`.

There is one module per group; each has a table `MACROS` by Spark's name.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.functions.macros import members, operators, scalars, times
from stagecoach.planner.plan.expressions import Expression

Macro = Callable[[tuple[Expression, ...]], Expression]

_TABLES = (members, operators, scalars, times)

MACROS: dict[str, Macro] = {name: fn for table in _TABLES for name, fn in table.MACROS.items()}
