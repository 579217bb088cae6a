"""A query that was parsed: its text, its tree, and what a look at the tree tells.

Parsing is the most expensive step for a short query, and planning, parameters and dependencies all
start from the same tree. `syntax.parse.parse_query` makes this value once; the rest is handed it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.syntax.spark_syntax import position
from stagecoach.planner.versioned_names import TableVersion, plain_name, versioned_name

Place = tuple[int | None, int | None]
_NUMBER = "cte"
_CONDITIONS = frozenset(("having", "limit", "offset", "order", "qualify", "where"))

CHANGING = frozenset(
    (
        "current_catalog",
        "current_database",
        "current_date",
        "current_path",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_timezone",
        "current_user",
        "curdate",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "localtime",
        "localtimestamp",
        "monotonically_increasing_id",
        "now",
        "rand",
        "randn",
        "random",
        "randstr",
        "session_user",
        "shuffle",
        "spark_partition_id",
        "unix_timestamp",
        "user",
        "uniform",
        "uuid",
        "version",
    )
)
"""Functions whose values differ between runs over the same data."""

CHANGING_WORDS = frozenset(("localtime", "user"))
"""Those of them that Spark calls without brackets, and that the parser takes for columns."""

TODAY = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""Beginnings of texts that Spark reads as a moment of the run in `DATE'today'` and the like."""


@dataclass(frozen=True, eq=False)
class ParsedQuery:
    """One query that only reads tables of the catalog.

    Args:
        sql: Its text, as it was given.
        tree: Its syntax tree, which nothing may change.
    """

    sql: str
    tree: exp.Query

    @cached_property
    def tables(self) -> tuple[tuple[str, bool], ...]:
        """Names in FROM clauses, each once, and whether a CTE has that name too.

        A CTE may hide a table of its name in one place and read it in another.
        """
        ctes = {cte.alias_or_name.lower() for cte in self.tree.find_all(exp.CTE)}
        names = [
            full_name(table)
            for table in self.tree.find_all(exp.Table)
            if not isinstance(table.this, exp.Func)
        ]
        return tuple((name, name.lower() in ctes) for name in dict.fromkeys(names))

    @cached_property
    def parameters(self) -> dict[str, Place]:
        """Line and column of the first use of each parameter, in the order of the text."""
        found: dict[str, Place] = {}
        markers = self.tree.find_all(exp.Placeholder)
        for marker in sorted(markers, key=lambda m: m.meta.get("start", 0)):
            if marker.name:
                found.setdefault(marker.name, position(marker))
        return found

    @cached_property
    def shaping_parameters(self) -> frozenset[str]:
        """Parameters whose values may change the names or types of columns.

        Spark writes them into names (`(id + 5)`), makes columns of those of PIVOT, and takes types
        from those that a function wants constant (`round`, `from_json`). In conditions, ORDER BY
        and LIMIT of a query they do neither.
        """
        markers = self.tree.find_all(exp.Placeholder)
        return frozenset(marker.name for marker in markers if not _is_in_condition(marker))

    @cached_property
    def function_names(self) -> tuple[str, ...]:
        """Names of the functions that are called, each once, in lower case."""
        calls = self.tree.find_all(exp.Anonymous)
        return tuple(dict.fromkeys(call.name.lower() for call in calls))

    @property
    def is_deterministic(self) -> bool:
        """Whether the query's own text gives the same rows for the same data in every run."""
        calls = self.tree.find_all(exp.Func)
        names = (c.name if isinstance(c, exp.Anonymous) else c.sql_name() for c in calls)
        return not (
            any(name.lower() in CHANGING for name in names)
            or self.tree.find(exp.TableSample)
            or any(_is_of_the_run(cast) for cast in self.tree.find_all(exp.Cast))
        )

    def may_call(self, names: Collection[str]) -> bool:
        """Whether one of these names stands alone, as a column or a function without brackets."""
        alone = (c for c in self.tree.find_all(exp.Column) if not c.table)
        return any(column.name.lower() in names for column in alone)

    @property
    def is_ordered(self) -> bool:
        """Whether the query ends with ORDER BY."""
        return self.tree.args.get("order") is not None

    def place_of(self, table: str) -> Place | None:
        """Line and column where a table is named first in FROM, or None."""
        named = (n for n in self.tree.find_all(exp.Table) if full_name(n).lower() == table.lower())
        places = [place for place in map(position, named) if place[0] is not None]
        return min(places, key=lambda p: (p[0], p[1] or 1), default=None)


def _is_in_condition(node: exp.Expr) -> bool:
    """Whether the node belongs to a part of a query that gives no columns."""
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.Query) and node.arg_key in _CONDITIONS:
            return True
        if isinstance(parent, exp.Join) and node.arg_key == "on":
            return True
        node = parent
    return False


def number_ctes(tree: exp.Expr) -> None:
    """Give each CTE a number of its own, under which planning remembers what it knows of it."""
    for number, cte in enumerate(tree.find_all(exp.CTE)):
        cte.meta[_NUMBER] = number


def cte_number(cte: exp.CTE) -> int:
    """The number of a CTE of a parsed query."""
    number: int = cte.meta[_NUMBER]
    return number


def full_name(table: exp.Table) -> str:
    """The name of a table with what stands before it, such as a schema, and with its version."""
    name = ".".join(part.name for part in table.parts)
    version = table_version(table)
    return plain_name(name) if version is None else versioned_name(name, version)


def table_version(table: exp.Table) -> TableVersion | None:
    """The version that a constant behind the table's name tells; None for no version."""
    found = table.args.get("version")
    if not isinstance(found, exp.Version) or str(found.args.get("kind")).upper() != "AS OF":
        return None
    kind = "timestamp" if found.name.upper() == "TIMESTAMP" else "version"
    value = found.args.get("expression")
    if not isinstance(value, exp.Literal) or (kind == "timestamp" and not value.is_string):
        return None
    return TableVersion("timestamp" if kind == "timestamp" else "version", str(value.this))


def _is_of_the_run(cast: exp.Cast) -> bool:
    """Whether it is a date or time as the run begins, such as `DATE'today'`."""
    text = cast.this
    return isinstance(text, exp.Literal) and text.is_string and bool(TODAY.match(text.name))
