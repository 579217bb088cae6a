"""Files of compiled plans: in, a query and a catalog; out, a stage graph that can be committed.

A file holds the graph, a few notes on how it came to be, and what Dagster shows of it:

    checksum: of all of the text
    compiled: options, statistics
              shown: texts, hashes, lineage
              reads: what each stage reads; a hash of the lines that follow
    graph:    what runs go by

With the last two a code location decodes no operator before a run needs it. They are taken for true
where the graph is the one they were made of, by its hash; else they are made of the graph.

It is *stale* when what it was made of is not what is there now: the SQL, the columns of its tables,
the options, the planner. Statistics are no such thing: they move with every load of data, and a
plan stays right whatever they are. So a plan that would be another one because of them alone is
reported, and stale only if that is asked.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlglot import exp

from assets.planning import planner_of
from assets.project import Query
from assets.shown import VERSION as SHOWN_VERSION
from assets.shown import ShownPlan
from planner.catalog import Catalog, TableInfo
from planner.deadline import is_timeout
from planner.errors import AnalysisError, GraphFormatError, PlanningTimeoutError
from planner.options import PlannerOptions
from planner.parse import parse_query, position
from planner.serde import (
    NO_CHECKSUM,
    GraphFile,
    StageReads,
    decode_graph,
    decode_later,
    dump_graph,
    parse_file,
    seal,
)
from planner.stages import FORMAT_VERSION, PLANNER_VERSION, StageGraph

SUFFIX = ".json"
Status = Literal["fresh", "stale", "missing", "would change"]

_SHOWN, _READS = "shown", "reads"
# A key of the file itself: in a text, a line end would be written otherwise.
_GRAPH = '\n "graph": '
_END = "\n}"


@dataclass(frozen=True, kw_only=True)
class CompiledPlan:
    """A plan and how it came to be.

    Args:
        graph: The plan.
        notes: The options that it was made with, and a hash of each table's statistics.
        shown: What Dagster shows of it; None for one that is no asset.
    """

    graph: StageGraph
    notes: Mapping[str, Any]
    shown: ShownPlan | None = None

    def to_text(self) -> str:
        """The file's text, the same for the same plan and notes."""
        graph = dump_graph(self.graph, indent=1)
        notes = dict(self.notes)
        notes[_READS] = {
            "graph_sha256": _digest(graph),
            "stages": [{"inputs": s.inputs, "tables": s.tables} for s in self.graph.stages],
        }
        if self.shown is not None:
            notes[_SHOWN] = self.shown.to_json()
        body = {"checksum": NO_CHECKSUM, "compiled": notes}
        head = json.dumps(body, sort_keys=True, indent=1, ensure_ascii=False)
        # Two objects as one, whose keys are in order: as `dump_graph` would write them at once. The
        # checksum, which the first line of each has, is that of both.
        _, _, rest = graph.split("\n", 2)
        return seal(f"{head.removesuffix(_END)},\n{rest}\n")


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


def plan_file(folder: Path, query: Query) -> Path:
    """Where the plan of a query, or of the query of a check, is."""
    return folder / f"{query.name}{SUFFIX}"


def compile_query(
    query: Query, catalog: Catalog, options: PlannerOptions, *, is_asset: bool = True
) -> CompiledPlan:
    """The compiled plan of a query, whose parameters its front matter declares.

    Args:
        query: The query.
        catalog: Its tables.
        options: What it is planned with.
        is_asset: Whether its stages are assets, as those of a check's query are not.

    Raises:
        SqlError: A mistake in the SQL.
        ParameterError: The SQL has a parameter without a declared type.
        CatalogError: A table cannot be read.
        PlanningTimeoutError: Planning took longer than `planner.timeout_seconds`.
    """
    _check_declared(query)
    graph = planner_of(options)(query, catalog)
    if is_timeout(graph.fallback_reason):
        # A file would keep this plan for good; a faster machine may make a better one.
        raise PlanningTimeoutError(f"query '{query.name}': {graph.fallback_reason}")
    tables = {t: _statistics(catalog.table(t)) for t, _ in graph.tables}
    notes = {"options": options.texts(), "statistics": tables}
    return CompiledPlan(graph=graph, notes=notes, shown=ShownPlan(graph) if is_asset else None)


def read_plan(path: Path, *, later: bool = False) -> CompiledPlan:
    """The plan of a file.

    Args:
        path: The file.
        later: Whether its operators may be decoded later, when they are asked for.

    Raises:
        GraphFormatError: It is no plan, or not one that this version can run.
    """
    try:
        plan = parse_plan(path.read_text(encoding="utf-8"), later=later)
    except UnicodeDecodeError as error:
        raise GraphFormatError(f"{path} is no text ({error.reason})") from error
    except OSError as error:
        raise GraphFormatError(f"cannot read {path}: {error.strerror or error}") from error
    except GraphFormatError as error:
        raise GraphFormatError(f"{path}: {error}") from error
    if plan.graph.planner_version > PLANNER_VERSION:
        raise GraphFormatError(
            f"{path}: planner version {plan.graph.planner_version} made the plan, this is "
            f"{PLANNER_VERSION}; use a newer Stagecoach, or compile the query again"
        )
    return plan


def parse_plan(text: str, *, later: bool = False) -> CompiledPlan:
    """The plan of a file's text; see `read_plan`.

    Raises:
        GraphFormatError: It is no plan.
    """
    file = parse_file(text)
    notes = dict(file.compiled)
    reads, shown = notes.pop(_READS, None), notes.pop(_SHOWN, None)
    if not _is_of(reads, file):
        return CompiledPlan(graph=decode_graph(file), notes=notes)
    graph = decode_later(file, _stage_reads(reads)) if later else decode_graph(file)
    is_known = isinstance(shown, dict) and shown.get("version") == SHOWN_VERSION
    return CompiledPlan(
        graph=graph, notes=notes, shown=ShownPlan(graph, shown) if is_known else None
    )


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
        return Finding(status="fresh", reasons=tuple(_text_changes(plan, now)))
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


# ---------------------------------------------------------------- what is kept beside a graph


def _digest(text: str) -> str:
    """A hash of the lines of the graph in the text of a file."""
    _, mark, graph = text.partition(_GRAPH)
    return hashlib.sha256(graph.encode()).hexdigest() if mark else ""


def _is_of(reads: object, file: GraphFile) -> bool:
    """Whether what is beside the graph in a file was made of this graph, by this version.

    It is not where the file was edited or merged.
    """
    return (
        isinstance(reads, Mapping)
        and isinstance(file.graph, dict)
        and file.version == FORMAT_VERSION
        and file.graph.get("planner_version") == PLANNER_VERSION
        and reads.get("graph_sha256") == _digest(file.text.removesuffix("\n"))
    )


def _stage_reads(reads: Mapping[str, Any]) -> Sequence[StageReads]:
    return [StageReads(tuple(s["inputs"]), tuple(s["tables"])) for s in reads["stages"]]


def _text_changes(plan: CompiledPlan, now: CompiledPlan) -> Iterator[str]:
    """Why the texts of a plan that is fresh are to be written again."""
    if now.shown is None:
        return
    if plan.shown is None:
        yield "it lacks what Dagster shows of it, or was changed by hand"
        return
    # With other statistics estimates may differ, which make no plan stale.
    same = plan.notes.get("statistics") == now.notes["statistics"]
    if same and plan.shown.to_json() != now.shown.to_json():
        yield "Dagster shows it otherwise now"


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
