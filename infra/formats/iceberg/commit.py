"""Commits data files to an Iceberg table by one snapshot.

    files that tasks reported ─▶ manifest entries ┐
    files that they replace ──────────────────────┴▶ one snapshot, put in place of the current one

The catalog puts the snapshot in place only if the current one is still that on which it was made.
Otherwise the caller looks at the table again: what is replaced is told anew from its present files.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stagecoach.infra.formats.iceberg.manifests import manifest_entries
from stagecoach.infra.formats.lake_tables.publications import Publication
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.formats.row_keys import RowKeys
from stagecoach.planner.types import DataType, Field, to_arrow

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_THREADS = 8
_RETRIES = "commit.retry.num-retries"
_MERGES = "commit.manifest-merge.enabled"


def commit(
    table: Table,
    files: Sequence[DataFile],
    removed: Sequence[DataFile] | None,
    published: Publication,
    comments: Mapping[str, str],
) -> None:
    """Put one more snapshot in place; `table` is that snapshot then.

    Args:
        table: The table on whose current snapshot it is made.
        files: Files to add.
        removed: Files to remove; None for a commit that only adds.
        published: What the snapshot says of itself.
        comments: Comments of columns that have none in the table.

    Raises:
        CommitFailedException: Somebody else was first; nothing has changed.
        Exception: Whatever the catalog fails with; the outcome may be unknown.
    """
    import pyiceberg.table.update

    requirements: Any = pyiceberg.table.update
    # pyiceberg would repeat a commit on another snapshot without a look at what that has published.
    properties = {**table.metadata.properties, _RETRIES: "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    with table.transaction() as transaction:
        # The files are written for these columns and partitions, which change without a snapshot.
        transaction._apply(
            (),
            (
                requirements.AssertCurrentSchemaId(current_schema_id=table.schema().schema_id),
                requirements.AssertDefaultSpecId(default_spec_id=table.spec().spec_id),
            ),
        )
        missing = {
            name: text for name, text in comments.items() if not table.schema().find_field(name).doc
        }
        if missing:
            with transaction.update_schema() as schema:
                for name, text in missing.items():
                    schema.update_column(name, doc=text)
        update = transaction.update_snapshot(snapshot_properties=published.properties())
        if removed is not None:
            producer: Any = update.overwrite()
        elif properties.get(_MERGES, "false").lower() == "true":
            producer = update.merge_append()
        else:
            producer = update.fast_append()
        with producer as snapshot:
            for file in removed or ():
                snapshot.delete_data_file(file)
            for file in files:
                snapshot.append_data_file(file)


def data_files(
    table: Table, reported: Iterable[Mapping[str, Any]], types: Sequence[DataType | None]
) -> list[DataFile]:
    """Return files that tasks reported as manifests have them.

    Args:
        table: The table.
        reported: What `IcebergPlan.write_reported` returned.
        types: Types of the columns by position in the partition spec; None for a dropped field.

    Raises:
        PublishError: The value of a partition cannot be written down.
    """
    return [_data_file(table, values, types) for values in reported]


def live_files(table: Table) -> Iterator[DataFile]:
    """Yield the data files of the current snapshot."""
    snapshot = table.current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    with ThreadPoolExecutor(_THREADS) as pool:
        for entries in pool.map(lambda m: manifest_entries(m, table.io), manifests):
            yield from (entry.data_file for entry in entries if entry.data_file.content == 0)


def files_of_partitions(table: Table, name: str, column: Field, keys: RowKeys) -> list[DataFile]:
    """Return the data files whose rows are all of Dagster's partitions.

    Args:
        table: The table.
        name: Its name, for messages.
        column: The column that tells a row's partition.
        keys: The partitions.

    Raises:
        PublishError: A file has rows of these partitions and others.
    """
    from pyiceberg.expressions import AlwaysFalse, AlwaysTrue
    from pyiceberg.expressions.visitors import (
        ROWS_MIGHT_NOT_MATCH,
        ROWS_MUST_MATCH,
        _InclusiveMetricsEvaluator,
        _StrictMetricsEvaluator,
        residual_evaluator_of,
    )

    schema, specs = table.schema(), table.specs()
    rows = partition_filter(column.name, column.dtype, keys)
    found = []
    for file in live_files(table):
        evaluator = residual_evaluator_of(specs[file.spec_id], rows, True, schema)
        residual = evaluator.residual_for(file.partition)
        if residual == AlwaysFalse():
            continue
        if residual == AlwaysTrue() or (
            _StrictMetricsEvaluator(schema, residual).eval(file) == ROWS_MUST_MATCH
        ):
            found.append(file)
        elif _InclusiveMetricsEvaluator(schema, residual).eval(file) != ROWS_MIGHT_NOT_MATCH:
            raise PublishError(
                f"table '{name}': {file.file_path} has rows of the partitions of this run and "
                f"others, or does not tell; partition the table by '{column.name}', or rewrite the "
                "file with the tool that wrote it"
            )
    return found


def partition_filter(column: str, dtype: DataType, keys: RowKeys) -> BooleanExpression:
    """Return which rows are of Dagster's partitions."""
    import pyiceberg.expressions

    ex: Any = pyiceberg.expressions
    if not keys.starts:
        values = [v for v in (_key_value(key, dtype) for key in keys.keys) if v is not None]
        found: BooleanExpression = ex.In(column, values) if values else ex.AlwaysFalse()
        return found
    ranges: list[tuple[int, int]] = []
    for start, end in sorted(zip(keys.starts, keys.ends, strict=True)):
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    parts: list[BooleanExpression] = [
        ex.And(ex.GreaterThanOrEqual(column, start), ex.LessThan(column, end))
        for start, end in ranges
    ]
    return parts[0] if len(parts) == 1 else ex.Or(*parts)


def _key_value(key: str, dtype: DataType) -> str | int | None:
    """The value whose text is a partition key; None if a column of the type has no such text."""
    if dtype.kind == "string":
        return key
    try:
        if dtype.kind == "date":
            day = datetime.date.fromisoformat(key)
            return (day - datetime.date(1970, 1, 1)).days if day.isoformat() == key else None
        return int(key) if str(int(key)) == key else None
    except ValueError:
        return None


def _data_file(
    table: Table, values: Mapping[str, Any], types: Sequence[DataType | None]
) -> DataFile:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    counts = values["columns"]
    partition = [
        None if dtype is None else _partition_value(text, dtype)
        for text, dtype in zip(values["partition"], types, strict=True)
    ]
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=values["path"],
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=values["num_rows"],
        file_size_in_bytes=values["num_bytes"],
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
        split_offsets=list(values["offsets"]),
        column_sizes={c[0]: c[1] for c in counts},
        value_counts={c[0]: c[2] for c in counts},
        null_value_counts={c[0]: c[3] for c in counts if c[3] is not None},
        nan_value_counts={},
        lower_bounds={c[0]: bytes.fromhex(c[4]) for c in counts if c[4] is not None},
        upper_bounds={c[0]: bytes.fromhex(c[5]) for c in counts if c[5] is not None},
    )
    file.spec_id = table.spec().spec_id
    return file


def _partition_value(text: str | None, dtype: DataType) -> Any:
    """A value of a partition as manifests have it: days, microseconds, or Python's own types."""
    if text is None or dtype.kind == "string":
        return text
    kind = to_arrow(dtype)
    try:
        array = pa.array([text]).cast(kind)
    except pa.ArrowInvalid as error:
        raise PublishError(
            f"a partition has the value {text!r} of type {dtype}, which is out of range; leave "
            "such rows out"
        ) from error
    if dtype.kind == "date":
        return array.cast(pa.int32())[0].as_py()
    if dtype.kind in ("timestamp", "timestamp_ntz"):
        return array.cast(pa.int64())[0].as_py()
    return array[0].as_py()
