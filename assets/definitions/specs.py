"""Asset specs of stages and base tables; pure: nothing is run, read or planned here.

Their dependencies are the edges of the stage graphs.

    [lineitem] ─▶ [q01, stage_0] ─▶ [q01, stage_1] ─▶ [q01]
    (external)                                        (head: the result)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import dagster as dg

from stagecoach.assets.automation.conditions import automation_condition, freshness_policy
from stagecoach.assets.definitions.translator import StageProps, StageTranslator
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.partitions import partition_mapping, partitions_definition
from stagecoach.assets.project.queries import ProjectError
from stagecoach.assets.report.columns import column_schema
from stagecoach.infra.formats.registry import shown_kinds
from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.plan.stages import Stage

TABLE_GROUP = "tables"


Makers = Mapping[str, PlannedQuery]
"""The query that makes a table, by the table's name in lower case."""
NO_MAKERS: Makers = MappingProxyType({})


def build_stage_specs(
    planned: PlannedQuery, translator: StageTranslator, makers: Makers = NO_MAKERS
) -> Sequence[tuple[Stage, dg.AssetSpec]]:
    """A spec for each stage of a query, leaves first.

    Args:
        planned: The query.
        translator: How stages look.
        makers: Queries whose tables it may read; any other table is a base table.
    """
    names = _tables(planned)
    heads = _heads(names, makers)
    props = [StageProps.of(planned, stage, heads) for stage in planned.graph.stages]
    keys = {p.stage.stage_id: translator.get_asset_key(p) for p in props}
    deps = {table: _table_dep(planned, table, makers, translator) for table in names}
    return [
        (
            p.stage,
            _spec(
                planned,
                p,
                keys[p.stage.stage_id],
                [*(keys[i] for i in p.stage.inputs), *(deps[table] for table in p.stage.tables)],
                translator,
            ),
        )
        for p in props
    ]


def build_query_spec(
    planned: PlannedQuery, translator: StageTranslator, makers: Makers = NO_MAKERS
) -> dg.AssetSpec:
    """A spec for a query whose stages are no assets: it depends on all tables of the query.

    Args:
        planned: The query.
        translator: How stages look; it is asked about the head, with `StageProps.is_query`.
        makers: Queries whose tables it may read; any other table is a base table.
    """
    names = _tables(planned)
    heads = _heads(names, makers)
    props = replace(StageProps.of(planned, planned.graph.head, heads), is_query=True)
    # A translator may give two tables one key.
    deps = {
        dep.asset_key: dep
        for dep in (_table_dep(planned, table, makers, translator) for table in names)
    }
    return _spec(planned, props, translator.get_asset_key(props), list(deps.values()), translator)


def _heads(names: Sequence[str], makers: Makers) -> Mapping[str, StageProps]:
    """Heads of the queries that make some of the tables, by the table's name in lower case."""
    made = {name.lower(): makers[name.lower()] for name in names if name.lower() in makers}
    return {name: StageProps.head_of(maker) for name, maker in made.items()}


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
    key = translator.get_asset_key(StageProps.head_of(maker))
    return dg.AssetDep(key, partition_mapping=mapping)


def _spec(
    planned: PlannedQuery,
    props: StageProps,
    key: dg.AssetKey,
    deps: Sequence[dg.AssetKey | dg.AssetDep],
    translator: StageTranslator,
) -> dg.AssetSpec:
    front_matter = planned.query.front_matter
    spec = dg.AssetSpec(
        key=key,
        deps=deps,
        partitions_def=(
            partitions_definition(front_matter.partitions) if front_matter.partitions else None
        ),
        automation_condition=automation_condition(front_matter),
        freshness_policy=freshness_policy(front_matter) if props.is_head else None,
        description=translator.get_description(props),
        metadata=translator.get_metadata(props),
        group_name=translator.get_group_name(props),
        owners=translator.get_owners(props),
        tags=translator.get_tags(props),
        kinds=translator.get_kinds(props),
        code_version=props.plan_hash,
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
                metadata={"dagster/column_schema": column_schema(table.columns, table.notes)},
                group_name=TABLE_GROUP,
                kinds=shown_kinds(table.format),
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
        f"asset key '{key.to_user_string()}' is used by {' and by '.join(where)}"
        for key, where in seen.items()
        if len(where) > 1
    ]
    if clashes:
        raise ProjectError("\n  ".join([f"{len(clashes)} duplicate asset key(s):", *clashes]))
