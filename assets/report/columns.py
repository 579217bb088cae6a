"""Columns of assets as Dagster shows them: their names, their types and where they come from."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import dagster as dg

from stagecoach.assets.report.column_names import Named, column_names
from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.lineage.model import Source, TableColumn
from stagecoach.planner.types import Field

_NO_NOTES: Mapping[str, ColumnNotes] = MappingProxyType({})


def column_schema(
    columns: tuple[Field, ...], notes: Mapping[str, ColumnNotes] = _NO_NOTES
) -> dg.TableSchema:
    """Columns as Dagster shows them, with Spark's types.

    Duplicate names, which a SELECT may have and a Dagster table may not, get their position.

    Args:
        columns: The columns.
        notes: What is declared of some of them, by name.
    """
    shown = []
    for name, column in zip(column_names(columns), columns, strict=True):
        note = notes.get(column.name, ColumnNotes())
        shown.append(
            dg.TableColumn(
                name=name,
                type=str(column.dtype),
                description=note.comment or None,
                constraints=dg.TableColumnConstraints(nullable=note.nullable),
            )
        )
    return dg.TableSchema(columns=shown)


def commented(comments: Mapping[str, str]) -> Mapping[str, ColumnNotes]:
    """Return comments of columns as what is declared of these."""
    return {name: ColumnNotes(text) for name, text in comments.items()}


def column_lineage(
    columns: Sequence[Named],
    sources: Sequence[Sequence[Source]],
    stage_columns: Callable[[int], tuple[dg.AssetKey, Sequence[str]]],
    table_key: Callable[[str], dg.AssetKey],
) -> dg.TableColumnLineage:
    """Which columns of upstream assets the values of each column come from.

    Args:
        columns: The columns with the names of the asset's `column_schema`.
        sources: What the values of each of them come from.
        stage_columns: The asset of a stage, and the names that its columns have in Dagster.
        table_key: The asset of a table: a base table, or the head of the query that makes it.
    """

    def dep(source: Source) -> dg.TableColumnDep:
        if isinstance(source, TableColumn):
            return dg.TableColumnDep(table_key(source.table), source.column)
        key, names = stage_columns(source.stage_id)
        return dg.TableColumnDep(key, names[source.position])

    return dg.TableColumnLineage(
        {
            # Each once: a translator may give two stages one key, which is refused later.
            name: list(dict.fromkeys(dep(source) for source in found))
            for name, found in zip(column_names(columns), sources, strict=True)
        }
    )
