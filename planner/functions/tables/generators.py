"""Generators: functions that make rows, typed as a struct of the columns that they make.

Only the `Generate` operator holds calls of them, and `render.rows` writes it. The spelling here says
whether DuckDB may run one at all.
"""

from __future__ import annotations

from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.functions.function import Args, Function
from stagecoach.planner.functions.rules import only_strings, unchanged
from stagecoach.planner.functions.spell_json_paths import refuse_json_tuple
from stagecoach.planner.types import BIGINT, INT, STRING, TINYINT, DataType, Field, struct_of

_POSITION = Field("pos", INT)


def _collection(args: Args) -> Args:
    if args[0].dtype.kind not in ("array", "map"):
        raise AnalysisError(f"expected an array or a map, found {args[0].dtype}")
    return args


def _structs(args: Args) -> Args:
    dtype = args[0].dtype
    if dtype.kind != "array" or dtype.fields[0].dtype.kind != "struct":
        raise AnalysisError(f"expected an array of structs, found {dtype}")
    return args


def _elements(args: Args) -> tuple[Field, ...]:
    dtype = args[0].dtype
    if dtype.kind == "map":
        return dtype.fields
    return (Field("col", dtype.fields[0].dtype),)


def _members(args: Args) -> DataType:
    return struct_of(args[0].dtype.fields[0].dtype.fields)


def _texts(args: Args) -> DataType:
    return struct_of(tuple(Field(f"c{i}", STRING) for i in range(len(args) - 1)))


def _never(args: Args) -> Args:
    raise AnalysisError("needs GROUPING SETS, ROLLUP or CUBE")


FUNCTIONS: tuple[Function, ...] = (
    Function("explode", (1, 1), _collection, lambda a: struct_of(_elements(a)), "explode({0})", "unnest({0})", proof="relations"),
    Function("posexplode", (1, 1), _collection, lambda a: struct_of((_POSITION, *_elements(a))), "posexplode({0})", "unnest({0})", proof="relations"),
    Function("inline", (1, 1), _structs, _members, "inline({0})", "unnest({0})", proof="relations"),
    Function("json_tuple", (2, 1 << 20), only_strings, _texts, "json_tuple({*})", "unnest({0})", refuse_json_tuple, "relations"),
    Function("repeat_row", (1, 1), unchanged, lambda _: struct_of((Field("copy", BIGINT),)), "explode(sequence(1, {0}))", "unnest(range({0}))", proof="relations"),
    # An aggregate gives these their value; where there is none, Spark names the mistake.
    Function("grouping", (1, 1), _never, lambda _: TINYINT, "grouping({0})"),
    Function("grouping_id", (0, 1 << 20), _never, lambda _: BIGINT, "grouping_id({*})"),
)  # fmt: skip
