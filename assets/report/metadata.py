"""Metadata of stages: every `stagecoach/<name>` key is a field of one dataclass."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import dagster as dg

from stagecoach.planner.lineage.model import Source, TableColumn
from stagecoach.planner.types import Field

NAMESPACE = "stagecoach"
_MARKDOWN = ("decisions", "plan_warning")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class StageMetadata:
    """What a materialization of a stage tells about itself; None leaves a key out.

    Args:
        rows: Rows of the output.
        bytes: Bytes of the output's files.
        bytes_read: Stored bytes that its tasks read.
        tasks: Tasks that made it.
        partitions: Partitions of the output.
        skew: Bytes of its largest partition, divided by the median of all; 1 is even.
        seconds: Wall time of the stage, seconds.
        engine: What ran it, such as `duckdb` or `spark`.
        fallback_reason: Why another engine ran it than the plan says.
        deferred: Why it left its work to the head stage.
        reused: Whether the output was there already and nothing ran.
        saved_bytes: Bytes that its tasks would have read and written, where it was reused.
        saved_seconds: What it took when it was computed, where it was reused.
        fingerprint: Hash of everything that the output depends on; the data version.
        uri: Where the output is.
        columns: The result's columns, where only the run could tell them.
        estimated_rows: Rows that the planner expected.
        estimate_factor: How many times that is too high (above 1) or too low (below 1).
        estimate_warning: That it is far off; None where it is not.
        decisions: Markdown: why this engine, this many tasks, these files.
        table_versions: Versions of the published tables that it read, by name.
        plan_warning: Markdown: which tables the plan no longer fits, and what to do.
        recovered: What was lost upstream and was computed again while it ran.
    """

    rows: int | None = None
    bytes: int | None = None
    bytes_read: int | None = None
    tasks: int | None = None
    partitions: int | None = None
    skew: float | None = None
    seconds: float | None = None
    engine: str | None = None
    fallback_reason: str | None = None
    deferred: str | None = None
    reused: bool | None = None
    saved_bytes: int | None = None
    saved_seconds: float | None = None
    fingerprint: str | None = None
    uri: str | None = None
    columns: tuple[Field, ...] = ()
    estimated_rows: int | None = None
    estimate_factor: float | None = None
    estimate_warning: str | None = None
    decisions: str | None = None
    table_versions: Mapping[str, int] | None = None
    plan_warning: str | None = None
    recovered: str | None = None

    def to_dagster(self) -> dict[str, dg.MetadataValue[Any]]:
        """The metadata as Dagster takes it, with Dagster's own keys for rows and place."""
        values: dict[str, dg.MetadataValue[Any]] = {}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value is not None and item.name != "columns":
                markdown = item.name in _MARKDOWN
                values[f"{NAMESPACE}/{item.name}"] = (
                    dg.MetadataValue.md(value) if markdown else _value(value)
                )
        if self.rows is not None:
            values["dagster/row_count"] = dg.MetadataValue.int(self.rows)
        if self.columns:
            schema = column_schema(self.columns)
            values["dagster/column_schema"] = dg.MetadataValue.table_schema(schema)
        if self.uri is not None:
            values["dagster/uri"] = dg.MetadataValue.text(self.uri)
        return values

    @classmethod
    def from_dagster(cls, metadata: Mapping[str, dg.MetadataValue[Any]]) -> "StageMetadata":
        """The numbers that an event of a run carries; keys of others are left out."""
        names = {item.name for item in dataclasses.fields(cls)}
        found = {key.removeprefix(f"{NAMESPACE}/"): value.value for key, value in metadata.items()}
        return cls(**{key: value for key, value in found.items() if key in names})


def _value(value: object) -> dg.MetadataValue[Any]:
    match value:
        case bool():
            return dg.MetadataValue.bool(value)
        case int():
            return dg.MetadataValue.int(value)
        case float():
            # Three decimals of what is large, three digits of a small factor.
            return dg.MetadataValue.float(round(value, 3) or float(f"{value:.3g}"))
        case Mapping():
            return dg.MetadataValue.json(dict(value))
    return dg.MetadataValue.text(str(value))


def column_schema(columns: tuple[Field, ...]) -> dg.TableSchema:
    """Columns as Dagster shows them, with Spark's types.

    Duplicate names, which a SELECT may have and a Dagster table may not, get their position.
    """
    return dg.TableSchema(
        columns=[
            dg.TableColumn(name=name, type=str(column.dtype))
            for name, column in zip(column_names(columns), columns, strict=True)
        ]
    )


def column_names(columns: Sequence[_Named]) -> Sequence[str]:
    """The names that columns have in Dagster, each once."""
    names: dict[str, None] = {}
    for position, column in enumerate(columns):
        name = column.name or f"column {position}"
        while name in names:
            name = f"{name} ({position})"
        names[name] = None
    return list(names)


def column_lineage(
    columns: Sequence[_Named],
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
