"""Convert plans to plain nested data, for the JSON and YAML formats.

The form is `{"FilterExec": {"predicate": "x > 0", "child": {"ScanExec": …}}}`: an operator is a key
with its parts and inputs below. An operator without parts has its input directly below it, and a
leaf without parts is its name alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from stagecoach.planner.explain.describe import Plan, Row, Sizer, describe

# Inputs under a key of this name may be several, so they are always a list.
_LISTS = frozenset({"inputs"})


def plan_data(
    plan: Plan,
    *,
    inputs: Mapping[int, str] | None = None,
    sizes: Sizer | None = None,
    once: Collection[Plan] = (),
) -> dict[str, Any] | str:
    """The plan as plain data.

    Args:
        plan: A logical plan, or a physical one with or without exchanges.
        inputs: What to say of the output of a stage, by its number.
        sizes: The estimated size of each operator, given with it.
        once: Parts that stand in several places and are computed once.
    """
    rows = describe(plan, inputs=inputs, sizes=sizes, once=once)
    # From the last row up: the inputs of a row are built when it is reached.
    built: list[tuple[Row, Any]] = []
    for row in reversed(rows):
        below: list[tuple[Row, Any]] = []
        while built and built[-1][0].depth > row.depth:
            below.append(built.pop())
        built.append((row, _node(row, below)))
    root: dict[str, Any] | str = built[0][1]
    return root


def _node(row: Row, below: list[tuple[Row, Any]]) -> Any:
    if row.is_label:
        return below[0][1]
    said: dict[str, Any] = {}
    for part in row.parts:
        said[part.key] = list(part.value) if isinstance(part.value, tuple) else part.value
    if row.size is not None:
        said["estimated_rows"], said["estimated_bytes"] = (round(number) for number in row.size)
    for child, data in below:
        if child.role in _LISTS:
            said.setdefault(child.role, []).append(data)
        else:
            said[child.role] = data
    if not said:
        return row.name
    if len(below) == len(said) == 1 or (said.keys() <= _LISTS):
        return {row.name: next(iter(said.values()))}
    return {row.name: said}
