"""The files of a snapshot, as its manifests list them, and which deletes apply to which.

pyiceberg plans no scan with equality deletes, and reads no fields of version 3, so manifests are
read here. A delete applies to data files of its partition that were written before it:

    deletion vector      of the data file that it names, data sequence number <= its own
    position deletes     of the data files that they name, likewise; not beside a deletion vector
    equality deletes     data sequence number < its own; unpartitioned ones of all partitions

Source: https://iceberg.apache.org/spec/#scan-planning
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.reading.deletes import DeleteFile, UnitDeletes
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.partitioning import PartitionSpec

_FILE_PATH_ID = 2147483546  # of the column `file_path` of position deletes
_THREADS = 8

Partition = tuple[int, tuple[object, ...]]
"""Number of a partition spec, and the values of its fields."""


@dataclass(frozen=True)
class FoundFile:
    """A data file of a snapshot.

    Args:
        file: What its manifest says of it.
        path: Its canonical URI.
        partition: Its partition.
        sequence: Its data sequence number.
        deletes: Which of its rows are deleted; None for none.
    """

    file: DataFile
    path: str
    partition: Partition
    sequence: int
    deletes: UnitDeletes | None = None


def snapshot_files(
    manifests: Sequence[ManifestFile], specs: Mapping[int, PartitionSpec], io: FileIO
) -> list[FoundFile]:
    """Return the data files of a snapshot with their deletes, sorted by path.

    Args:
        manifests: The manifests of the snapshot.
        specs: The partition specs of the table by number.
        io: Reads manifests.

    Raises:
        CatalogError: A file is of a format that is not read.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        read = list(pool.map(lambda manifest: manifest_entries(manifest, io), manifests))
    entries = [entry for part in read for entry in part]
    deletes = _DeleteIndex()
    data: list[FoundFile] = []
    for entry in entries:
        file = entry.data_file
        partition = _partition_of(file)
        if file.content == 0:
            _check_format(file)
            path = canonical_path(file.file_path)
            data.append(FoundFile(file, path, partition, entry.sequence_number or 0))
        else:
            deletes.add(entry, partition, is_global=not specs[file.spec_id].fields)
    found = [FoundFile(f.file, f.path, f.partition, f.sequence, deletes.of(f)) for f in data]
    return sorted(found, key=lambda item: item.path)


def with_change(
    found: Sequence[FoundFile], added: Iterable[DataFile], removed: Collection[str]
) -> list[FoundFile]:
    """Return the files of a snapshot as they were after a commit, sorted by path.

    Args:
        found: The files of the snapshot.
        added: Data files that the commit adds, which no delete applies to.
        removed: Canonical URIs of those that it removes.
    """
    kept = [item for item in found if item.path not in removed]
    new = [
        FoundFile(file, canonical_path(file.file_path), _partition_of(file), 0) for file in added
    ]
    return sorted([*kept, *new], key=lambda item: item.path)


def manifest_entries(manifest: ManifestFile, io: FileIO) -> list[ManifestEntry]:
    """Return the live entries of a manifest, with all fields of version 3."""
    from pyiceberg import manifest as m
    from pyiceberg.avro.file import AvroFile

    with AvroFile[m.ManifestEntry](
        io.new_input(manifest.manifest_path),
        m.MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: m.ManifestEntry, 2: m.DataFile},
        read_enums={0: m.ManifestEntryStatus, 101: m.FileFormat, 134: m.DataFileContent},
    ) as reader:
        live = [entry for entry in reader if entry.status != m.ManifestEntryStatus.DELETED]
    for entry in live:
        # Numbers that a manifest leaves out are its own.
        if entry.sequence_number is None:
            entry.sequence_number = manifest.sequence_number
        entry.data_file.spec_id = manifest.partition_spec_id
    return live


def _partition_of(file: DataFile) -> Partition:
    values = (file.partition[i] for i in range(len(file.partition)))
    # A NaN equals no other, but is one partition.
    return file.spec_id, tuple("NaN" if value != value else value for value in values)


def _check_format(file: DataFile) -> None:
    if file.file_format.value != "PARQUET":
        raise CatalogError(
            f"{file.file_path} is an {file.file_format.value} file; only Parquet is read: rewrite "
            "the table's files as Parquet"
        )


@dataclass(frozen=True)
class _Delete:
    file: DeleteFile
    sequence: int
    lowest: str | None = None
    highest: str | None = None

    def may_name(self, path: str) -> bool:
        """Whether positions of a data file may be among these, by the bounds of their paths."""
        below = self.lowest is not None and path < self.lowest
        return not below and not (self.highest is not None and path > self.highest)


@dataclass
class _DeleteIndex:
    """The delete files of a snapshot."""

    vectors: dict[str, list[_Delete]] = field(default_factory=lambda: defaultdict(list))
    named: dict[str, list[_Delete]] = field(default_factory=lambda: defaultdict(list))
    positions: dict[Partition, list[_Delete]] = field(default_factory=lambda: defaultdict(list))
    keys: dict[Partition | None, list[_Delete]] = field(default_factory=lambda: defaultdict(list))

    def add(self, entry: ManifestEntry, partition: Partition, *, is_global: bool) -> None:
        """Add a delete file.

        Args:
            entry: What its manifest says.
            partition: Its partition.
            is_global: Whether its partition spec has no fields.
        """
        file, sequence = entry.data_file, entry.sequence_number or 0
        referenced, offset = _data(file, 17), _data(file, 18)
        path = canonical_path(file.file_path)
        if file.file_format.value == "PUFFIN":
            if referenced is None or offset is None:
                raise CatalogError(f"{file.file_path}: its manifest entry names no data file")
            vector = DeleteFile(path, "positions", file.file_size_in_bytes, offset)
            self.vectors[referenced].append(_Delete(vector, sequence))
            return
        _check_format(file)
        if file.content == 2:
            columns = tuple(file.equality_ids or ())
            if not columns:
                raise CatalogError(f"{file.file_path}: its manifest entry names no columns")
            keys = DeleteFile(path, "keys", file.file_size_in_bytes, columns=columns)
            self.keys[None if is_global else partition].append(_Delete(keys, sequence))
            return
        low, high = _path_bounds(file)
        found = _Delete(DeleteFile(path, "positions", file.file_size_in_bytes), sequence, low, high)
        if referenced is not None:
            self.named[referenced].append(found)
        else:
            self.positions[partition].append(found)

    def of(self, data: FoundFile) -> UnitDeletes | None:
        """Return the deletes of a data file."""
        path = data.file.file_path
        found = [d for d in self.vectors.get(path, ()) if d.sequence >= data.sequence]
        if not found:
            found = [
                d
                for d in (*self.named.get(path, ()), *self.positions.get(data.partition, ()))
                if d.sequence >= data.sequence and d.may_name(path)
            ]
        for where in (data.partition, None):
            found += [d for d in self.keys.get(where, ()) if d.sequence > data.sequence]
        files = tuple(sorted((d.file for d in found), key=lambda f: (f.uri, f.offset)))
        return UnitDeletes(files=files) if files else None


def _path_bounds(file: DataFile) -> tuple[str | None, str | None]:
    def text(bounds: Mapping[int, bytes] | None) -> str | None:
        raw = (bounds or {}).get(_FILE_PATH_ID)
        try:
            return None if raw is None else raw.decode()
        except UnicodeDecodeError:
            return None

    return text(file.lower_bounds), text(file.upper_bounds)


def _data(file: DataFile, position: int) -> Any:
    """A field of version 3, for which pyiceberg has no property."""
    return file._data[position]
