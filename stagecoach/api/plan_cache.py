"""Plans that were made before, taken again while all that they were made from is the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagecoach.planner.catalog import Catalog, TableInfo
    from stagecoach.planner.plan.stages import StageGraph
    from stagecoach.planner.project_function import ProjectFunction

_MOST = 128


class PlanCache:
    """Keeps the plans of the queries that were planned last.

    A plan follows from its request and from what the catalog says of the tables and functions that
    the planner asks for. Each time, the catalog is asked again. Safe to use from several threads.

    Args:
        most: Plans that it keeps.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, request: Hashable, catalog: Catalog, make: Callable[[Catalog], StageGraph]
    ) -> StageGraph:
        """Return the plan of a query.

        Args:
            request: Its text, and all else that decides how it is planned but the catalog.
            catalog: Where tables and functions are looked up.
            make: Plans it with a catalog. A query that Spark has been asked about is not kept, nor
                is one that raises.
        """
        with self._lock:
            kept = self._kept.get(request)
            if kept is not None:
                self._kept.move_to_end(request)
        if kept is not None and kept.holds(catalog):
            return kept.graph
        noting = _NotingCatalog(catalog)
        graph = make(noting)
        if graph.fallback_reason is None and not noting.listed:
            with self._lock:
                self._kept[request] = _Kept(graph, noting.tables, noting.functions)
                self._kept.move_to_end(request)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        return graph


@dataclass(frozen=True)
class _Kept:
    """A plan, and what the catalog said when it was made."""

    graph: StageGraph
    tables: Mapping[str, TableInfo | None]
    functions: Mapping[str, ProjectFunction | None]

    def holds(self, catalog: Catalog) -> bool:
        """Whether the catalog says the same now."""
        return all(catalog.table(name) == info for name, info in self.tables.items()) and all(
            catalog.function(name) == found for name, found in self.functions.items()
        )


class _NotingCatalog:
    """A catalog that notes what it was asked for."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.tables: dict[str, TableInfo | None] = {}
        self.functions: dict[str, ProjectFunction | None] = {}
        self.listed = False

    def table(self, name: str) -> TableInfo | None:
        """The table of that name, or None."""
        return self.tables.setdefault(name, self._catalog.table(name))

    def table_names(self) -> Sequence[str]:
        """All names."""
        self.listed = True
        return self._catalog.table_names()

    def function(self, name: str) -> ProjectFunction | None:
        """The function of that name, or None."""
        return self.functions.setdefault(name, self._catalog.function(name))

    def function_names(self) -> Sequence[str]:
        """The names of all functions."""
        self.listed = True
        return self._catalog.function_names()
