"""Base tables as triggers: a sensor that reports when the files of a table have changed.

Nobody tells Dagster when files are written. A sensor lists the tables that automated queries read
(no file is opened) and reports a materialization of each whose files are not those of last time,
with a hash of the listing as its data version. An observation would not do: in Dagster 1.13
`AutomationCondition.eager()` acts on materializations of an external asset only, and holds back
everything below an asset that has none.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Protocol

import dagster as dg
from dagster import AssetKey, AssetMaterialization

from stagecoach.assets.report.metadata import NAMESPACE
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.errors import CatalogError

SENSOR_NAME = "stagecoach_base_tables"
INTERVAL_SECONDS = 60
# The public name of this tag is an argument of MaterializeResult only.
DATA_VERSION_TAG = "dagster/data_version"


class ListsFiles(Protocol):
    """A catalog that can list the files of a table without reading any (`FileCatalog`)."""

    def list_files(self, name: str) -> Sequence[FileEntry]:
        """The files of the table as they are now."""
        ...


def base_table_sensor(
    keys: Mapping[str, AssetKey],
    catalog: ListsFiles,
    *,
    status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
) -> dg.SensorDefinition:
    """The sensor that tells Dagster when files of these tables change.

    Args:
        keys: Assets of the base tables that automated queries read, by name of the table.
        catalog: Lists their files.
        status: Whether it runs before anybody has turned it on or off in the UI.
    """

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        reported = read_cursor(context.cursor)
        found = dict(reported)
        events: list[AssetMaterialization] = []
        for table, key in sorted(keys.items()):
            try:
                files = catalog.list_files(table)
            except (CatalogError, StorageError) as error:
                context.log.warning("queries that read '%s' are not triggered: %s", table, error)
                continue
            found[table] = listing_version(files)
            if found[table] != reported.get(table):
                events.append(_event(key, files, found[table]))
        cursor = json.dumps({name: found[name] for name in sorted(found) if name in keys})
        if not events:
            nothing = f"no file of {len(keys)} base table(s) has changed"
            return dg.SensorResult(skip_reason=nothing, cursor=cursor)
        return dg.SensorResult(asset_events=events, cursor=cursor)

    return dg.SensorDefinition(
        name=SENSOR_NAME,
        evaluation_fn=look,
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=status,
        description="Reports changes in the files of base tables that queries with "
        "`automation: on_upstream_change` read.",
    )


def listing_version(files: Sequence[FileEntry]) -> str:
    """A hash of which files there are, with their sizes and versions."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda entry: entry.uri):
        digest.update(json.dumps([file.uri, file.num_bytes, file.version]).encode())
    return digest.hexdigest()[:32]


def read_cursor(text: str | None) -> dict[str, str]:
    """The versions that were reported, by table; none where the cursor is not one of ours."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _event(key: AssetKey, files: Sequence[FileEntry], version: str) -> AssetMaterialization:
    return AssetMaterialization(
        asset_key=key,
        description="its files have changed",
        metadata={
            f"{NAMESPACE}/files": len(files),
            f"{NAMESPACE}/bytes": sum(file.num_bytes for file in files),
        },
        tags={DATA_VERSION_TAG: version},
    )
