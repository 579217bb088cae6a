"""Selectors: which queries of a project a command is about.

    revenue          the query of this name, or that makes the table of this name; * and ? match
    revenue+         it and all that read it, directly or not
    +revenue         it and all that it reads
    orders+          what reads the table `orders`, of the catalog
    tag:finance      queries with the tag `finance`; `tag:team=sales` with this value
    state:modified   queries that differ from their compiled plans
    a b, or twice    the queries of both selectors
    a,b              the queries that both select

The order of the project's queries (`dependencies`) says what reads what.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stagecoach.assets.project.dependencies import QueryOrder
from stagecoach.assets.project.names import did_you_mean
from stagecoach.assets.project.queries import ProjectError, Query

MODIFIED = "modified"
_METHODS = ("tag", "state")
_SELECTOR = re.compile(r"(?P<up>\+?)(?:(?P<method>\w+):)?(?P<value>[^+:,\s]+)(?P<down>\+?)")


class SelectorError(ProjectError):
    """A selector cannot be read, or names what the project does not have."""


@dataclass(frozen=True, kw_only=True)
class Selector:
    """One selector.

    Args:
        value: The name, tag or state.
        method: `tag` or `state`; empty for a name.
        upstream: Whether what the queries read is selected, too.
        downstream: Whether what reads them is selected, too.
    """

    value: str
    method: str = ""
    upstream: bool = False
    downstream: bool = False


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is selected of a project.

    Args:
        select: Selectors: one of these lists must select a query, and so must all in the list; all
            queries if there is none.
        exclude: Likewise, for queries that are left out.
    """

    select: tuple[tuple[Selector, ...], ...] = ()
    exclude: tuple[tuple[Selector, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.select or self.exclude)

    def queries(self, order: QueryOrder, is_modified: Callable[[Query], bool]) -> tuple[Query, ...]:
        """The queries that are selected, upstream ones first.

        Args:
            order: The queries of the project.
            is_modified: Whether a query differs from its compiled plan.

        Raises:
            SelectorError: There is no such query, table or tag.
        """
        graph = _Graph(order, is_modified)
        names = graph.union(self.select) if self.select else {q.name for q in order.queries}
        names -= graph.union(self.exclude)
        return tuple(query for query in order.queries if query.name in names)


def parse_selection(select: Iterable[str] = (), exclude: Iterable[str] = ()) -> Selection:
    """Read what a user writes behind `--select` and `--exclude`.

    Raises:
        SelectorError: A text is not a selector.
    """
    return Selection(select=_parsed(select), exclude=_parsed(exclude))


def _parsed(texts: Iterable[str]) -> tuple[tuple[Selector, ...], ...]:
    words = [word for text in texts for word in text.split()]
    return tuple(tuple(map(_selector, word.split(","))) for word in words)


def _selector(text: str) -> Selector:
    found = _SELECTOR.fullmatch(text)
    if found is None:
        raise SelectorError(
            f"'{text}' is not a selector; write a name, tag:NAME or state:modified, with + before "
            "it for what it reads and + behind it for what reads it"
        )
    method = found["method"] or ""
    if method and method not in _METHODS:
        raise SelectorError(f"'{text}': unknown method '{method}'{did_you_mean(method, _METHODS)}")
    if method == "state" and found["value"] != MODIFIED:
        state = found["value"]
        raise SelectorError(f"'{text}': unknown state '{state}'{did_you_mean(state, [MODIFIED])}")
    return Selector(
        value=found["value"],
        method=method,
        upstream=bool(found["up"]),
        downstream=bool(found["down"]),
    )


class _Graph:
    """What selectors mean in one project."""

    def __init__(self, order: QueryOrder, is_modified: Callable[[Query], bool]) -> None:
        self._order = order
        self._is_modified = is_modified

    def union(self, lists: Sequence[Sequence[Selector]]) -> set[str]:
        found: set[str] = set()
        for selectors in lists:
            found |= set.intersection(*map(self._names, selectors))
        return found

    def _names(self, selector: Selector) -> set[str]:
        """Names of the queries that one selector means."""
        match selector.method:
            case "tag":
                chosen = self._tagged(selector.value)
            case "state":
                chosen = [query for query in self._order.queries if self._is_modified(query)]
            case _:
                chosen = self._named(selector.value)
        names = {query.name for query in chosen}
        if selector.upstream:
            names |= {query.name for query in self._order.needed(chosen)}
        if selector.downstream:
            tables = {query.table.lower() for query in chosen}
            if not selector.method:
                tables |= set(self._tables(selector.value))
            names |= self._readers(tables)
        if not chosen and not selector.method and not selector.downstream:
            hint = f"to select what reads it, write '{selector.value}+'"
            raise SelectorError(f"'{selector.value}' is a table that no query makes; {hint}")
        return names

    def _named(self, pattern: str) -> list[Query]:
        found = [q for q in self._order.queries if _is_match((q.name, q.table), pattern)]
        if not found and not self._tables(pattern):
            known = [query.name for query in self._order.queries]
            suggestion = did_you_mean(pattern, [*known, *self._base_tables()])
            raise SelectorError(f"there is no query '{pattern}'{suggestion}")
        return found

    def _tagged(self, text: str) -> list[Query]:
        tag, mark, value = text.partition("=")
        found = []
        for query in self._order.queries:
            tags = {k: v for k, v in query.front_matter.tags.items() if _is_match((k,), tag)}
            if any(not mark or _is_match((v,), value) for v in tags.values()):
                found.append(query)
        if not found:
            known = {tag for query in self._order.queries for tag in query.front_matter.tags}
            known |= {
                f"{tag}={value}"
                for query in self._order.queries
                for tag, value in query.front_matter.tags.items()
                if mark
            }
            suggestion = did_you_mean(text, sorted(known), what="the tags are")
            raise SelectorError(f"no query has the tag '{text}'{suggestion}")
        return found

    def _base_tables(self) -> list[str]:
        names = [name for reads in self._order.reads.values() for name in reads]
        return sorted({name.lower() for name in names if self._order.maker(name) is None})

    def _tables(self, pattern: str) -> list[str]:
        """Tables of the catalog that queries read, in lower case."""
        return [name for name in self._base_tables() if _is_match((name,), pattern)]

    def _readers(self, tables: set[str]) -> set[str]:
        """Names of the queries that read some tables, directly or not."""
        found: set[str] = set()
        for query in self._order.queries:
            if {name.lower() for name in self._order.reads.get(query.name, ())} & tables:
                found.add(query.name)
                tables.add(query.table.lower())
        return found


def _is_match(names: Iterable[str], pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in names)
