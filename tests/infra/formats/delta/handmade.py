"""Delta tables made by hand from the protocol, for what deltalake does not write."""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.delta.vectors import _DIGITS
from stagecoach.infra.storage.object_store import StorageOptions
from tests.infra.formats.iceberg.handmade import vector_blob

START = 1_700_000_000_000  # 2023-11-14 22:13:20; each version is a minute later
Action = dict[str, Any]


def catalog_of(
    folder: Path, options: StorageOptions | None = None, **locations: str | Path
) -> FileCatalog:
    """A catalog of Delta tables."""
    text = "tables:\n" + "".join(
        f"  {name}:\n    format: delta\n    location: {json.dumps(str(location))}\n"
        for name, location in locations.items()
    )
    path = folder / f"catalog-{uuid.uuid4().hex[:8]}.yaml"
    path.write_text(text)
    return load_catalog(path, options)


def z85(raw: bytes) -> str:
    """Bytes, a multiple of four, as digits."""
    found = ""
    for start in range(0, len(raw), 4):
        number, digits = int.from_bytes(raw[start : start + 4], "big"), ""
        for _ in range(5):
            number, digit = divmod(number, 85)
            digits = _DIGITS[digit] + digits
        found += digits
    return found


def field(name: str, kind: Any, *, nullable: bool = True, **metadata: Any) -> Action:
    """A field of a schema; `id_` and `physical` map it."""
    if "id_" in metadata:
        metadata["delta.columnMapping.id"] = metadata.pop("id_")
    if "physical" in metadata:
        metadata["delta.columnMapping.physicalName"] = metadata.pop("physical")
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def struct(*fields: Action) -> Action:
    return {"type": "struct", "fields": list(fields)}


class HandmadeTable:
    """A table whose log is written action by action.

    Args:
        folder: Its folder.
        features: Reader features, which are writer features, too; none for an old protocol.
        configuration: Properties.
    """

    def __init__(
        self, folder: Path, features: Sequence[str] = (), configuration: Mapping[str, str] = {}
    ) -> None:
        self.folder = folder
        self.log = folder / "_delta_log"
        self.log.mkdir(parents=True)
        self.features = list(features)
        self.configuration = dict(configuration)
        self.version = -1
        self.id = str(uuid.uuid4())
        self.partitioned: list[str] = []
        self.fields: list[Action] = []
        self.live: dict[str, Action] = {}
        self._pending: list[Action] = []

    def schema(self, *fields: Action, partitioned: Sequence[str] = ()) -> None:
        """Set the columns, with the next commit."""
        self.fields, self.partitioned = list(fields), list(partitioned)
        self._pending = self._head()

    def _head(self) -> list[Action]:
        protocol: Action = {"minReaderVersion": 1, "minWriterVersion": 2}
        if self.features:
            more = {"readerFeatures": self.features, "writerFeatures": self.features}
            protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **more}
        elif "delta.columnMapping.mode" in self.configuration:
            protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
        metadata = {
            "id": self.id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(struct(*self.fields)),
            "partitionColumns": self.partitioned,
            "configuration": self.configuration,
            "createdTime": START,
        }
        return [{"protocol": protocol}, {"metaData": metadata}]

    def data(
        self,
        rows: pa.Table,
        partition: Mapping[str, str | None] = {},
        *,
        stats: bool = True,
        name: str = "",
        ids: Mapping[str, int] = {},
        group_rows: int = 1 << 20,
    ) -> Action:
        """Write a data file of stored columns; return its `add`."""
        if ids:
            rows = rows.cast(
                pa.schema(
                    [f.with_metadata({"PARQUET:field_id": str(ids[f.name])}) for f in rows.schema]
                )
            )
        path = self.folder / (name or f"part-{uuid.uuid4().hex}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, row_group_size=group_rows)
        found: Action = {
            "path": quote(str(path.relative_to(self.folder))),
            "partitionValues": dict(partition),
            "size": path.stat().st_size,
            "modificationTime": START,
            "dataChange": True,
        }
        if stats:
            found["stats"] = json.dumps(statistics(rows))
        return found

    def vector(self, positions: Sequence[int], kind: str = "u", prefix: str = "") -> Action:
        """Write a deletion vector; return its description."""
        blob = vector_blob(sorted(positions))
        size = len(blob) - 8
        found: Action = {"storageType": kind, "sizeInBytes": size, "cardinality": len(positions)}
        if kind == "i":
            inline = blob[4:-4]
            return {**found, "pathOrInlineDv": z85(inline + b"\0" * (-len(inline) % 4))}
        number = uuid.uuid4()
        path = self.folder / prefix / f"deletion_vector_{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        first = vector_blob([0])  # another one before it
        path.write_bytes(b"\x01" + first + blob)
        place = path.as_uri() if kind == "p" else prefix + z85(number.bytes)
        return {**found, "pathOrInlineDv": place, "offset": 1 + len(first)}

    def commit(
        self, *added: Action, removed: Sequence[Action] = (), info: Action | None = None
    ) -> int:
        """Write a version that adds and removes files; return its number."""
        self.version += 1
        actions: list[Action] = [{"commitInfo": info or {"timestamp": START, "operation": "WRITE"}}]
        actions += self._pending
        self._pending = []
        for add in removed:
            self.live.pop(add["path"])
            gone = {"path": add["path"], "deletionTimestamp": START, "dataChange": True}
            if "deletionVector" in add:
                gone["deletionVector"] = add["deletionVector"]
            actions.append({"remove": gone})
        for add in added:
            self.live[add["path"]] = add
            actions.append({"add": add})
        path = self.log / f"{self.version:020}.json"
        path.write_text("\n".join(map(json.dumps, actions)))
        moment = (START + self.version * 60_000) / 1000
        os.utime(path, (moment, moment))
        return self.version

    def delete(
        self, add: Action, positions: Sequence[int], kind: str = "u", prefix: str = ""
    ) -> Action:
        """Give a file a deletion vector in a version of its own; return its new `add`."""
        new = {**add, "deletionVector": self.vector(positions, kind, prefix)}
        self.commit(new, removed=[add])
        return new

    def checkpoint(self, kind: str) -> None:
        """Write a checkpoint of the present version: classic, parts, json, or sidecar."""
        head, adds = self._head(), [{"add": add} for add in self.live.values()]
        name = f"{self.version:020}.checkpoint"
        if kind == "classic":
            self._write(self.log / f"{name}.parquet", [*head, *adds])
        elif kind == "parts":
            half = len(adds) // 2
            self._write(self.log / f"{name}.0000000001.0000000002.parquet", [*head, *adds[:half]])
            self._write(self.log / f"{name}.0000000002.0000000002.parquet", adds[half:])
        else:
            sidecar = self.log / "_sidecars" / f"{uuid.uuid4()}.parquet"
            sidecar.parent.mkdir(exist_ok=True)
            self._write(sidecar, adds)
            about = {
                "path": sidecar.name,
                "sizeInBytes": sidecar.stat().st_size,
                "modificationTime": START,
            }
            actions = [{"checkpointMetadata": {"version": self.version}}, *head, {"sidecar": about}]
            path = self.log / f"{name}.{uuid.uuid4()}.{'json' if kind == 'json' else 'parquet'}"
            if kind == "json":
                path.write_text("\n".join(map(json.dumps, actions)))
            else:
                self._write(path, actions)

    def forget(self, below: int) -> None:
        """Remove commits, which a checkpoint has."""
        for number in range(below):
            (self.log / f"{number:020}.json").unlink(missing_ok=True)

    def _write(self, path: Path, actions: Sequence[Action]) -> None:
        texts = pa.map_(pa.string(), pa.string())
        vector = pa.struct(
            [
                ("storageType", pa.string()),
                ("pathOrInlineDv", pa.string()),
                ("offset", pa.int32()),
                ("sizeInBytes", pa.int32()),
                ("cardinality", pa.int64()),
            ]
        )
        kinds = {
            "add": pa.struct([("path", pa.string()), ("partitionValues", texts), ("size", pa.int64()), ("modificationTime", pa.int64()), ("dataChange", pa.bool_()), ("stats", pa.string()), ("deletionVector", vector)]),
            "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()), ("readerFeatures", pa.list_(pa.string())), ("writerFeatures", pa.list_(pa.string()))]),
            "metaData": pa.struct([("id", pa.string()), ("name", pa.string()), ("description", pa.string()), ("format", pa.struct([("provider", pa.string()), ("options", texts)])), ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())), ("configuration", texts), ("createdTime", pa.int64())]),
            "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", texts)]),
            "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", texts)]),
            "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
            "remove": pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        }  # fmt: skip
        columns = {}
        for name, kind in kinds.items():
            values = [_entries(action.get(name)) for action in actions]
            columns[name] = pa.array(values, kind)
        pq.write_table(pa.table(columns), path)


def _entries(action: Action | None) -> Action | None:
    """An action with maps as pyarrow takes them."""
    if action is None:
        return None
    found = dict(action)
    for name in ("partitionValues", "configuration"):
        if name in found:
            found[name] = list(found[name].items())
    if "format" in found:
        found["format"] = {"provider": "parquet", "options": []}
    return found


def statistics(rows: pa.Table) -> Action:
    """Statistics of stored columns as Delta's writers have them: times in milliseconds."""
    lows: Action = {}
    highs: Action = {}
    nulls: Action = {}
    for name in rows.schema.names:
        column = rows[name]
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        if pa.types.is_boolean(column.type) or pa.types.is_binary(column.type):
            continue
        found = pc.min_max(column).as_py()
        if found["min"] is not None and found["min"] == found["min"]:
            lows[name], highs[name] = _json(found["min"]), _json(found["max"])
    return {"numRecords": rows.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}


def _json(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        text = value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}"
        return text + ("Z" if value.tzinfo else "")
    if isinstance(value, dt.date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value
