"""Which query makes which table, which query reads it, and the order that follows.

    SELECT … FROM orders …            a base table, or the table that the query `orders` makes
                  ▲
    orders.sql, output.table: orders

Nothing is planned here: the names in FROM are enough for the order, and with the order each query
can be planned over what the ones before it make.
"""

import graphlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from stagecoach.assets.project.queries import ProjectError, Query
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import SqlError
from stagecoach.planner.syntax.parse import read_query
from stagecoach.planner.types import Field
from stagecoach.planner.versioned_names import split_name


class CircleError(ProjectError):
    """Queries read one another in a circle.

    Args:
        path: Its queries, each once; the first reads what the last one makes.
    """

    def __init__(self, path: Sequence[Query]) -> None:
        self.path = tuple(path)
        super().__init__(_circle([*self.path, self.path[0]]))


@dataclass(frozen=True, kw_only=True)
class QueryOrder:
    """Queries, upstream ones first, and what each of them makes and reads.

    Args:
        queries: All queries; one comes after those whose tables it reads.
        reads: Names in FROM clauses, as written, by name of the query; those of CTEs may be among
            them.
    """

    queries: tuple[Query, ...]
    reads: Mapping[str, tuple[str, ...]]

    @cached_property
    def makers(self) -> Mapping[str, Query]:
        """The query that makes a table, by the table's name in lower case."""
        return {query.table.lower(): query for query in self.queries}

    def maker(self, table: str) -> Query | None:
        """The query that makes the table; None for a base table."""
        return self.makers.get(table.lower())

    def needed(self, wanted: Iterable[Query]) -> tuple[Query, ...]:
        """Some queries and all whose tables they read, directly or not, upstream ones first."""
        names = {query.name for query in wanted}
        for query in reversed(self.queries):
            if query.name in names:
                names |= {maker.name for maker in self.upstream(query)}
        return tuple(query for query in self.queries if query.name in names)

    def upstream(self, query: Query) -> Sequence[Query]:
        """The queries whose tables a query reads, each once."""
        found = (self.maker(table) for table in self.reads.get(query.name, ()))
        return tuple({maker.name: maker for maker in found if maker is not None}.values())


def sql_reads(query: Query) -> tuple[str, ...]:
    """The tables that a query reads by its SQL."""
    return tuple(dict.fromkeys(split_name(name)[0] for name in tables_read(query.sql)))


def order_queries(
    queries: Iterable[Query], reads_of: Callable[[Query], tuple[str, ...]] = sql_reads
) -> QueryOrder:
    """Put every query behind those whose tables it reads.

    A query whose SQL cannot be parsed reads nothing here: planning it tells what is wrong.

    Args:
        queries: The queries of a project, whose names do not clash (see `name_clashes`).
        reads_of: The tables that a query reads, where that is known without its SQL.

    Raises:
        CircleError: They read one another in a circle; the message has the files.
    """
    ordered = sorted(queries, key=lambda q: q.name)
    reads = {query.name: reads_of(query) for query in ordered}
    found = QueryOrder(queries=tuple(ordered), reads=reads)
    by_name = {query.name: query for query in ordered}
    sorter = graphlib.TopologicalSorter(
        {query.name: [q.name for q in found.upstream(query)] for query in ordered}
    )
    try:
        names = tuple(sorter.static_order())
    except graphlib.CycleError as error:
        # The first query stands at both ends.
        raise CircleError([by_name[name] for name in error.args[1][:-1]]) from error
    return QueryOrder(queries=tuple(by_name[name] for name in names), reads=reads)


def order_and_circles(queries: Iterable[Query]) -> tuple[QueryOrder, list[tuple[Query, ...]]]:
    """The order of the queries that are in no circle, and the circles."""
    rest = list(queries)
    circles: list[tuple[Query, ...]] = []
    while True:
        try:
            return order_queries(rest), circles
        except CircleError as error:
            circles.append(error.path)
            rest = [query for query in rest if query not in error.path]


@lru_cache(maxsize=1024)
def tables_read(sql: str) -> tuple[str, ...]:
    """The names in the FROM clauses of a query, each once; none of one that cannot be parsed."""
    try:
        return tuple(name for name, _ in read_query(sql).tables)
    except SqlError:
        return ()


@lru_cache(maxsize=1024)
def functions_named(sql: str) -> tuple[str, ...]:
    """What a query may call, in lower case, each once; nothing for one that cannot be parsed."""
    try:
        return read_query(sql).function_names
    except SqlError:
        return ()


def read_place(query: Query, table: str) -> tuple[int, int]:
    """Line and column where a query first names a table in FROM; its start if it does not."""
    try:
        line, column = read_query(query.sql).place_of(table) or (None, None)
    except SqlError:
        return 1, 1
    if query.expansion is not None and line is not None:
        return query.expansion.written_place(line, column)[:2]
    return line or 1, column or 1


def type_changes(
    table: str, was: Sequence[Field], now: Sequence[Field], readers: Sequence[Query]
) -> Sequence[str]:
    """How a table has changed under plans that read it, a line a column, with the readers' files.

    Args:
        table: Its name.
        was: Its columns when the readers were planned.
        now: Its columns by the plan of the query that makes it.
        readers: The queries that read it.
    """
    where = ", ".join(reader.source for reader in readers)
    today = {field.name.lower(): field for field in now}
    lines: list[str] = []
    for field in was:
        found = today.get(field.name.lower())
        if found is None:
            lines.append(f"column '{field.name}' of table '{table}' is gone; {where} read(s) it")
        elif found.dtype != field.dtype:
            lines.append(
                f"column '{field.name}' of table '{table}' was {field.dtype} and is "
                f"{found.dtype}; {where} read(s) it"
            )
    return lines


def _circle(path: Sequence[Query]) -> str:
    """`graphlib` gives the circle with its first query again at the end, readers last."""
    if len(path) == 2:
        return (
            f"{path[0].source}: the query reads its own output table '{path[0].table}'; "
            "read the tables that it is made from"
        )
    steps = " ← ".join(f"{query.name} ({query.source})" for query in path)
    return f"queries depend on each other in a circle: {steps}; change one of them"
