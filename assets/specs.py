"""Stage graphs → asset specs: pure; nothing is executed, read or planned here.

In: planned queries, the base tables, a translator. Out: `AssetSpec`s whose dependencies are the
edges of the stage graphs.

    [lineitem] ─▶ [q01, stage_0] ─▶ [q01, stage_1] ─▶ [q01]
    (external)                                        (head: the result)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from assets.metadata import column_schema
from assets.project import ProjectError, Query
from assets.translator import StageProps, StageTranslator
from planner.catalog import TableInfo
from planner.stages import Stage, StageGraph

TABLE_GROUP = "tables"


@dataclass(frozen=True, kw_only=True)
class PlannedQuery:
    """A query and its plan."""

    query: Query
    graph: StageGraph

    def props(self, stage: Stage) -> StageProps:
        """What a translator sees of a stage."""
        return StageProps(query=self.query, graph=self.graph, stage=stage)


def build_stage_specs(
    planned: PlannedQuery, translator: StageTranslator
) -> Sequence[tuple[Stage, dg.AssetSpec]]:
    """A spec for each stage of a query, leaves first."""
    keys = {s.stage_id: translator.get_asset_key(planned.props(s)) for s in planned.graph.stages}
    return [(s, _stage_spec(planned, s, keys, translator)) for s in planned.graph.stages]


def _stage_spec(
    planned: PlannedQuery,
    stage: Stage,
    keys: Mapping[int, dg.AssetKey],
    translator: StageTranslator,
) -> dg.AssetSpec:
    props = planned.props(stage)
    tables = [translator.get_table_key(table) for table in stage.tables]
    return dg.AssetSpec(
        key=keys[stage.stage_id],
        deps=[*(keys[i] for i in stage.inputs), *tables],
        description=translator.get_description(props),
        metadata=translator.get_metadata(props),
        group_name=translator.get_group_name(props),
        owners=translator.get_owners(props),
        tags=translator.get_tags(props),
        kinds=translator.get_kinds(props),
        code_version=stage.plan_hash,
    )


def build_table_specs(
    tables: Iterable[TableInfo], translator: StageTranslator
) -> Sequence[dg.AssetSpec]:
    """A spec for each base table: an external asset with its columns."""
    return [
        dg.AssetSpec(
            key=translator.get_table_key(table.name),
            description=translator.get_table_description(table),
            metadata={"dagster/column_schema": column_schema(table.columns)},
            group_name=TABLE_GROUP,
            kinds={"table", "parquet"},
        )
        for table in tables
    ]


def read_tables(planned: Iterable[PlannedQuery]) -> Sequence[TableInfo]:
    """The tables that the plans read, with the columns they were planned for, by name."""
    found = {name: columns for item in planned for name, columns in item.graph.tables}
    return [TableInfo(name, found[name]) for name in sorted(found)]


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
