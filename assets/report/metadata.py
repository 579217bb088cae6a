"""Metadata of stages: every `stagecoach/<name>` key is a field of one dataclass."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.assets.report.column_names import column_names
from stagecoach.planner.types import Field

# A run of which every stage is reused does not wait for it.
if TYPE_CHECKING:
    import dagster as dg

NAMESPACE = "stagecoach"
_MARKDOWN = ("decisions", "plan_warning")
_ROW_COUNT, _SCHEMA, _URI = "dagster/row_count", "dagster/column_schema", "dagster/uri"


@dataclass(frozen=True, kw_only=True)
class StageMetadata:
    """What a materialization of a stage tells about itself; None leaves a key out.

    Args:
        rows: Rows of the output.
        bytes: Bytes of the output's files.
        bytes_read: Stored bytes that its tasks read.
        tasks: Tasks that made it.
        taken_over: Of these tasks, those of an earlier run, where it is incremental.
        partitions: Partitions of the output.
        run_partitions: Partition keys that the run made, if there are several: then all numbers but
            `rows` of the result are those of all of them.
        run_rows: Rows of the output for all of these.
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
    taken_over: int | None = None
    partitions: int | None = None
    run_partitions: int | None = None
    run_rows: int | None = None
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

    def to_dagster(
        self, comments: Mapping[str, str] | None = None
    ) -> "dict[str, dg.MetadataValue[Any]]":
        """The metadata as Dagster takes it, with Dagster's own keys for rows and place.

        Args:
            comments: What columns mean, by name.
        """
        import dagster as dg

        from stagecoach.assets.report.columns import column_schema, commented

        values: dict[str, dg.MetadataValue[Any]] = {}
        for name, value in self._told():
            markdown = name in _MARKDOWN
            values[f"{NAMESPACE}/{name}"] = (
                dg.MetadataValue.md(value) if markdown else _dagster_value(value)
            )
        if self.rows is not None:
            values[_ROW_COUNT] = dg.MetadataValue.int(self.rows)
        if self.columns:
            schema = column_schema(self.columns, commented(comments or {}))
            values[_SCHEMA] = dg.MetadataValue.table_schema(schema)
        if self.uri is not None:
            values[_URI] = dg.MetadataValue.text(self.uri)
        return values

    def over_partitions(self, count: int) -> "StageMetadata":
        """The same of a run of several partition keys, to be told of each of them.

        How many rows a key has is only known of the result, once it is published: see
        `partition_rows`.
        """
        return dataclasses.replace(self, rows=None, run_rows=self.rows, run_partitions=count)

    def to_event(self) -> dict[str, object]:
        """The metadata as an event of a run has it in storage; see `plain_value`."""
        values = {f"{NAMESPACE}/{name}": plain_value(value) for name, value in self._told()}
        if self.rows is not None:
            values[_ROW_COUNT] = self.rows
        if self.columns:
            names = column_names(self.columns)
            values[_SCHEMA] = [
                {"name": name, "type": str(column.dtype)}
                for name, column in zip(names, self.columns, strict=True)
            ]
        if self.uri is not None:
            values[_URI] = self.uri
        return values

    def _told(self) -> Iterator[tuple[str, Any]]:
        """The fields that have a key of their own, rounded as they are shown."""
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value is not None and item.name != "columns":
                yield item.name, _rounded(value)

    @classmethod
    def from_dagster(cls, metadata: "Mapping[str, dg.MetadataValue[Any]]") -> "StageMetadata":
        """The numbers of the stage that an event of a run carries; keys of others are left out."""
        names = {item.name for item in dataclasses.fields(cls)}
        found = {key.removeprefix(f"{NAMESPACE}/"): value.value for key, value in metadata.items()}
        told = cls(**{key: value for key, value in found.items() if key in names})
        # What a materialization tells of one partition key is not the stage's output.
        return told if told.run_rows is None else dataclasses.replace(told, rows=told.run_rows)


def plain_value(value: object) -> object:
    """A metadata value as JSON holds it."""
    return value if isinstance(value, str | int | float | None) else str(value)


def _rounded(value: object) -> object:
    # Three decimals of what is large, three digits of a small factor.
    return (round(value, 3) or float(f"{value:.3g}")) if isinstance(value, float) else value


def _dagster_value(value: object) -> "dg.MetadataValue[Any]":
    import dagster as dg

    match value:
        case bool():
            return dg.MetadataValue.bool(value)
        case int():
            return dg.MetadataValue.int(value)
        case float():
            return dg.MetadataValue.float(value)
        case Mapping():
            return dg.MetadataValue.json(dict(value))
    return dg.MetadataValue.text(str(value))
