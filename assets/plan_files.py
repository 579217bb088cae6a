"""Files of compiled plans: in, a query and a catalog; out, a stage graph that can be committed.

A file holds the graph and a few notes on how it came to be. It is *stale* when what it was made of
is not what is there now: the SQL, the columns of its tables, the options, the planner. Statistics
are no such thing: they move with every load of data, and a plan stays right whatever they are. So a
plan that would be another one because of them alone is reported, and stale only if that is asked.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlglot import exp

from assets.planning import planner_of
from assets.project import Query
from planner.catalog import Catalog, TableInfo
from planner.errors import AnalysisError, GraphFormatError
from planner.options import PlannerOptions
from planner.parse import parse_query, position
from planner.serde import compiled_notes, dump_graph, load_graph
from planner.stages import FORMAT_VERSION, PLANNER_VERSION, StageGraph

SUFFIX = ".json"
Status = Literal["fresh", "stale", "missing", "would change"]


@dataclass(frozen=True, kw_only=True)
class CompiledPlan:
    """A plan and how it came to be.

    Args:
        graph: The plan.
        notes: The options that it was made with, and a hash of each table's statistics.
    """

    graph: StageGraph
    notes: Mapping[str, Any]

    def to_text(self) -> str:
        """The file's text, the same for the same plan and notes."""
        return dump_graph(self.graph, indent=1, compiled=self.notes) + "\n"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check found of one plan.

    Args:
        status: `would change`: it is fresh, but with today's statistics it would be another plan.
        reasons: Why it is not fresh, most telling first.
    """

    status: Status
    reasons: tuple[str, ...] = ()


def plan_file(folder: Path, query: Query) -> Path:
    """Where the plan of a query, or of the query of a check, is."""
    return folder / f"{query.name}{SUFFIX}"


def compile_query(query: Query, catalog: Catalog, options: PlannerOptions) -> CompiledPlan:
    """The compiled plan of a query, whose parameters its front matter declares.

    Raises:
        SqlError: A mistake in the SQL.
        ParameterError: The SQL has a parameter without a declared type.
        CatalogError: A table cannot be read.
    """
    _check_declared(query)
    graph = planner_of(options)(query, catalog)
    tables = {t: _statistics(catalog.table(t)) for t, _ in graph.tables}
    notes = {"options": options.texts(), "statistics": tables}
    return CompiledPlan(graph=graph, notes=notes)


def read_plan(path: Path) -> CompiledPlan:
    """The plan of a file.

    Raises:
        GraphFormatError: It is no plan, or not one that this version can run.
    """
    try:
        text = path.read_text(encoding="utf-8")
        graph = load_graph(text)
    except UnicodeDecodeError as error:
        raise GraphFormatError(f"{path} is no text ({error.reason})") from error
    except OSError as error:
        raise GraphFormatError(f"cannot read {path}: {error.strerror or error}") from error
    except GraphFormatError as error:
        raise GraphFormatError(f"{path}: {error}") from error
    if graph.planner_version > PLANNER_VERSION:
        raise GraphFormatError(
            f"{path}: planner version {graph.planner_version} made the plan, this is "
            f"{PLANNER_VERSION}; use a newer Stagecoach, or compile the query again"
        )
    return CompiledPlan(graph=graph, notes=compiled_notes(text))


def check_plan(path: Path, now: CompiledPlan, catalog: Catalog, options: PlannerOptions) -> Finding:
    """Whether the plan in a file is that of a query.

    Args:
        path: The file.
        now: The query's plan as it is made now.
        catalog: The tables as they are now.
        options: What it is planned with now.

    Raises:
        CatalogError: A table cannot be read.
    """
    if not path.exists():
        return Finding(status="missing", reasons=("the query is not compiled",))
    try:
        plan = read_plan(path)
    except GraphFormatError as error:
        return Finding(status="stale", reasons=(str(error),))
    if reasons := tuple(_stale_reasons(path, plan, now.graph, catalog, options)):
        return Finding(status="stale", reasons=reasons)
    if now.graph.plan_hash == plan.graph.plan_hash:
        return Finding(status="fresh")
    change = plan_change(plan.graph, now.graph)
    if now.notes["statistics"] == plan.notes.get("statistics"):
        return Finding(status="stale", reasons=(f"the planner plans it otherwise now: {change}",))
    return Finding(status="would change", reasons=(f"the statistics have moved: {change}",))


def plan_change(old: StageGraph, new: StageGraph) -> str:
    """What differs between two plans of a query, in a few words."""
    if old.fallback_reason != new.fallback_reason:
        before, now = (g.fallback_reason or "staged" for g in (old, new))
        return f"{before} → {now}"
    counts = [len(old.stages), len(new.stages)]
    if counts[0] != counts[1]:
        return f"{counts[0]} → {counts[1]} stages"
    changed = [
        (a, b) for a, b in zip(old.stages, new.stages, strict=True) if a.plan_hash != b.plan_hash
    ]
    if not changed:
        return "its stages read one another otherwise"
    first, second = changed[0]
    words = f"stage {first.stage_id}"
    if first.engine != second.engine:
        return f"{words} on {second.engine} instead of {first.engine}"
    if first.title != second.title:
        return f"{words}: {first.title} → {second.title}"
    if first.output.num_partitions != second.output.num_partitions:
        partitions = f"{first.output.num_partitions} → {second.output.num_partitions}"
        return f"{words}: {partitions} partitions"
    return f"{words}: its operators"


# ---------------------------------------------------------------- what makes a plan stale


def _stale_reasons(
    path: Path,
    plan: CompiledPlan,
    now: StageGraph,
    catalog: Catalog,
    options: PlannerOptions,
) -> Iterator[str]:
    graph = plan.graph
    if graph.query != now.query:
        yield f"it is the plan of the query '{graph.query}', not '{now.query}'"
    if graph.sql != now.sql:
        yield f"the SQL has changed, first in line {_first_difference(graph.sql, now.sql)}"
    for table, columns in graph.tables:
        info = catalog.table(table)
        if info is None:
            yield f"table '{table}' is not in the catalog any more"
            continue
        was = {f.name: str(f.dtype) for f in columns}
        yield from _column_changes(table, was, {f.name: str(f.dtype) for f in info.columns})
    yield from _option_changes(plan.notes.get("options"), options)
    if graph.planner_version != PLANNER_VERSION:
        yield f"planner version {graph.planner_version} made it, this is {PLANNER_VERSION}"
    if (version := _format_version(path)) != FORMAT_VERSION:
        yield f"it is written in format version {version}, this Stagecoach writes {FORMAT_VERSION}"


def _column_changes(table: str, was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name, dtype in was.items():
        if name not in now:
            yield f"column '{name}' of table '{table}' is gone"
        elif now[name] != dtype:
            yield f"column '{name}' of table '{table}' was {dtype} and is {now[name]}"
    for name in now:
        if name not in was:
            yield f"column '{name}' of table '{table}' is new"
    if list(was) != list(now) and was == now:
        yield f"the columns of table '{table}' are in another order"


def _option_changes(was: object, options: PlannerOptions) -> Iterator[str]:
    now = options.texts()
    if not isinstance(was, Mapping):
        yield "it does not tell the options that it was made with"
        return
    for name in sorted({*was, *now}):
        before, after = was.get(name), now.get(name)
        # An option that came later had its default then.
        if before is None and after == type(options)().texts()[name]:
            continue
        if before != after:
            yield f"planner.{name} was {before} and is {after}"


def _statistics(info: TableInfo | None) -> str:
    """A hash of all that the planner knows of a table besides its columns."""
    known = "" if info is None else repr(dataclasses.replace(info, columns=()))
    return hashlib.sha256(known.encode()).hexdigest()[:16]


def _format_version(path: Path) -> int:
    return int(json.loads(path.read_text(encoding="utf-8"))["format_version"])


def _first_difference(old: str, new: str) -> int:
    lines = zip(old.splitlines(), new.splitlines(), strict=False)
    same = next((i for i, (a, b) in enumerate(lines) if a != b), None)
    return (min(len(old.splitlines()), len(new.splitlines())) if same is None else same) + 1


def _check_declared(query: Query) -> None:
    declared = query.front_matter.parameter_types
    for placeholder in parse_query(query.sql).find_all(exp.Placeholder):
        if placeholder.name and placeholder.name not in declared:
            line, column = position(placeholder)
            raise AnalysisError(
                f"parameter '{placeholder.name}' has no declared type; a compiled query declares "
                "its parameters in its front matter",
                line=line,
                column=column,
            )
