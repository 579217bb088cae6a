"""Member access: choose the call for `s.f`, `a[0]`, `m['k']` by the type of the value."""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions.registry import make_call
from stagecoach.planner.plan.expressions import Expression, Literal
from stagecoach.planner.types import NULL, STRING, DataType, Field

Args = tuple[Expression, ...]


def get_field(value: Expression, name: str) -> Expression:
    """The member `name` of a struct, of each struct of an array, or the value of that key of a map.

    Raises:
        AnalysisError: If there is no such member, or more than one.
        UnsupportedSqlError: For an untyped NULL.
    """
    dtype = value.dtype
    if dtype.kind == "struct":
        return make_call("get_field", value, Literal(STRING, _member(dtype, name).name))
    if dtype.kind == "array" and dtype.fields[0].dtype.kind == "struct":
        member = _member(dtype.fields[0].dtype, name)
        return make_call("get_fields", value, Literal(STRING, member.name))
    if dtype.kind == "map":
        return make_call("map_item", value, Literal(STRING, name))
    if dtype == NULL:
        raise UnsupportedSqlError(f"member '{name}' of an untyped NULL")
    raise AnalysisError(
        f"'{name}' cannot be read from a value of type {dtype}, which has no members"
    )


def get_item(value: Expression, index: Expression) -> Expression:
    """`value[index]`.

    Raises:
        AnalysisError: For a value that has no members, or an index of a wrong type.
        UnsupportedSqlError: For an untyped NULL, or a key that Spark casts in its own way.
    """
    dtype = value.dtype
    name = index.value if isinstance(index, Literal) and index.dtype == STRING else None
    holds_structs = dtype.kind == "array" and dtype.fields[0].dtype.kind == "struct"
    if name is not None and (dtype.kind == "struct" or holds_structs):
        return get_field(value, str(name))
    if dtype.kind == "array":
        return make_call("array_item", value, index)
    if dtype.kind == "map":
        return make_call("map_item", value, index)
    if dtype == NULL:
        raise UnsupportedSqlError("a member of an untyped NULL")
    raise AnalysisError(f"[…] needs an array, a map or a struct, not {dtype}")


def _member(dtype: DataType, name: str) -> Field:
    found = [f for f in dtype.fields if f.name.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise AnalysisError(f"member '{name}' of {dtype} is ambiguous")
    known = ", ".join(f.name for f in dtype.fields)
    raise AnalysisError(f"member '{name}' not found (available: {known})")


def _concat(args: Args) -> Expression:
    is_array = any(a.dtype.kind == "array" for a in args)
    return make_call("array_concat" if is_array else "concat", *args)


def _reverse(args: Args) -> Expression:
    is_array = any(a.dtype.kind == "array" for a in args)
    return make_call("array_reverse" if is_array else "reverse", *args)


def _shuffle(args: Args) -> Expression:
    del args
    raise UnsupportedSqlError("shuffle gives another order each time")


MACROS: dict[str, Callable[[Args], Expression]] = {
    "concat": _concat,
    "reverse": _reverse,
    "shuffle": _shuffle,
}
