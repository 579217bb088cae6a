"""Stage graphs → asset specs: pure; nothing is executed, read or planned here.

In: planned queries, the base tables, a translator. Out: `AssetSpec`s whose dependencies are the
edges of the stage graphs.

    [lineitem] ─▶ [q01, stage_0] ─▶ [q01, stage_1] ─▶ [q01]
    (external)                                        (head: the result)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import dagster as dg

from assets.automation import automation_condition, freshness_policy
from assets.metadata import column_schema
from assets.partitions import partition_mapping, partitions_definition
from assets.project import ProjectError, Query
from assets.shown import ShownPlan
from assets.translator import StageProps, StageTranslator
from planner.catalog import TableInfo
from planner.stages import Stage, StageGraph

TABLE_GROUP = "tables"
_NO_HEADS: Mapping[str, StageProps] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class PlannedQuery:
    """A query and its plan.

    Args:
        query: The query.
        graph: Its plan.
        publishes: Whether a run publishes the result as the query's table.
        kept: What is shown of the plan, where that was kept beside it.
    """

    query: Query
    graph: StageGraph
    publishes: bool = False
    kept: ShownPlan | None = field(default=None, repr=False, compare=False)

    @cached_property
    def shown(self) -> ShownPlan:
        """What is shown of the plan."""
        return ShownPlan(self.graph) if self.kept is None else self.kept

    def props(self, stage: Stage, makers: Mapping[str, StageProps] = _NO_HEADS) -> StageProps:
        """What a translator sees of a stage.

        Args:
            stage: One of the plan.
            makers: Heads of the queries whose tables it reads; see `StageProps`.
        """
        return StageProps(
            query=self.query,
            graph=self.graph,
            stage=stage,
            makers=makers,
            publishes=self.publishes,
            kept=self.shown,
        )

    @property
    def head_props(self) -> StageProps:
        """What a translator sees of the head stage."""
        return self.props(self.graph.head)


Makers = Mapping[str, PlannedQuery]
"""The query that makes a table, by the table's name in lower case."""
_NO_MAKERS: Makers = MappingProxyType({})


def build_stage_specs(
    planned: PlannedQuery, translator: StageTranslator, makers: Makers = _NO_MAKERS
) -> Sequence[tuple[Stage, dg.AssetSpec]]:
    """A spec for each stage of a query, leaves first.

    Args:
        planned: The query.
        translator: How stages look.
        makers: Queries whose tables it may read; any other table is a base table.
    """
    names = _tables(planned)
    made = {name.lower(): makers[name.lower()] for name in names if name.lower() in makers}
    heads = {name: maker.head_props for name, maker in made.items()}
    props = [planned.props(stage, heads) for stage in planned.graph.stages]
    keys = {p.stage.stage_id: translator.get_asset_key(p) for p in props}
    deps = {table: _table_dep(planned, table, makers, translator) for table in names}
    return [(p.stage, _stage_spec(planned, p, keys, deps, translator)) for p in props]


def _tables(planned: PlannedQuery) -> Sequence[str]:
    return sorted({table for stage in planned.graph.stages for table in stage.tables})


def _table_dep(
    planned: PlannedQuery, table: str, makers: Makers, translator: StageTranslator
) -> dg.AssetDep:
    """What a stage that reads the table depends on: a base table, or another query's head."""
    maker = makers.get(table.lower())
    if maker is None:
        return dg.AssetDep(translator.get_table_key(table))
    mapping = partition_mapping(
        planned.graph,
        table,
        planned.query.front_matter.partitions,
        maker.query.front_matter.partitions,
    )
    key = translator.get_asset_key(maker.head_props)
    return dg.AssetDep(key, partition_mapping=mapping)


def _stage_spec(
    planned: PlannedQuery,
    props: StageProps,
    keys: Mapping[int, dg.AssetKey],
    deps: Mapping[str, dg.AssetDep],
    translator: StageTranslator,
) -> dg.AssetSpec:
    stage, is_head = props.stage, props.is_head
    front_matter = planned.query.front_matter
    spec = dg.AssetSpec(
        key=keys[stage.stage_id],
        deps=[*(keys[i] for i in stage.inputs), *(deps[table] for table in stage.tables)],
        partitions_def=(
            partitions_definition(front_matter.partitions) if front_matter.partitions else None
        ),
        automation_condition=automation_condition(front_matter),
        freshness_policy=freshness_policy(front_matter) if is_head else None,
        description=translator.get_description(props),
        metadata=translator.get_metadata(props),
        group_name=translator.get_group_name(props),
        owners=translator.get_owners(props),
        tags=translator.get_tags(props),
        kinds=translator.get_kinds(props),
        code_version=props.shown.plan_hash,
    )
    return translator.get_asset_spec(props, spec)


def build_table_specs(
    tables: Iterable[TableInfo], translator: StageTranslator
) -> Sequence[dg.AssetSpec]:
    """A spec for each base table, an external asset with its columns.

    Without those that the translator says other definitions make.
    """
    specs = (
        translator.get_table_spec(
            table,
            dg.AssetSpec(
                key=translator.get_table_key(table.name),
                description=translator.get_table_description(table),
                metadata={"dagster/column_schema": column_schema(table.columns)},
                group_name=TABLE_GROUP,
                kinds={"table", "parquet"},
            ),
        )
        for table in tables
    )
    return [spec for spec in specs if spec is not None]


def read_tables(planned: Iterable[PlannedQuery]) -> Sequence[TableInfo]:
    """The base tables that the plans read, with the columns they were planned for, by name."""
    items = list(planned)
    made = {item.query.table.lower() for item in items if item.publishes}
    found = {name: columns for item in items for name, columns in item.graph.tables}
    return [TableInfo(name, found[name]) for name in sorted(found) if name.lower() not in made]


def check_keys(sources: Iterable[tuple[dg.AssetKey, str]]) -> None:
    """Refuse two assets of one key.

    Args:
        sources: Each asset's key and where it comes from, for the message.

    Raises:
        ProjectError: One error that lists every clash.
    """
    seen: dict[dg.AssetKey, list[str]] = {}
    for key, source in sources:
        seen.setdefault(key, []).append(source)
    clashes = [
        f"asset key '{key.to_user_string()}' is that of {' and of '.join(where)}"
        for key, where in seen.items()
        if len(where) > 1
    ]
    if clashes:
        raise ProjectError("\n  ".join([f"{len(clashes)} duplicate asset key(s):", *clashes]))
