"""Finds columns in front matter that the planned result does not have.

The planner knows the columns and their types without reading data, so this costs nothing.
"""

from collections.abc import Iterator, Sequence

from stagecoach.assets.project.front_matter.checks import AcceptedValuesCheck, NotNullCheck
from stagecoach.assets.project.front_matter.model import FrontMatter
from stagecoach.assets.project.front_matter.partitions import StaticPartitions
from stagecoach.assets.project.front_matter.places import Location, Problem
from stagecoach.assets.project.names import did_you_mean
from stagecoach.planner.plan.literal_text import parse_literal
from stagecoach.planner.types import Field

_Found = tuple[Location, str]


def check_against(front_matter: FrontMatter, result_columns: Sequence[Field]) -> list[Problem]:
    """What the front matter says of columns that the result does not have, or not of that type.

    Args:
        front_matter: Of the query.
        result_columns: Names and types of the planned result; case does not matter.
    """
    columns = _Columns(front_matter.output.stored_columns(result_columns))
    found = [
        *_check_columns(front_matter, columns),
        *_partition_column(front_matter, columns),
        *_folders(front_matter, columns),
        *_merge(front_matter, columns, _Columns(result_columns)),
    ]
    return sorted(front_matter.places.problem(location, text) for location, text in found)


class _Columns:
    """The columns of a result, by name."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.names = [field.name for field in fields]
        self._by_name = {field.name.lower(): field for field in fields}

    def find(self, name: str, location: Location) -> tuple[Field | None, list[_Found]]:
        """The column, or the problem that there is none, or that there are several."""
        if (same := [n for n in self.names if n.lower() == name.lower()]) and len(same) > 1:
            text = f"the result has {len(same)} columns '{name}'; give them names of their own"
            return None, [(location, text)]
        field = self._by_name.get(name.lower())
        if field is None:
            fix = did_you_mean(name, self.names)
            return None, [(location, f"column '{name}' is not in the result{fix}")]
        return field, []


def _check_columns(front_matter: FrontMatter, columns: _Columns) -> Iterator[_Found]:
    for i, check in enumerate(front_matter.checks):
        for inner, name in check.columns:
            location = ("checks", i, *inner)
            field, problems = columns.find(name, location)
            yield from problems
            if field is None:
                continue
            if not isinstance(check, NotNullCheck) and not _is_comparable(field):
                yield (
                    location,
                    f"values of '{name}', a {field.dtype}, cannot be compared; use others",
                )
            elif isinstance(check, AcceptedValuesCheck):
                yield from _values_fit(check, field, ("checks", i, "accepted_values", "values"))


def _values_fit(check: AcceptedValuesCheck, field: Field, location: Location) -> Iterator[_Found]:
    for i, text in enumerate(check.accepted_values.texts):
        try:
            parse_literal(text, field.dtype)
        except ValueError:
            yield (
                (*location, i),
                f"'{text}' is not a valid {field.dtype}, the type of column '{field.name}'; "
                "correct it",
            )


def _is_comparable(field: Field) -> bool:
    """Whether Spark groups by the column; it does not by a map, at any depth."""
    waiting = [field.dtype]
    while waiting:
        dtype = waiting.pop()
        if dtype.kind == "map":
            return False
        waiting += [inner.dtype for inner in dtype.fields]
    return True


def _partition_column(front_matter: FrontMatter, columns: _Columns) -> Iterator[_Found]:
    partitions = front_matter.partitions
    if partitions is None or partitions.column is None:
        return
    location = ("partitions", "column")
    field, problems = columns.find(partitions.column, location)
    yield from problems
    if field is None:
        return
    name, dtype = field.name, field.dtype
    if isinstance(partitions, StaticPartitions):
        if dtype.kind != "string":
            yield location, f"'{name}' is {dtype}, and keys are texts; cast it to string"
    elif partitions.window_type == "string":
        if dtype.kind != "string":
            yield (
                location,
                f"'{name}' is {dtype}, and partitions.type is string; cast one to the other",
            )
    elif not dtype.is_datetime:
        yield location, f"'{name}' is {dtype}, not a date or timestamp; cast it, or name another"
    elif dtype.kind == "date" and partitions.by == "hourly":
        yield location, f"'{name}' is a date, which cannot tell hours apart; use a timestamp"


def _merge(front_matter: FrontMatter, table: _Columns, result: _Columns) -> Iterator[_Found]:
    output = front_matter.output
    for i, name in enumerate(output.key or ()):
        field, problems = table.find(name, ("output", "key", i))
        yield from problems
        if field is not None and not field.dtype.is_atomic:
            yield ("output", "key", i), f"'{name}', a {field.dtype}, cannot be a key; use another"
    if output.delete_column is None:
        return
    location = ("output", "delete_column")
    field, problems = result.find(output.delete_column, location)
    yield from problems
    if field is not None and field.dtype.kind != "boolean":
        yield location, f"'{field.name}' is {field.dtype}, not boolean; compare it with a value"


def _folders(front_matter: FrontMatter, columns: _Columns) -> Iterator[_Found]:
    names = front_matter.output.partition_by
    for i, name in enumerate(names):
        location = ("output", "partition_by", i)
        field, problems = columns.find(name, location)
        yield from problems
        if field is not None and not field.dtype.is_atomic:
            yield location, f"'{name}', a {field.dtype}, cannot be a folder's name; use another"
    if names and {n.lower() for n in names} >= {n.lower() for n in columns.names}:
        yield (
            ("output", "partition_by"),
            "all columns of the result would be folders, and files be empty; leave one out",
        )
