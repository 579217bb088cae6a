"""Resolve column names against the relations in FROM, aliases, outer queries and parameters.

Errors name the closest matches.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stagecoach.planner.analysis.scalars.windows import NamedWindows, window_call
from stagecoach.planner.errors import AnalysisError, UnknownColumnError, UnsupportedSqlError
from stagecoach.planner.functions.macros.members import get_field
from stagecoach.planner.plan.expressions import (
    Column,
    ColumnRef,
    Expression,
    Parameter,
    WindowCall,
    contains,
)
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import DataType

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Relation:
    """An item of FROM: its alias and the columns that it shows.

    Args:
        alias: Its name in the query; empty if it has none.
        columns: Its columns.
        path: What stands before a table's name, such as the schema.
        is_renamed: Whether its alias names the columns, which makes each a column of its own.
    """

    alias: str
    columns: tuple[Column, ...]
    path: tuple[str, ...] = ()
    is_renamed: bool = False

    def answers_to(self, qualifier: Sequence[str]) -> bool:
        """Whether a name such as `t`, or `schema.t`, means this relation."""
        own = [part.lower() for part in (*self.path, self.alias)]
        asked = [part.lower() for part in qualifier]
        return bool(self.alias) and own[-len(asked) :] == asked


@dataclass
class Scope:
    """Names visible in one SELECT; implements `stagecoach.planner.analysis.scalars.Names`.

    Args:
        relations: Items of FROM.
        plan_subquery: Plans a nested query with this scope as its outer one.
        parameters: Types of the declared parameters by name.
        parent: Scope of the enclosing query, for correlation.
        merged: Columns of USING and NATURAL joins by lower-case name, which hide both sides.
        hidden: Numbers of the columns that those of USING and NATURAL joins are made of.
        aliases: Select items by lower-case alias, for ORDER BY, HAVING and later items.
        aliases_first: Whether an alias hides a column of the same name.
        windows: The WINDOW clause, where window functions may stand; None where they may not.
        aliases_in_windows: Whether windows see the aliases.
        made: Columns by name that calls of the SELECT make below it, such as `window`; `*` does not
            show them.
        time_windows: Numbers of the columns, here and in nested queries, that are time windows.
        sources: By number of a column that shows another one as it is: the number of that one.
        shared_names: Lower-case names that several select items have, so that none has it.
        find_function: Gives the functions of the project by name.
        expand_star: Expands `*` in a scope.
    """

    relations: tuple[Relation, ...]
    plan_subquery: Callable[[exp.Query, Scope], LogicalPlan]
    parameters: Mapping[str, DataType]
    parent: Scope | None = None
    merged: Mapping[str, Expression] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    aliases: dict[str, Expression] = field(default_factory=dict)
    aliases_first: bool = False
    windows: NamedWindows | None = None
    aliases_in_windows: bool = False
    made: Mapping[str, Expression] = field(default_factory=dict)
    time_windows: Container[int] = ()
    sources: Mapping[int, int] = field(default_factory=dict)
    shared_names: frozenset[str] = frozenset()
    find_function: Callable[[str], ProjectFunction | None] = field(kw_only=True)
    expand_star: Callable[[exp.Expr, Scope], list[tuple[str, Expression]]] = field(kw_only=True)

    def column(self, node: exp.Column) -> Expression:
        """The value that a column node names.

        Raises:
            AnalysisError: If no relation has it, or more than one.
        """
        name, qualifier = node.name, node.table
        parts = [part.name for part in node.parts]
        found = self.find(parts)
        if found is not None:
            return found
        if len(parts) > 2:
            raise UnsupportedSqlError(f"'{node.sql()}' has more than two parts")
        if not qualifier and name.lower() in self.shared_names:
            what = "several select items have that name"
            raise AnalysisError(f"column '{name}' is ambiguous: {what}")
        raise self._unknown(name, qualifier)

    def find(self, parts: Sequence[str]) -> Expression | None:
        """The value that a name means here or in an outer query; None if it means none."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.path(parts)
            if found is not None:
                if scope is not self and contains(found, WindowCall):
                    raise UnsupportedSqlError(f"'{parts[-1]}', a window function of an outer query")
                return found
            scope = scope.parent
        return None

    def path(self, parts: Sequence[str]) -> Expression | None:
        """The column, or the member of a column, that a name of this SELECT means; else None.

        A column of a table so named goes before a member of a column so named.
        """
        for length in range(len(parts) - 1, -1, -1):
            found = self._local(parts[length], tuple(parts[:length]))
            is_alias = self.aliases_first and length == 0 and parts[0].lower() in self.aliases
            if found is not None and is_alias and len(parts) > 1 and found.dtype.is_atomic:
                # An alias without members does not hide a struct.
                found = replace(self, aliases_first=False, aliases={})._local(parts[0], ())
            if found is not None:
                for member in parts[length + 1 :]:
                    found = get_field(found, member)
                return found
        return None

    def _local(self, name: str, qualifier: tuple[str, ...]) -> Expression | None:
        key = name.lower()
        if self.aliases_first and not qualifier and key in self.aliases:
            return self.aliases[key]
        found = [
            column
            for relation in self.relations
            if not qualifier or relation.answers_to(qualifier)
            for column in relation.columns
            if column.name.lower() == key
        ]
        if not qualifier and key in self.merged:
            found = [column for column in found if column.id not in self.hidden]
            if not found:
                return self.merged[key]
            raise AnalysisError(f"column '{name}' is ambiguous; it is in USING, too")
        if len(found) > 1 and not self._is_one(found):
            shown = ", ".join(
                f"{r.alias}.{c.name}" for r in self.relations for c in r.columns if c in found
            )
            raise AnalysisError(f"column '{name}' is ambiguous; it could be {shown}")
        if found:
            column = found[0]
            return Column(column.id, name, column.dtype).ref
        for values in (self.made, self.aliases):
            if not qualifier and key in values and key not in self.shared_names:
                return values[key]
        return None

    def _is_one(self, columns: list[Column]) -> bool:
        """Whether the columns are one, which a nested query selects several times."""
        named = {c.id for r in self.relations if r.is_renamed for c in r.columns}
        same = {self.sources.get(c.id) for c in columns if c.id not in named}
        return len(same) == 1 and None not in same and not named.intersection(c.id for c in columns)

    def _unknown(self, name: str, qualifier: str) -> Exception:
        visible: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            for relation in scope.relations:
                if qualifier and relation.alias.lower() == qualifier.lower():
                    return _not_found(
                        f"'{name}' in '{qualifier}'", name, [c.name for c in relation.columns]
                    )
                visible.extend(c.name for c in relation.columns)
            scope = scope.parent
        if qualifier:
            aliases = [r.alias for r in self.relations]
            return _not_found(f"'{qualifier}.{name}'", qualifier, aliases, what="table or alias")
        return _not_found(f"'{name}'", name, visible)

    def subquery(self, query: exp.Query) -> LogicalPlan:
        """The plan of a query nested in this scope."""
        return self.plan_subquery(query, self)

    def star(self, node: exp.Expr) -> list[tuple[str, Expression]]:
        """Names and values of the columns that `*` stands for."""
        return self.expand_star(node, self)

    def parameter(self, name: str) -> Parameter:
        """The declared parameter.

        Raises:
            AnalysisError: If no parameter of that name was declared.
        """
        dtype = self.parameters.get(name)
        if dtype is None:
            known = ", ".join(f":{p}" for p in self.parameters) or "none"
            if name.isdigit():
                raise AnalysisError(
                    f"parameter ? number {name} has no value; "
                    f"give it as '{name}' (given are: {known})"
                )
            raise AnalysisError(f"parameter ':{name}' has no value; given are: {known}")
        return Parameter(dtype, name)

    def function(self, name: str) -> ProjectFunction | None:
        """The function of the project of that name."""
        return self.find_function(name)

    def window(self, node: exp.Window) -> Expression:
        """The value of a window function.

        Raises:
            AnalysisError: Where none may stand.
        """
        if self.windows is None:
            raise AnalysisError(
                "a window function is only allowed in the select list or in QUALIFY; "
                "elsewhere refer to one of a subquery"
            )
        inner = self if self.aliases_in_windows else replace(self, aliases={})
        return window_call(node, inner, self.windows)

    def time_window(self, name: str) -> Expression:
        """The time window of the row.

        Raises:
            UnsupportedSqlError: Where a call does not make one.
        """
        if name not in self.made:
            raise UnsupportedSqlError(f"'{name}' outside of the select list and GROUP BY")
        return self.made[name]

    def is_time_window(self, value: Expression) -> bool:
        """Whether a value is the column of a time window, made by another SELECT."""
        if value in self.made.values():
            return False
        return isinstance(value, ColumnRef) and value.id in self.time_windows


def _not_found(shown: str, name: str, candidates: list[str], what: str = "column") -> AnalysisError:
    known = list(dict.fromkeys(candidates))
    lowered = {c.lower(): c for c in known}
    near = [lowered[n] for n in difflib.get_close_matches(name.lower(), lowered, n=3)]
    hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    listed = f" (available: {', '.join(known[:20])}{', …' if len(known) > 20 else ''})"
    condition = "" if known else "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"
    return UnknownColumnError(
        f"{what} {shown} not found{hint}{listed}", name=name, condition=condition
    )
