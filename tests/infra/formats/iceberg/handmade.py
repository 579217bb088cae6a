"""Iceberg tables written by hand from the specification, with what pyiceberg does not write.

A table of version 1, 2 or 3 is put together file by file: data files, position deletes, deletion
vectors and equality deletes. Each commit writes manifests and a manifest list, and `save` the
metadata file, by which the table is opened.
"""

from __future__ import annotations

import itertools
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import manifest as m
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType
from pyroaring import BitMap

_IO = PyArrowFileIO()
_PATH_ID, _POSITION_ID = 2147483546, 2147483545


@dataclass(frozen=True)
class Entry:
    """A file of a table: content 0 for data, 1 for positions, 2 for keys."""

    path: str
    content: int
    num_rows: int
    num_bytes: int
    partition: tuple[Any, ...] = ()
    spec_id: int = 0
    lower: Mapping[int, bytes] = field(default_factory=dict)
    upper: Mapping[int, bytes] = field(default_factory=dict)
    nulls: Mapping[int, int] = field(default_factory=dict)
    kind: str = "PARQUET"
    key_ids: tuple[int, ...] | None = None
    referenced: str | None = None
    offset: int | None = None
    size: int | None = None
    split_offsets: tuple[int, ...] | None = None
    sequence: int | None = None


@dataclass
class HandmadeTable:
    folder: Path
    version: int = 2
    schemas: list[dict[str, Any]] = field(default_factory=list)
    specs: list[dict[str, Any]] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    refs: dict[str, dict[str, Any]] = field(default_factory=dict)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    live: list[Entry] = field(default_factory=list)
    sequence: int = 0
    saved: int = 0
    clock: int = 1_700_000_000_000
    url: str = ""  # of the folder, if others reach it by another name
    _names: Any = field(default_factory=lambda: itertools.count())

    def schema(self, *fields: Mapping[str, Any]) -> None:
        """Make a schema of these fields the current one."""
        shown = [{"required": False, **f} for f in fields]
        self.schemas.append({"type": "struct", "schema-id": len(self.schemas), "fields": shown})

    def spec(self, *fields: Mapping[str, Any]) -> None:
        """Make a partition spec of these fields the current one."""
        shown = [{"field-id": 1000 + 10 * len(self.specs) + i, **f} for i, f in enumerate(fields)]
        self.specs.append({"spec-id": len(self.specs), "fields": shown})

    @property
    def _schema(self) -> Schema:
        return Schema.model_validate_json(json.dumps(self.schemas[-1]))

    def _path(self, suffix: str, folder: str = "data") -> str:
        target = self.folder / folder
        target.mkdir(parents=True, exist_ok=True)
        return f"{target}/{next(self._names):04}-{suffix}"

    def _url(self, path: str) -> str:
        return path.replace(str(self.folder), self.url) if self.url else f"file://{path}"

    def data(
        self,
        rows: pa.Table,
        partition: tuple[Any, ...] = (),
        *,
        metrics: bool = True,
        ids: Mapping[str, int] | None = None,
        group_rows: int = 1000,
    ) -> Entry:
        """Write a data file; columns of `rows` go by name in the current schema, or by `ids`."""
        path = self._path("data.parquet")
        written = with_ids(rows, self._ids() if ids is None else ids)
        pq.write_table(written, path, row_group_size=group_rows)
        entry = Entry(self._url(path), 0, rows.num_rows, Path(path).stat().st_size, partition)
        entry = replace(entry, spec_id=max(len(self.specs) - 1, 0))
        metadata = pq.read_metadata(path)
        chunks = [metadata.row_group(i).column(0) for i in range(metadata.num_row_groups)]
        offsets = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        if len(set(offsets)) == len(offsets):
            entry = replace(entry, split_offsets=tuple(offsets))
        return self._with_metrics(entry, rows) if metrics else entry

    def _ids(self) -> dict[str, int]:
        return {f.name: f.field_id for f in self._schema.fields}

    def _with_metrics(self, entry: Entry, rows: pa.Table) -> Entry:
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        nulls: dict[int, int] = {}
        for f in self._schema.fields:
            if f.name not in rows.column_names or not isinstance(f.field_type, PrimitiveType):
                continue
            values = [v for v in rows[f.name].to_pylist() if v is not None and v == v]
            nulls[f.field_id] = rows[f.name].null_count
            if values and not isinstance(values[0], bytes):
                lower[f.field_id] = to_bytes(f.field_type, min(values))
                upper[f.field_id] = to_bytes(f.field_type, max(values))
        return replace(entry, lower=lower, upper=upper, nulls=nulls)

    def position_deletes(
        self, positions: Mapping[str, Sequence[int]], partition: tuple[Any, ...] = ()
    ) -> Entry:
        """Write a file with positions of deleted rows, by paths of data files."""
        pairs = sorted((path, p) for path, places in positions.items() for p in places)
        rows = pa.table(
            {
                "file_path": pa.array([path for path, _ in pairs], pa.string()),
                "pos": pa.array([p for _, p in pairs], pa.int64()),
            }
        )
        path = self._path("positions.parquet", "deletes")
        pq.write_table(with_ids(rows, {"file_path": _PATH_ID, "pos": _POSITION_ID}), path)
        bounds = [pairs[0][0].encode(), pairs[-1][0].encode()]
        return Entry(
            self._url(path),
            1,
            len(pairs),
            Path(path).stat().st_size,
            partition,
            spec_id=max(len(self.specs) - 1, 0),
            lower={_PATH_ID: bounds[0]},
            upper={_PATH_ID: bounds[1]},
        )

    def vectors(
        self, positions: Mapping[str, Sequence[int]], partition: tuple[Any, ...] = ()
    ) -> list[Entry]:
        """Write a Puffin file with the deletion vectors of data files."""
        path = self._path("vectors.puffin", "deletes")
        body, blobs = bytearray(b"PFA1"), []
        for name, places in positions.items():
            blob = vector_blob(places)
            blobs.append((name, len(body), len(blob), len(places)))
            body += blob
        shown = [
            {
                "type": "deletion-vector-v1",
                "fields": [_POSITION_ID],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": offset,
                "length": length,
                "properties": {"referenced-data-file": name, "cardinality": str(count)},
            }
            for name, offset, length, count in blobs
        ]
        footer = json.dumps({"blobs": shown}).encode()
        body += b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
        Path(path).write_bytes(body)
        return [
            Entry(
                self._url(path),
                1,
                count,
                len(body),
                partition,
                spec_id=max(len(self.specs) - 1, 0),
                kind="PUFFIN",
                referenced=name,
                offset=offset,
                size=length,
            )
            for name, offset, length, count in blobs
        ]

    def equality_deletes(
        self,
        rows: pa.Table,
        partition: tuple[Any, ...] = (),
        *,
        ids: Mapping[str, int] | None = None,
        spec_id: int | None = None,
    ) -> Entry:
        """Write a file with keys of deleted rows."""
        known = self._ids() if ids is None else dict(ids)
        path = self._path("keys.parquet", "deletes")
        pq.write_table(with_ids(rows, known), path)
        return Entry(
            self._url(path),
            2,
            rows.num_rows,
            Path(path).stat().st_size,
            partition,
            spec_id=max(len(self.specs) - 1, 0) if spec_id is None else spec_id,
            key_ids=tuple(known[name] for name in rows.column_names),
        )

    def commit(self, *added: Entry, removed: Sequence[str] = (), operation: str = "append") -> int:
        """Make a snapshot of the live files with these, and return its id."""
        self.sequence += 1
        self.clock += 60_000
        number = 1000 + self.sequence
        if not self.specs:
            self.spec()
        sequence = self.sequence if self.version > 1 else 0
        kept = [entry for entry in self.live if entry.path not in removed]
        entries = [(e, True) for e in added] + [(e, False) for e in kept]
        manifests = []
        for spec_id, deletes, is_new in itertools.product(
            range(len(self.specs)), (False, True), (True, False)
        ):
            group = [
                e
                for e, new in entries
                if (e.spec_id, e.content > 0, new) == (spec_id, deletes, is_new)
            ]
            if group:
                manifests.append(self._manifest(group, spec_id, number, sequence, new=is_new))
        path = self._path(f"list-{number}.avro", "metadata")
        with AvroOutputFile[m.ManifestFile](
            _IO.new_output(path),
            m.MANIFEST_LIST_FILE_SCHEMAS[self.version],
            "manifest_file",
            metadata={"format-version": str(self.version)},
        ) as writer:
            writer.write_block(manifests)
        self.live = [*kept, *(replace(e, sequence=sequence) for e in added)]
        snapshot = {
            "snapshot-id": number,
            "timestamp-ms": self.clock,
            "summary": {"operation": operation},
            "manifest-list": self._url(path),
            "schema-id": self.schemas[-1]["schema-id"],
        }
        if self.version > 1:
            snapshot["sequence-number"] = sequence
        if self.snapshots:
            snapshot["parent-snapshot-id"] = self.snapshots[-1]["snapshot-id"]
        self.snapshots.append(snapshot)
        return number

    def _manifest(
        self, entries: Sequence[Entry], spec_id: int, number: int, sequence: int, *, new: bool
    ) -> m.ManifestFile:
        spec = PartitionSpec.model_validate_json(json.dumps(self.specs[spec_id]))
        schema = self._schema_for(spec)
        version: Any = self.version
        data_type = m.data_file_with_partition(spec.partition_type(schema), version)
        path = self._path("manifest.avro", "metadata")
        is_deletes = entries[0].content > 0
        records = []
        for e in entries:
            values: dict[str, Any] = {
                "file_path": e.path,
                "file_format": m.FileFormat[e.kind],
                "partition": Record(*e.partition),
                "record_count": e.num_rows,
                "file_size_in_bytes": e.num_bytes,
                "null_value_counts": dict(e.nulls) or None,
                "lower_bounds": dict(e.lower) or None,
                "upper_bounds": dict(e.upper) or None,
                "split_offsets": None if e.split_offsets is None else list(e.split_offsets),
            }
            if self.version == 1:
                values["block_size_in_bytes"] = 0
            else:
                values["content"] = m.DataFileContent(e.content)
                values["equality_ids"] = None if e.key_ids is None else list(e.key_ids)
            if self.version == 3:
                values["referenced_data_file"] = e.referenced
                values["content_offset"] = e.offset
                values["content_size_in_bytes"] = e.size
            file = m.DataFile.from_args(_table_format_version=version, **values)
            status = m.ManifestEntryStatus.ADDED if new else m.ManifestEntryStatus.EXISTING
            given: dict[str, Any] = {"status": status, "snapshot_id": number, "data_file": file}
            if self.version > 1 and not new:
                given |= {"sequence_number": e.sequence, "file_sequence_number": e.sequence}
            records.append(m.ManifestEntry.from_args(_table_format_version=version, **given))
        with AvroOutputFile[m.ManifestEntry](
            _IO.new_output(path),
            m.manifest_entry_schema_with_data_file(version, data_type),
            "manifest_entry",
            metadata={
                "schema": schema.model_dump_json(),
                "partition-spec": json.dumps(self.specs[spec_id]["fields"]),
                "partition-spec-id": str(spec_id),
                "format-version": str(self.version),
                "content": "deletes" if is_deletes else "data",
            },
        ) as writer:
            writer.write_block(records)
        rows = sum(e.num_rows for e in entries)
        listed: dict[str, Any] = {
            "manifest_path": self._url(path),
            "manifest_length": Path(path).stat().st_size,
            "partition_spec_id": spec_id,
            "added_snapshot_id": number,
            "added_files_count": len(entries) if new else 0,
            "existing_files_count": 0 if new else len(entries),
            "deleted_files_count": 0,
            "added_rows_count": rows if new else 0,
            "existing_rows_count": 0 if new else rows,
            "deleted_rows_count": 0,
        }
        if self.version > 1:
            listed["content"] = m.ManifestContent.DELETES if is_deletes else m.ManifestContent.DATA
            listed["sequence_number"] = sequence
            listed["min_sequence_number"] = 1
        return m.ManifestFile.from_args(_table_format_version=version, **listed)

    def _schema_for(self, spec: PartitionSpec) -> Schema:
        """The latest schema that has the sources of a partition spec."""
        wanted = {f.source_id for f in spec.fields}
        for body in reversed(self.schemas):
            found = Schema.model_validate_json(json.dumps(body))
            if wanted <= {f.field_id for f in found.fields}:
                return found
        raise AssertionError(spec)

    def save(self) -> str:
        """Write the metadata file and return its path."""
        self.saved += 1
        current = self.snapshots[-1]["snapshot-id"] if self.snapshots else -1
        if not self.specs:
            self.spec()
        body: dict[str, Any] = {
            "format-version": self.version,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": self._url(str(self.folder)),
            "last-updated-ms": self.clock,
            "last-column-id": 999,
            "schemas": self.schemas,
            "current-schema-id": self.schemas[-1]["schema-id"],
            "partition-specs": self.specs,
            "default-spec-id": self.specs[-1]["spec-id"],
            "last-partition-id": 2000,
            "properties": self.properties,
            "current-snapshot-id": current,
            "snapshots": self.snapshots,
            "snapshot-log": [
                {"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]}
                for s in self.snapshots
            ],
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
        }
        if self.refs:
            body["refs"] = self.refs
        if self.version == 1:
            body |= {"schema": self.schemas[-1], "partition-spec": self.specs[-1]["fields"]}
        else:
            body["last-sequence-number"] = self.sequence
        if self.version == 3:
            body["next-row-id"] = 0
            for snapshot in self.snapshots:
                snapshot.setdefault("first-row-id", 0)
                snapshot.setdefault("added-rows", 0)
        (self.folder / "metadata").mkdir(parents=True, exist_ok=True)
        path = self.folder / "metadata" / f"v{self.saved}.metadata.json"
        path.write_text(json.dumps(body))
        return self._url(str(path)) if self.url else str(path)


def with_ids(rows: pa.Table, ids: Mapping[str, int]) -> pa.Table:
    """The rows with field ids: those of members are `<column>.<member>` in `ids`."""

    def numbered(f: pa.Field, path: str) -> pa.Field:
        kind = f.type
        if pa.types.is_struct(kind):
            kind = pa.struct(
                [
                    numbered(kind.field(i), f"{path}.{kind.field(i).name}")
                    for i in range(kind.num_fields)
                ]
            )
        elif pa.types.is_map(kind):
            key = numbered(kind.key_field, f"{path}.key")
            kind = pa.map_(key, numbered(kind.item_field, f"{path}.value"))
        elif pa.types.is_list(kind):
            kind = pa.list_(numbered(kind.value_field, f"{path}.element"))
        number = ids.get(path)
        metadata = None if number is None else {"PARQUET:field_id": str(number)}
        return pa.field(f.name, kind, f.nullable, metadata)

    return rows.cast(pa.schema([numbered(f, f.name) for f in rows.schema]))


def vector_blob(positions: Sequence[int]) -> bytes:
    """A deletion vector as Puffin files have it."""
    parts: dict[int, list[int]] = {}
    for position in positions:
        parts.setdefault(position >> 32, []).append(position & 0xFFFFFFFF)
    body = struct.pack("<q", len(parts))
    for high, low in sorted(parts.items()):
        bitmap = BitMap(low)
        bitmap.run_optimize()
        body += struct.pack("<i", high) + bitmap.serialize()
    framed = b"\xd1\xd3\x39\x64" + body
    return struct.pack(">i", len(framed)) + framed + struct.pack(">I", zlib.crc32(framed))
