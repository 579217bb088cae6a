"""The YAML of a file of query tests, as models."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, model_validator

from stagecoach.assets.project.front_matter.base import Part
from stagecoach.assets.project.front_matter.checks import Check
from stagecoach.assets.project.front_matter.places import AT_KEY, Location
from stagecoach.assets.project.front_matter.values import Moment, refuse, refuse_all, scalar_text
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.types import parse_type

Cell = str | list[Any] | dict[str, Any] | None
"""A value as its author writes it; what it means depends on the type of its column."""
ROW_SOURCES = ("rows", "csv", "parquet")


def _row_list(value: Any) -> Any:
    """A list alone is the rows."""
    return {"rows": value} if isinstance(value, list | tuple) else value


def _types(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    problems: list[tuple[Location, str]] = []
    for name, text in value.items():
        try:
            parse_type(str(text))
        except UnsupportedSqlError as error:
            example = "'date', 'bigint' or 'decimal(15,2)'"
            problems.append(((name,), f"{error}; write one of Spark's types, such as {example}"))
    refuse_all(problems)
    return {name: str(text) for name, text in value.items()}


def _texts(value: Any) -> Any:
    """Values of parameters as the texts that they are bound as."""
    if not isinstance(value, dict):
        return value
    found = {name: scalar_text(item) for name, item in value.items()}
    refuse_all(
        ((name,), f"parameter '{name}' must be a single value, not {value[name]!r}; write one")
        for name, text in found.items()
        if text is None
    )
    return found


def _one_source(value: Any) -> Any:
    given = [key for key in ROW_SOURCES if isinstance(value, dict) and value.get(key) is not None]
    if len(given) > 1:
        problem = f"rows come from one place, not from {' and '.join(given)}; keep one of them"
        refuse_all([((given[1], AT_KEY), problem)])
    return value


Rows = Annotated[
    tuple[dict[str, Cell], ...], Field(json_schema_extra={"items": {"type": "object"}})
]
Values = Annotated[
    dict[str, str],
    BeforeValidator(
        _texts, json_schema_input_type=dict[str, str | StrictInt | StrictFloat | StrictBool]
    ),
]


class Given(Part):
    """The rows of a table, or of a CTE of the query."""

    rows: Rows | None = None
    """Rows as mappings of columns to values; a column that a row does not name is NULL."""
    csv: str | None = None
    """A CSV file with a header, beside this file; an empty field is NULL, "" an empty text."""
    parquet: str | None = None
    """A Parquet file, beside this file."""
    columns: Annotated[dict[str, str], BeforeValidator(_types)] = Field(default_factory=dict)
    """Spark types by name of column, where neither the catalog nor a query tells them."""

    @model_validator(mode="before")
    @classmethod
    def _check_source(cls, value: Any) -> Any:
        found = _one_source(_row_list(value))
        if isinstance(found, dict) and all(found.get(key) is None for key in ROW_SOURCES):
            raise refuse("the table has no rows; add 'rows', 'csv' or 'parquet' ('rows: []': none)")
        return found


class Expect(Part):
    """What must come out."""

    rows: Rows | None = None
    """All rows of the result. Columns that none of them names are not compared; one that only some
    of them name is NULL in the others. Their order counts if the query has ORDER BY."""
    csv: str | None = None
    """The rows, as a CSV file with a header, beside this file."""
    parquet: str | None = None
    """The rows, as a Parquet file, beside this file."""
    checks: tuple[Check, ...] = ()
    """Conditions on the result, written as the `checks` of a query; `no_rows` reads the result by
    the name of the query's table."""
    error: str | None = None
    """A part of the message with which Spark must refuse the rows; needs --spark."""
    tolerance: Annotated[float, Field(ge=0)] = 0.0
    """Relative difference up to which floating-point values are equal; 0 by default."""

    @model_validator(mode="before")
    @classmethod
    def _check_what(cls, value: Any) -> Any:
        found = _one_source(_row_list(value))
        if not isinstance(found, dict):
            return found
        if found.get("error") is not None:
            others = [k for k in (*ROW_SOURCES, "checks") if found.get(k) is not None]
            if others:
                problem = f"a query that fails has no rows; remove '{others[0]}' or 'error'"
                refuse_all([((others[0], AT_KEY), problem)])
        elif not found.get("checks") and all(found.get(key) is None for key in ROW_SOURCES):
            raise refuse("nothing is expected; add 'rows', 'csv', 'parquet', 'checks' or 'error'")
        return found

    @property
    def has_rows(self) -> bool:
        """Whether rows are expected, or none; else only checks or an error are."""
        return any(getattr(self, key) is not None for key in ROW_SOURCES)


class QueryTest(Part):
    """One test of a query."""

    name: Annotated[str, Field(min_length=1)]
    """What it shows; unique in its file."""
    cte: str | None = None
    """A CTE of the query that is tested in its place."""
    given: dict[str, Given] = Field(default_factory=dict)
    """Rows by name of the table or CTE that the query reads."""
    parameters: Values = Field(default_factory=dict)
    """Values by name of the parameter, those of the partition included."""
    now: Moment | None = None
    """The clock: what current_timestamp, current_date and their kind give, in the
    session's zone."""
    spark: Literal["only"] | None = None
    """`only`: the test needs Spark, and is left out without --spark."""
    expect: Expect
    """What must come out."""


class TestFile(Part):
    """A file of tests of one query, which share its rows, parameters and clock."""

    __test__ = False  # not one of pytest's

    query: str | None = None
    """The query's name; that of the file by default."""
    given: dict[str, Given] = Field(default_factory=dict)
    """Rows by name of the table, for all tests; a test that gives a table replaces its rows."""
    parameters: Values = Field(default_factory=dict)
    """Values of parameters, for all tests."""
    now: Moment | None = None
    """The clock, for all tests."""
    tests: Annotated[tuple[QueryTest, ...], Field(min_length=1)]
    """The tests."""

    @model_validator(mode="after")
    def _check_names(self) -> "TestFile":
        seen: set[str] = set()
        problems: list[tuple[Location, str]] = []
        for i, test in enumerate(self.tests):
            if test.name in seen:
                message = f"another test is called '{test.name}', too; give it another name"
                problems.append((("tests", i, "name"), message))
            seen.add(test.name)
        refuse_all(problems)
        return self
