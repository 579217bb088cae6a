"""Metadata of stages: every `stagecoach/<name>` key is a field of one dataclass.

In: numbers of a stage that ran, column types. Out: Dagster metadata, typed and namespaced.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from planner.stages import Engine
from planner.types import Field

NAMESPACE = "stagecoach"


@dataclass(frozen=True, kw_only=True)
class StageMetadata:
    """What a materialization of a stage tells about itself; None leaves a key out.

    Args:
        rows: Rows of the output.
        bytes: Bytes of the output's files.
        tasks: Tasks that made it.
        partitions: Partitions of the output.
        skew: Bytes of its largest partition, divided by the median of all; 1 is even.
        seconds: Wall time of the stage, seconds.
        engine: What ran it: `duckdb` or `spark`.
        fallback_reason: Why another engine ran it than the plan says.
        deferred: Why it left its work to the head stage.
        reused: Whether the output was there already and nothing ran.
        fingerprint: Hash of everything that the output depends on; the data version.
        uri: Where the output is.
        columns: The result's columns, where only the run could tell them.
    """

    rows: int | None = None
    bytes: int | None = None
    tasks: int | None = None
    partitions: int | None = None
    skew: float | None = None
    seconds: float | None = None
    engine: Engine | None = None
    fallback_reason: str | None = None
    deferred: str | None = None
    reused: bool | None = None
    fingerprint: str | None = None
    uri: str | None = None
    columns: tuple[Field, ...] = ()

    def to_dagster(self) -> dict[str, dg.MetadataValue[Any]]:
        """The metadata as Dagster takes it, with Dagster's own keys for rows and place."""
        values: dict[str, dg.MetadataValue[Any]] = {}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value is not None and item.name != "columns":
                values[f"{NAMESPACE}/{item.name}"] = _value(value)
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
            return dg.MetadataValue.float(round(value, 3))
    return dg.MetadataValue.text(str(value))


def column_schema(columns: tuple[Field, ...]) -> dg.TableSchema:
    """Columns as Dagster shows them, with Spark's types.

    Duplicate names, which a SELECT may have and a Dagster table may not, get their position.
    """
    names: list[str] = []
    for position, column in enumerate(columns):
        name = column.name or f"column {position}"
        names.append(name if name not in names else f"{name} ({position})")
    return dg.TableSchema(
        columns=[
            dg.TableColumn(name=name, type=str(column.dtype))
            for name, column in zip(names, columns, strict=True)
        ]
    )
