"""Whether a compiled plan is still the plan of its query.

A plan is *stale* when the SQL, the columns of its tables, the options or the planner have changed.
Statistics do not count: they move with every load of data, and a plan stays right whatever they
are. So a plan that would differ because of them alone is reported, and stale only on request.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from stagecoach.assets.plans.files import CompiledPlan, plan_file, read_plan
from stagecoach.assets.project.queries import Query
from stagecoach.planner.catalog import Catalog
from stagecoach.planner.errors import GraphFormatError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import FORMAT_VERSION, PLANNER_VERSION, StageGraph
from stagecoach.planner.project_function import ProjectFunction

Status = Literal["fresh", "stale", "missing", "would change"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check found of one plan.

    Args:
        status: `would change`: it is fresh, but with today's statistics it would be another plan.
        reasons: Why it is not fresh, most telling first; why `compile` writes it again.
    """

    status: Status
    reasons: tuple[str, ...] = ()

    @property
    def is_as_written(self) -> bool:
        """Whether `compile` would write the same file, but for estimates."""
        return self.status == "fresh" and not self.reasons


def check_plan(
    path: Path,
    now: CompiledPlan,
    catalog: Catalog,
    options: PlannerOptions,
    macros: Sequence[str] = (),
) -> Finding:
    """Whether the plan in a file is that of a query.

    Args:
        path: The file.
        now: The query's plan as it is made now.
        catalog: The tables as they are now.
        options: What it is planned with now.
        macros: Names of the macros that the query uses.

    Raises:
        CatalogError: A table cannot be read.
    """
    if not path.exists():
        return Finding(status="missing", reasons=("the query is not compiled",))
    try:
        plan = read_plan(path)
    except GraphFormatError as error:
        return Finding(status="stale", reasons=(str(error),))
    if reasons := tuple(_stale_reasons(path, plan, now.graph, catalog, options, macros)):
        return Finding(status="stale", reasons=reasons)
    if now.graph.plan_hash == plan.graph.plan_hash:
        return Finding(status="fresh", reasons=tuple(_text_changes(plan, now)))
    change = plan_change(plan.graph, now.graph)
    if now.notes["statistics"] == plan.notes.get("statistics"):
        return Finding(
            status="stale", reasons=(f"the planner makes a different plan now: {change}",)
        )
    return Finding(status="would change", reasons=(f"the statistics have changed: {change}",))


def is_modified(plans: Path, query: Query) -> bool:
    """Whether a query differs from its compiled plan, or has none; no table is looked at.

    Args:
        plans: Folder of the plans.
        query: The query.
    """
    try:
        graph = read_plan(plan_file(plans, query), later=True).graph
    except GraphFormatError:
        return True
    return (graph.query, graph.sql) != (query.name, query.sql)


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
        return "its stages have other inputs"
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


def _text_changes(plan: CompiledPlan, now: CompiledPlan) -> Iterator[str]:
    """Why the texts of a plan that is fresh are to be written again."""
    if plan.graph.result and not now.graph.result:
        return  # Spark told its columns then, and was not asked now
    if now.graph.result != plan.graph.result:
        yield "the columns of its result are known now"
    if now.shown is None:
        return
    if plan.shown is None:
        yield "it lacks what Dagster shows of it, or was changed by hand"
        return
    # With other statistics estimates may differ, which make no plan stale.
    same = plan.notes.get("statistics") == now.notes["statistics"]
    if same and plan.shown.to_json() != now.shown.to_json():
        yield "Dagster shows it differently now"


def _stale_reasons(
    path: Path,
    plan: CompiledPlan,
    now: StageGraph,
    catalog: Catalog,
    options: PlannerOptions,
    macros: Sequence[str],
) -> Iterator[str]:
    graph = plan.graph
    if graph.query != now.query:
        yield f"it is the plan of the query '{graph.query}', not '{now.query}'"
    if graph.sql != now.sql:
        what = f"the SQL, or a macro that it uses ({', '.join(macros)})," if macros else "the SQL"
        yield f"{what} has changed, first in line {_first_difference(graph.sql, now.sql)}"
    for table, columns in graph.tables:
        info = catalog.table(table)
        if info is None:
            yield f"table '{table}' is no longer in the catalog"
            continue
        was = {f.name: str(f.dtype) for f in columns}
        yield from _column_changes(table, was, {f.name: str(f.dtype) for f in info.columns})
    yield from _function_changes(graph.functions, now.functions)
    yield from _option_changes(plan.notes.get("options"), options)
    if graph.planner_version != PLANNER_VERSION:
        yield f"planner version {graph.planner_version} made it; this is version {PLANNER_VERSION}"
    if (version := _format_version(path)) != FORMAT_VERSION:
        yield f"it has format version {version}; this Stagecoach writes version {FORMAT_VERSION}"


def _function_changes(
    was: Sequence[ProjectFunction], now: Sequence[ProjectFunction]
) -> Iterator[str]:
    before, after = ({function.name: function for function in found} for found in (was, now))
    for name, function in before.items():
        if name not in after:
            yield f"function '{name}' is no longer in the catalog"
        elif function != after[name]:
            is_code = replace(function, code="") == replace(after[name], code="")
            yield f"the {'code' if is_code else 'declaration'} of function '{name}' has changed"


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
        yield "it lacks the options that it was made with"
        return
    for name in sorted({*was, *now}):
        before, after = was.get(name), now.get(name)
        # An option that came later had its default then.
        if before is None and after == type(options)().texts()[name]:
            continue
        if before != after:
            yield f"planner.{name} was {before} and is {after}"


def _format_version(path: Path) -> int:
    return int(json.loads(path.read_text(encoding="utf-8"))["format_version"])


def _first_difference(old: str, new: str) -> int:
    lines = zip(old.splitlines(), new.splitlines(), strict=False)
    same = next((i for i, (a, b) in enumerate(lines) if a != b), None)
    return (min(len(old.splitlines()), len(new.splitlines())) if same is None else same) + 1
