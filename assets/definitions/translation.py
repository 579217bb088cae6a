"""Applies the `translation` of a `dg` component on top of a translator.

A translation gets a spec as the translator made it and gives another one. It may change how an
asset looks, not what it depends on or which partitions it has: these follow from the SQL and its
front matter, and runs go by them.
"""

from collections.abc import Callable

import dagster as dg

from stagecoach.assets.definitions.translator import StageProps, StageTranslator
from stagecoach.assets.project.queries import ProjectError
from stagecoach.planner.catalog import TableInfo

StageTranslation = Callable[[dg.AssetSpec, StageProps], dg.AssetSpec]
TableTranslation = Callable[[dg.AssetSpec, str], dg.AssetSpec]

# What a run goes by, and where its author says it.
_FIXED = {
    "deps": "the SQL",
    "code_version": "the plan",
    "partitions_def": "'partitions' in the query's front matter",
    "skippable": "nothing",
}


def translated(
    base: type[StageTranslator],
    stages: StageTranslation | None,
    tables: TableTranslation | None,
    *,
    table_assets: bool = True,
) -> StageTranslator:
    """A translator that lets translations have the last word.

    Args:
        base: How stages look before.
        stages: The translation of stages; None for none.
        tables: That of base tables, by name.
        table_assets: Whether base tables become assets.
    """
    # In front of the caller's class, as Dagster's components do it.
    made = type("Translated", (_Translated, base), {})
    translator: StageTranslator = made(stages, tables, table_assets=table_assets)
    return translator


class _Translated(StageTranslator):
    """The class that comes next in the order of bases, under translations; see `translated`."""

    def __init__(
        self,
        stages: StageTranslation | None,
        tables: TableTranslation | None,
        *,
        table_assets: bool,
    ) -> None:
        super().__init__()
        # Two underscores: the caller's class may have attributes of these names.
        self.__stages = stages
        self.__tables = tables
        self.__table_assets = table_assets
        self.__keys: dict[tuple[str, int], dg.AssetKey] = {}

    def get_asset_key(self, props: StageProps) -> dg.AssetKey:
        place = (props.query.name, props.stage.stage_id)
        if place not in self.__keys:
            key = super().get_asset_key(props)
            self.__keys[place] = (
                self.__stages(dg.AssetSpec(key), props).key if self.__stages else key
            )
        return self.__keys[place]

    def get_table_key(self, table: str) -> dg.AssetKey:
        key = super().get_table_key(table)
        return self.__tables(dg.AssetSpec(key), table).key if self.__tables else key

    def get_asset_spec(self, props: StageProps, spec: dg.AssetSpec) -> dg.AssetSpec:
        spec = super().get_asset_spec(props, spec)
        if self.__stages is None:
            return spec
        # The translation makes the key once more, from what it was made from before.
        before = spec.replace_attributes(key=super().get_asset_key(props))
        return _checked(spec, self.__stages(before, props), props.query.source)

    def get_table_spec(self, table: TableInfo, spec: dg.AssetSpec) -> dg.AssetSpec | None:
        if not self.__table_assets:
            return None
        if self.__tables is None:
            return super().get_table_spec(table, spec)
        before = spec.replace_attributes(key=super().get_table_key(table.name))
        return super().get_table_spec(table, self.__tables(before, table.name))


def _checked(before: dg.AssetSpec, after: dg.AssetSpec, source: str) -> dg.AssetSpec:
    for name, place in _FIXED.items():
        if getattr(before, name) != getattr(after, name):
            raise ProjectError(
                f"{source}: a translation cannot change {name} of '{before.key.to_user_string()}'; "
                f"{place} decides about it"
            )
    if before.key != after.key:
        raise ProjectError(
            f"{source}: a translation gives '{before.key.to_user_string()}' another key with "
            f"metadata than without, '{after.key.to_user_string()}'; make it of the query and the "
            "stage alone"
        )
    return after
