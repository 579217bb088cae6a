"""Plans that are kept in the storage, so that every process sees the same stages.

A run is launched for the assets that the web server knows, in a process that loads the code
location again. Were the query planned anew there, over data that has grown meanwhile, its stages
could be others, and the run would ask for assets that do not exist. So a plan is kept in the
storage root, and used as long as the SQL, the options, the planner, the functions of the project
and the columns of the tables are the same and no table has grown or shrunk about tenfold:

    plans/<query>/<key>.json

A query that cannot be planned within `planner.timeout_seconds` is one Spark stage. That plan is
kept for the rest of the day (UTC) and for that timeout only, so that all processes have the same
assets and a faster machine may make a better plan tomorrow.

A table whose columns are declared may have no data yet. The run that makes its data must find the
same stages before and after that, and so must runs of a web server that has loaded the location
before there was data. So a plan that was made without data is used for a week, whatever data there
is meanwhile; then the query is planned for the sizes of its tables.

A kept plan that cannot be read costs time, nothing else. One that is used is written again once a
day, so that gc, which removes what is old, takes none that is in use.
"""

import datetime
import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace

from stagecoach.assets.plans.files import CompiledPlan, parse_plan
from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.plans.shown import ShownPlan
from stagecoach.assets.project.dependencies import functions_named, tables_read
from stagecoach.assets.project.queries import Query, name_problem
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.planner.catalog import Catalog, TableInfo
from stagecoach.planner.errors import GraphFormatError
from stagecoach.planner.limits.deadline import is_timeout
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import FORMAT_VERSION, PLANNER_VERSION, StageGraph

logger = logging.getLogger(__name__)

_BITS_OF_A_MAGNITUDE = 3
_USED = "used"  # the note that tells the day
_WITHOUT_DATA = "without data"  # the note that tells the day of a plan that was made so
_DAYS_WITHOUT_DATA = 7


class PinnedPlans:
    """Plans queries, and keeps the plans; a `PlanQuery`.

    Args:
        plan: How a query is planned that has no plan yet.
        store: Where plans are kept.
        options: What they are planned with.
        day: Today as `YYYY-MM-DD`; by this machine's clock if left out.
    """

    def __init__(
        self, plan: PlanQuery, store: ObjectStore, options: PlannerOptions, *, day: str = ""
    ) -> None:
        self._plan = plan
        self._store = store
        self._options = options
        self._day = day or datetime.datetime.now(datetime.UTC).date().isoformat()
        self._shown: dict[tuple[str, str], ShownPlan | None] = {}

    def __call__(self, query: Query, catalog: Catalog) -> StageGraph:
        """The query's plan: the kept one where it still fits, else a new one.

        Raises:
            StagecoachError: As planning does.
        """
        key = self.key(query, catalog)
        place, late = (layout.pinned_plan(query.name, k) for k in (key, self._late_key(key)))
        early, has_data = self._early_place(query, catalog)
        plan = None if early is None else self._read_early(early)
        plan = plan or self._read(place) or self._read(late)
        notes = {}
        if early is not None and (not has_data or (plan and _WITHOUT_DATA in plan.notes)):
            place, notes = early, {_WITHOUT_DATA: self._day}
        if plan is None or plan.graph.sql != query.sql:
            graph = self._plan(query, catalog)
            if is_timeout(graph.fallback_reason):
                logger.warning(
                    "the query '%s' is one Spark stage until tomorrow: %s",
                    query.name,
                    graph.fallback_reason,
                )
                place = late
            # The queries of checks, which are not assets, have names that no asset can have.
            shown = ShownPlan(graph) if name_problem(query.name) is None else None
            plan = CompiledPlan(graph=graph, notes=notes, shown=shown)
            if (problem := self._write(place, plan)) is not None:
                logger.warning("the plan of '%s' cannot be kept: %s", query.name, problem)
        elif plan.notes.get(_USED) != self._day and (problem := self._write(place, plan)):
            logger.debug("the plan of '%s' cannot be written again: %s", query.name, problem)
        self._shown[query.name, query.sql] = plan.shown
        return plan.graph

    def _early_place(self, query: Query, catalog: Catalog) -> tuple[str | None, bool]:
        """Where a plan is that was made before there was data, and whether there is some now.

        None for a query over no table that is known without data.
        """
        tables = [catalog.table(name) for name in tables_read(query.sql)]
        declared = [table for table in tables if table is not None and table.is_declared]
        if not declared:
            return None, True
        parts = [self.key(query, catalog, with_data=False), _WITHOUT_DATA]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
        has_data = all(table.stats is not None for table in declared)
        return layout.pinned_plan(query.name, key), has_data

    def _late_key(self, key: str) -> str:
        """The key of a plan that could not be made in time.

        All processes of today find the same one. Tomorrow, or with another timeout, the query is
        planned again.
        """
        parts = [key, self._options.timeout_seconds, self._day]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def shown(self, query: Query) -> ShownPlan | None:
        """What is shown of the query's plan; see `ShowsPlans`."""
        return self._shown.get((query.name, query.sql))

    def key(self, query: Query, catalog: Catalog, *, with_data: bool = True) -> str:
        """A hash of what the plan depends on, tables by columns and by magnitude only.

        Args:
            query: The query.
            catalog: Its tables.
            with_data: Whether the data of tables counts whose columns are declared.
        """
        parts: list[object] = [
            query.sql,
            query.front_matter.planned_with(self._options).texts(),
            f"{FORMAT_VERSION} {PLANNER_VERSION}",
            *(_known(catalog.table(name), with_data) for name in sorted(tables_read(query.sql))),
            *(
                function.to_dict()
                for name in sorted(functions_named(query.sql))
                if (function := catalog.function(name)) is not None
            ),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def _write(self, place: str, plan: CompiledPlan) -> StorageError | None:
        """Keep a plan, as used today; return why that cannot be."""
        text = replace(plan, notes={**plan.notes, _USED: self._day}).to_text()
        try:
            self._store.write_bytes(place, text.encode())
        except StorageError as error:
            return error
        return None

    def _read_early(self, place: str) -> CompiledPlan | None:
        """The plan that was made before there was data, if it is to be used still."""
        plan = self._read(place)
        made = None if plan is None else plan.notes.get(_WITHOUT_DATA)
        if made is None:
            return None
        age = datetime.date.fromisoformat(self._day) - datetime.date.fromisoformat(made)
        return plan if age.days < _DAYS_WITHOUT_DATA else None

    def _read(self, place: str) -> CompiledPlan | None:
        try:
            return parse_plan(self._store.read_bytes(place).decode(), later=True)
        except ObjectMissingError:
            return None
        except (StorageError, GraphFormatError, UnicodeDecodeError) as error:
            logger.warning("the kept plan %s is planned anew: %s", place, error)
            return None


def magnitude(rows: int) -> int:
    """The size of a table in steps of eight times."""
    return rows.bit_length() // _BITS_OF_A_MAGNITUDE


def _known(table: TableInfo | None, with_data: bool) -> Sequence[str | int | None]:
    if table is None:
        return ()
    columns = " ".join(f"{field.name}:{field.dtype}" for field in table.columns)
    if table.is_declared and not with_data:
        return (table.name, columns, None, None)
    size = None if table.stats is None else magnitude(table.stats.num_rows)
    reasons = [table.native_reason, *(f"{k}: {v}" for k, v in sorted(table.spark_columns.items()))]
    return (table.name, columns, size, *reasons)
