"""What Dagster shows of a plan: texts, hashes and the origin of each column.

All of it follows from the plan, but takes longer to make than all else that a code location does
with one. So it is kept in the plan's file (`assets.plan_files`), and a location is loaded without
decoding a single operator. What makes it is imported when it is needed: it brings in most of the
planner, which takes a third as long as Dagster.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from stagecoach.assets.project.queries import Query
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.lineage.model import Source, StageColumn, TableColumn
from stagecoach.planner.plan.stages import StageGraph

if TYPE_CHECKING:
    from stagecoach.planner.lineage import Lineage, QueryLineage

VERSION = 1
"""Of the form of what is kept; what has another one is made anew."""


@dataclass(frozen=True)
class ShownColumn:
    """A column of a stage, and the columns of its inputs that its values come from, in order."""

    name: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, kw_only=True)
class ShownStage:
    """What is shown of a stage.

    Args:
        plan_hash: As `Stage.plan_hash`.
        plan: Its operators, a line each; empty where it is the query handed to Spark.
        sql: What its engine runs, likewise.
        columns: Its columns; None where it is unknown what they come from.
    """

    plan_hash: str
    plan: str
    sql: str
    columns: tuple[ShownColumn, ...] | None


class ShownPlan:
    """What is shown of a plan, made when it is asked for, or read from what was kept of it.

    Args:
        graph: The plan.
        kept: What `to_json` gave for this plan.
    """

    def __init__(self, graph: StageGraph, kept: Mapping[str, Any] | None = None) -> None:
        self._graph = graph
        self._kept = kept
        self._stages: dict[int, ShownStage] = {}

    @cached_property
    def plan(self) -> str:
        """The drawing of the stages."""
        if self._kept is not None:
            return _text(self._kept["plan"])
        from stagecoach.planner.explain.display import render_graph

        return render_graph(self._graph)

    @cached_property
    def lineage(self) -> str:
        """Markdown: the base columns that those of the result come from."""
        if self._kept is not None:
            return _text(self._kept["lineage"])
        from stagecoach.planner.explain.lineage import lineage_markdown

        return lineage_markdown(self._lineage.result)

    def stage(self, stage_id: int) -> ShownStage:
        """What is shown of a stage."""
        if stage_id not in self._stages:
            self._stages[stage_id] = (
                self._made(stage_id)
                if self._kept is None
                else _stage_from_json(self._kept["stages"][stage_id])
            )
        return self._stages[stage_id]

    @cached_property
    def plan_hash(self) -> str:
        """Hash of all stages; as `StageGraph.plan_hash`, it needs no operators if it was kept."""
        hashes = [self.stage(stage.stage_id).plan_hash for stage in self._graph.stages]
        return hashlib.sha256("\n".join([*hashes, self._graph.time_zone]).encode()).hexdigest()

    @cached_property
    def base_columns(self) -> tuple[ShownColumn, ...] | None:
        """The result's columns, and the columns of tables that they come from; None if unknown."""
        found: dict[int, Sequence[tuple[Source, ...]]] = {}
        for stage in self._graph.stages:  # a stage comes after those that it reads
            columns = self.stage(stage.stage_id).columns
            if columns is None:
                return None
            found[stage.stage_id] = [
                tuple(
                    dict.fromkeys(
                        base
                        for source in column.sources
                        for base in (
                            (source,)
                            if isinstance(source, TableColumn)
                            else found[source.stage_id][source.position]
                        )
                    )
                )
                for column in columns
            ]
        head = self._graph.head.stage_id
        names = self.stage(head).columns or ()
        return tuple(
            ShownColumn(column.name, sources)
            for column, sources in zip(names, found[head], strict=True)
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data, texts as lists of lines, so that people can read them."""
        return {
            "version": VERSION,
            "plan": self.plan.split("\n"),
            "lineage": self.lineage.split("\n"),
            "stages": [_stage_to_json(self.stage(stage.stage_id)) for stage in self._graph.stages],
        }

    @cached_property
    def _lineage(self) -> "QueryLineage":
        from stagecoach.planner.lineage import graph_lineage

        return graph_lineage(self._graph)

    def _made(self, stage_id: int) -> ShownStage:
        from stagecoach.planner.explain.display import exchange_text
        from stagecoach.planner.explain.plan_text import plan_lines
        from stagecoach.planner.render.fragment import render_fragment

        stage = self._graph.stages[stage_id]
        plan = sql = ""
        if stage.sql is None:
            inputs = {i: exchange_text(self._graph.stages[i]) for i in stage.inputs}
            plan = "\n".join(plan_lines(stage.fragment, inputs))
            sql = render_fragment(stage, stage.engine, None)
        columns = _columns(self._lineage.stages[stage_id])
        return ShownStage(plan_hash=stage.plan_hash, plan=plan, sql=sql, columns=columns)


@runtime_checkable
class ShowsPlans(Protocol):
    """A way to plan queries that keeps what is shown of their plans."""

    def shown(self, query: Query) -> ShownPlan | None:
        """What is shown of the plan that the query got last; None where that is not kept."""
        ...


def _columns(lineage: "Lineage") -> tuple[ShownColumn, ...] | None:
    from stagecoach.planner.explain.lineage import in_order

    if lineage.unknown is not None:
        return None
    return tuple(ShownColumn(c.name, tuple(in_order(c.values))) for c in lineage.columns)


def _stage_to_json(stage: ShownStage) -> dict[str, Any]:
    columns = stage.columns
    return {
        "plan_hash": stage.plan_hash,
        "plan": stage.plan.split("\n"),
        "sql": stage.sql.split("\n"),
        "columns": None
        if columns is None
        else [{"name": c.name, "from": [_source_to_json(s) for s in c.sources]} for c in columns],
    }


def _stage_from_json(data: Mapping[str, Any]) -> ShownStage:
    columns = data["columns"]
    return ShownStage(
        plan_hash=data["plan_hash"],
        plan=_text(data["plan"]),
        sql=_text(data["sql"]),
        columns=None
        if columns is None
        else tuple(
            ShownColumn(c["name"], tuple(_source_from_json(s) for s in c["from"])) for c in columns
        ),
    )


def _source_to_json(source: Source) -> list[str | int]:
    if isinstance(source, TableColumn):
        return [source.table, source.column]
    return [source.stage_id, source.position]


def _source_from_json(data: Sequence[Any]) -> Source:
    of, column = data
    return StageColumn(of, column) if isinstance(of, int) else TableColumn(of, column)


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines)
