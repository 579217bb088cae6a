"""Translations of a `dg` component over a translator: in, both; out, one translator.

A translation gets a spec as the translator made it and gives another one. It may change how an
asset looks, not what it depends on or which partitions it has: these follow from the SQL and its
front matter, and runs go by them.
"""

from collections.abc import Callable

import dagster as dg

from assets.project import ProjectError
from assets.translator import StageProps, StageTranslator
from planner.catalog import TableInfo

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

    class Translated(base):  # type: ignore[valid-type, misc]  # as the caller's class is
        """`base` under the translations; Dagster's components do it the same way."""

        def __init__(self) -> None:
            super().__init__()
            self._keys: dict[tuple[str, int], dg.AssetKey] = {}

        def get_asset_key(self, props: StageProps) -> dg.AssetKey:
            place = (props.query.name, props.stage.stage_id)
            if place not in self._keys:
                key = super().get_asset_key(props)
                self._keys[place] = stages(dg.AssetSpec(key), props).key if stages else key
            return self._keys[place]

        def get_table_key(self, table: str) -> dg.AssetKey:
            key: dg.AssetKey = super().get_table_key(table)
            return tables(dg.AssetSpec(key), table).key if tables else key

        def get_asset_spec(self, props: StageProps, spec: dg.AssetSpec) -> dg.AssetSpec:
            spec = super().get_asset_spec(props, spec)
            if stages is None:
                return spec
            # The translation makes the key once more, from what it was made from before.
            before = spec.replace_attributes(key=super().get_asset_key(props))
            return _checked(spec, stages(before, props), props.query.source)

        def get_table_spec(self, table: TableInfo, spec: dg.AssetSpec) -> dg.AssetSpec | None:
            if not table_assets:
                return None
            if tables is None:
                return super().get_table_spec(table, spec)
            before = spec.replace_attributes(key=super().get_table_key(table.name))
            return super().get_table_spec(table, tables(before, table.name))

    return Translated()


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
