"""Publishes the result of a query as a table.

What it came to becomes metadata of the head stage's asset, for each partition its own rows.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import dagster as dg

from stagecoach.assets.project.front_matter import TimePartitions
from stagecoach.assets.project.partitions import RunWindow, key_windows
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.metadata import NAMESPACE
from stagecoach.infra.formats.publishing import PublishTarget

# They import pyspark and numpy, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.formats.publishing import PartitionWindow
    from stagecoach.infra.publishing.publish import Published

_NONE: Mapping[str, str] = MappingProxyType({})


def publish_target(
    query: Query, window: RunWindow | None, comments: Mapping[str, str] = _NONE
) -> PublishTarget:
    """Where the result of a run goes.

    Args:
        query: The query.
        window: What part of it the run made; None for a query without partitions.
        comments: What columns of the result mean, by name.
    """
    front_matter = query.front_matter
    partitions = front_matter.partitions
    windows: tuple[PartitionWindow, ...] = ()
    if window is not None and isinstance(partitions, TimePartitions) and partitions.column:
        windows = tuple(_partition_window(key, own) for key, own in key_windows(partitions, window))
    return PublishTarget(
        table=query.table,
        format=front_matter.output.format_name,
        place=front_matter.output.place(query.table, str(query.path.parent) if query.path else ""),
        mode=front_matter.output_mode,
        key=front_matter.output.key or (),
        delete_column=front_matter.output.delete_column,
        partition_keys=window.keys if window else (),
        partition_column=partitions.column if partitions else None,
        windows=windows,
        partition_by=front_matter.output.partition_by,
        keep_versions=front_matter.output.keep_versions,
        comments=tuple(sorted(comments.items())),
    )


def _partition_window(key: str, window: RunWindow) -> "PartitionWindow":
    from stagecoach.infra.formats.publishing import PartitionWindow

    if window.start is None or window.end is None:
        raise ValueError(f"partition {key} has no window")
    return PartitionWindow(key=key, start=window.start, end=window.end)


def published_metadata(published: "Published", uri: str) -> Mapping[str, dg.MetadataValue[Any]]:
    """What is told about a publication.

    Args:
        published: What it came to.
        uri: Folder of the table.
    """
    version = published.version
    return {
        "dagster/table_name": dg.MetadataValue.text(version.table),
        "dagster/uri": dg.MetadataValue.text(uri),
        f"{NAMESPACE}/table_version": dg.MetadataValue.int(version.number),
        f"{NAMESPACE}/table_rows": dg.MetadataValue.int(version.num_rows),
        f"{NAMESPACE}/published_files": dg.MetadataValue.int(len(published.files)),
        f"{NAMESPACE}/published_bytes": dg.MetadataValue.int(published.num_bytes),
        f"{NAMESPACE}/published_again": dg.MetadataValue.bool(published.reused),
        f"{NAMESPACE}/publish_seconds": dg.MetadataValue.float(round(published.seconds, 3)),
    }


def partition_metadata(rows: int) -> Mapping[str, dg.MetadataValue[Any]]:
    """What is told about one partition key besides what is told about the run.

    Args:
        rows: Rows of the partition.
    """
    count = dg.MetadataValue.int(rows)
    return {
        "dagster/partition_row_count": count,
        "dagster/row_count": count,
        f"{NAMESPACE}/rows": count,
    }
