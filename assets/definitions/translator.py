"""How a stage looks in Dagster: the one class that a user overrides to change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import dagster as dg

from stagecoach.assets.plans.comments import shown_comments
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.plans.shown import ShownColumn, ShownPlan, ShownStage
from stagecoach.assets.project.names import stage_path
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.column_names import Named, column_names
from stagecoach.assets.report.columns import column_lineage, column_schema, commented
from stagecoach.assets.report.metadata import NAMESPACE
from stagecoach.infra.formats.registry import result_format, shown_kinds
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.plan.given_parameters import RUN_BOUND_PREFIX
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.text.sizes import format_rows

MAX_SQL_CHARACTERS = 20_000
STAGE_KIND = "stage"
"""Kind of the stages that are assets and not results."""


@dataclass(frozen=True, kw_only=True)
class StageProps:
    """What a translator may look at.

    Args:
        query: The query with its front matter.
        graph: Its plan.
        stage: The stage at hand.
        makers: Head stages of the queries that make tables which this one reads, by the table's
            name in lower case; any other table is a base table.
        publishes: Whether a run publishes the query's result as a table.
        is_query: Whether the asset is the whole query, whose stages are ops; `stage` is the head.
        kept: What is shown of the plan, where it is known without looking at operators: those of a
            compiled plan are only decoded when `stage.fragment` is asked for.
        comments: What columns of the query's result mean, or come from, by name; of a head stage.
    """

    query: Query
    graph: StageGraph
    stage: Stage
    makers: "Mapping[str, StageProps]" = field(default_factory=lambda: MappingProxyType({}))
    publishes: bool = False
    is_query: bool = False
    kept: ShownPlan | None = field(default=None, repr=False, compare=False)
    comments: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls, planned: PlannedQuery, stage: Stage, makers: "Mapping[str, StageProps] | None" = None
    ) -> "StageProps":
        """What a translator sees of a stage of a planned query.

        Args:
            planned: The query.
            stage: One of its stages.
            makers: Heads of the queries whose tables it reads.
        """
        return cls(
            query=planned.query,
            graph=planned.graph,
            stage=stage,
            makers=makers or MappingProxyType({}),
            publishes=planned.publishes,
            kept=planned.shown,
            comments=shown_comments(planned) if stage is planned.graph.head else {},
        )

    @classmethod
    def head_of(cls, planned: PlannedQuery) -> "StageProps":
        """What a translator sees of the head stage."""
        return cls.of(planned, planned.graph.head)

    @property
    def is_head(self) -> bool:
        """Whether the stage makes the query's result."""
        return self.stage is self.graph.head

    @property
    def is_table(self) -> bool:
        """Whether the asset is a published table."""
        return self.is_head and self.publishes

    @cached_property
    def shown_plan(self) -> ShownPlan:
        """What is shown of the plan."""
        return ShownPlan(self.graph) if self.kept is None else self.kept

    @property
    def shown(self) -> ShownStage:
        """What is shown of the stage."""
        return self.shown_plan.stage(self.stage.stage_id)

    @property
    def plan_hash(self) -> str:
        """Hash of what the asset computes from the assets that it depends on."""
        return self.shown_plan.plan_hash if self.is_query else self.shown.plan_hash

    @property
    def columns(self) -> Sequence[ShownColumn] | None:
        """The asset's columns, with those of the assets that it depends on; None if unknown."""
        return self.shown_plan.base_columns if self.is_query else self.shown.columns


class StageTranslator:
    """Maps stages and base tables to Dagster; override a method to change one thing of all."""

    def get_asset_key(self, props: StageProps) -> dg.AssetKey:
        """`[query, "stage_<n>"]`, and `[query]` for the head. Never a hash: history would go."""
        number = None if props.is_head else props.stage.stage_id
        return dg.AssetKey(stage_path(props.query.name, number))

    def get_asset_spec(self, props: StageProps, spec: dg.AssetSpec) -> dg.AssetSpec:
        """The last word on a stage's asset, whose key must stay; see `get_asset_key`."""
        del props
        return spec

    def get_table_spec(self, table: TableInfo, spec: dg.AssetSpec) -> dg.AssetSpec | None:
        """The last word on a base table's asset; None where other definitions make it."""
        del table
        return spec

    def get_table_key(self, table: str) -> dg.AssetKey:
        """`[table]`, or a component for each part of a qualified name."""
        return dg.AssetKey(table.split("."))

    def get_group_name(self, props: StageProps) -> str | None:
        """The group in the query's front matter, by default the name of the query."""
        return props.query.front_matter.group or props.query.name

    def get_owners(self, props: StageProps) -> Sequence[str]:
        """The owners in the query's front matter."""
        return props.query.front_matter.owners

    def get_tags(self, props: StageProps) -> Mapping[str, str]:
        """The tags in the query's front matter."""
        return props.query.front_matter.tags

    def get_kinds(self, props: StageProps) -> set[str]:
        """The engine, and the format of a result; a published table says that it is one.

        A stage that is not the result says `stage`, by which the UI can leave it out. Its format is
        always the same: one icon more would leave its name less room in lists.
        """
        if not props.is_head:
            return {props.stage.engine, STAGE_KIND}
        output = props.query.front_matter.output
        formats = (
            shown_kinds(result_format(output.format_name).name) if props.is_table else {"arrow"}
        )
        return {props.stage.engine, *formats}

    def get_description(self, props: StageProps) -> str:
        """Markdown whose first line says what the stage does; of a result, what people say of it.

        Lists show as much of it as has room, on one line and without its Markdown; so what people
        say comes first, and a paragraph ends as a sentence does.
        """
        stage, graph = props.stage, props.graph
        count = len(graph.stages)
        stages = "1 stage" if count == 1 else f"{count} stages"
        parts = [stages if props.is_query else stage.title]
        if props.is_head and not props.is_query and count > 1:
            parts = [f"The last of {stages}: {stage.title}"]
        if props.is_head and (text := props.query.front_matter.description):
            parts.insert(0, text)
        if not props.is_query:
            parts.append(f"Runs on {stage.engine}: {stage.engine_reason}")
        if graph.fallback_reason:
            parts.append(f"The query is one Spark stage: {graph.fallback_reason}")
        parts = [_ended(part) for part in parts]
        if props.is_head:
            parts.append(_fenced("sql", graph.sql))
        if stage.sql is None and not props.is_query:
            parts.append(_fenced("text", props.shown.plan))
            parts.append(_fenced("sql", props.shown.sql))
        return "\n\n".join(parts)

    def get_metadata(self, props: StageProps) -> Mapping[str, Any]:
        """Columns, exchange, plan hash and the planner's estimates."""
        stage, graph = props.stage, props.graph
        columns = graph.result if props.is_head else stage.schema
        if props.is_table:
            columns = props.query.front_matter.output.stored_columns(columns)
        comments = commented(props.comments if props.is_head else {})
        metadata: dict[str, Any] = {
            "dagster/column_schema": column_schema(columns, comments),
            f"{NAMESPACE}/query": graph.query,
            f"{NAMESPACE}/stage": stage.stage_id,
            f"{NAMESPACE}/exchange": "result" if props.is_head else stage.output.kind,
            f"{NAMESPACE}/plan_hash": props.plan_hash,
            f"{NAMESPACE}/estimated_rows": stage.estimated_rows,
            f"{NAMESPACE}/estimated_bytes": stage.estimated_bytes,
        }
        if props.is_query:
            metadata[f"{NAMESPACE}/stages"] = len(graph.stages)
        if props.is_table:
            metadata["dagster/table_name"] = props.query.table
        if (lineage := self.get_column_lineage(props)) is not None:
            metadata["dagster/column_lineage"] = lineage
        if props.is_head:
            plan = _fenced("text", props.shown_plan.plan)
            metadata[f"{NAMESPACE}/plan"] = dg.MetadataValue.md(plan)
            table = _clipped(props.shown_plan.lineage)
            metadata[f"{NAMESPACE}/lineage"] = dg.MetadataValue.md(table)
        if props.is_head and graph.parameters:
            metadata[f"{NAMESPACE}/parameters"] = {
                p.name: {"type": str(p.dtype), "default": p.default}
                for p in graph.parameters
                if not p.name.startswith(RUN_BOUND_PREFIX)
            }
        return metadata

    def get_column_lineage(self, props: StageProps) -> dg.TableColumnLineage | None:
        """The columns of upstream assets that values come from; None if unknown.

        These are stages of the query, the heads of the queries that make its tables, base tables.
        """
        stages = props.graph.stages

        def stage_columns(stage_id: int) -> tuple[dg.AssetKey, Sequence[str]]:
            stage = stages[stage_id]
            upstream = StageProps(query=props.query, graph=props.graph, stage=stage)
            return self.get_asset_key(upstream), column_names(stage.schema)

        def table_key(table: str) -> dg.AssetKey:
            maker = props.makers.get(table.lower())
            return self.get_table_key(table) if maker is None else self.get_asset_key(maker)

        columns = props.columns
        if columns is None:
            return None
        named: Sequence[Named] = (
            props.graph.result if props.is_head else props.stage.schema
        ) or columns
        sources = [column.sources for column in columns]
        if props.is_table and (removed := props.query.front_matter.output.delete_column):
            kept = [i for i, column in enumerate(named) if column.name.lower() != removed.lower()]
            named, sources = [named[i] for i in kept], [sources[i] for i in kept]
        return column_lineage(named, sources, cache(stage_columns), cache(table_key))

    def get_table_description(self, table: TableInfo) -> str:
        """One line: what the table is, and its rows."""
        stats = table.stats
        rows = f", {format_rows(stats.num_rows, is_estimate=stats.is_estimate)}" if stats else ""
        return f"Base table {table.name}: {len(table.columns)} columns{rows}"


def _ended(paragraph: str) -> str:
    """Text with the full stop that separates it from the next where both are on one line."""
    text = paragraph.rstrip()
    is_sentence = text[-1:].isalnum() or text.endswith((")", "'", '"', "`"))
    is_item = text.rpartition("\n")[2].lstrip().startswith(("-", "*", "#", "```", "|", ">"))
    return f"{text}." if is_sentence and not is_item else text


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_SQL_CHARACTERS else f"{text[:MAX_SQL_CHARACTERS]}\n…"


def _fenced(language: str, text: str) -> str:
    body = _clipped(text.strip())
    # A fence longer than any in the text, so that the text cannot close it.
    fence = "```"
    while fence in body:
        fence += "`"
    return f"{fence}{language}\n{body}\n{fence}"
