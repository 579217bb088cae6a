"""Files of compiled plans, which can be committed to version control.

A file holds the graph, a few notes on how it came to be, and what Dagster shows of it:

    checksum: of all of the text
    compiled: options, statistics
              shown: texts, hashes, lineage
              reads: what each stage reads; a hash of the lines that follow
    graph:    what runs go by

With the last two a code location decodes no operator before a run needs it. They are taken for true
where the graph is the one they were made of, by its hash; else they are made of the graph.

It is *stale* when what it was made of is not what is there now: the SQL, the columns of its tables,
the options, the planner. Statistics do not count: they move with every load of data, and a
plan stays right whatever they are. So a plan that would be another one because of them alone is
reported, and stale only if that is asked.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagecoach.assets.plans.planner import planner_of
from stagecoach.assets.plans.shown import VERSION as SHOWN_VERSION
from stagecoach.assets.plans.shown import ShownPlan
from stagecoach.assets.project.queries import Query
from stagecoach.planner.catalog import Catalog, TableInfo
from stagecoach.planner.errors import AnalysisError, GraphFormatError, PlanningTimeoutError
from stagecoach.planner.limits.deadline import is_timeout
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.serde import (
    NO_CHECKSUM,
    GraphFile,
    StageReads,
    decode_graph,
    decode_later,
    dump_graph,
    parse_file,
    seal,
)
from stagecoach.planner.plan.stages import FORMAT_VERSION, PLANNER_VERSION, StageGraph
from stagecoach.planner.syntax.parse import read_query

if TYPE_CHECKING:
    from stagecoach.planner.arbiter import Arbiter

SUFFIX = ".json"

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
        shown: What Dagster shows of it; None for one that is not an asset.
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


def plan_file(folder: Path, query: Query) -> Path:
    """Where the plan of a query, or of the query of a check, is."""
    return folder / f"{query.name}{SUFFIX}"


def compile_query(
    query: Query,
    catalog: Catalog,
    options: PlannerOptions,
    *,
    is_asset: bool = True,
    arbiter: "Arbiter | None" = None,
) -> CompiledPlan:
    """The compiled plan of a query, whose parameters its front matter declares.

    Args:
        query: The query.
        catalog: Its tables.
        options: What it is planned with.
        is_asset: Whether its stages are assets, as those of a check's query are not.
        arbiter: Is asked about a query that the planner cannot stage.

    Raises:
        SqlError: A mistake in the SQL.
        ParameterError: The SQL has a parameter without a declared type.
        CatalogError: A table cannot be read.
        PlanningTimeoutError: Planning took longer than `planner.timeout_seconds`.
    """
    _check_declared(query)
    graph = planner_of(options, arbiter)(query, catalog)
    if is_timeout(graph.fallback_reason):
        # A file would keep this plan for good; a faster machine may make a better one.
        raise PlanningTimeoutError(f"query '{query.name}': {graph.fallback_reason}")
    tables = {t: _statistics(catalog.table(t)) for t, _ in graph.tables}
    planned_with = query.front_matter.planned_with(options)
    notes = {"options": planned_with.texts(), "statistics": tables}
    return CompiledPlan(graph=graph, notes=notes, shown=ShownPlan(graph) if is_asset else None)


def read_plan(path: Path, *, later: bool = False) -> CompiledPlan:
    """The plan of a file.

    Args:
        path: The file.
        later: Whether its operators may be decoded later, when they are asked for.

    Raises:
        GraphFormatError: It is not a plan, or this version cannot run it.
    """
    try:
        plan = parse_plan(path.read_text(encoding="utf-8"), later=later)
    except UnicodeDecodeError as error:
        raise GraphFormatError(f"{path} is not a text file ({error.reason})") from error
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
        GraphFormatError: It is not a plan.
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


def _statistics(info: TableInfo | None) -> str:
    """A hash of all that the planner knows of a table besides its columns."""
    known = "" if info is None else repr(dataclasses.replace(info, columns=()))
    return hashlib.sha256(known.encode()).hexdigest()[:16]


def _check_declared(query: Query) -> None:
    declared = query.front_matter.parameter_types
    with query.places():
        for name, (line, column) in read_query(query.sql).parameters.items():
            if name not in declared:
                raise AnalysisError(
                    f"parameter '{name}' has no declared type; a compiled query declares "
                    "its parameters in its front matter",
                    line=line,
                    column=column,
                )
