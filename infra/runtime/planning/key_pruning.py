"""A stage's scans without what the keys of its finished inputs rule out.

    manifests of build sides ─▶ keys ─▶ files by the snapshot's bounds ─▶ row groups by footers

Only what tasks read depends on it: the fingerprint is that of all files which the plan declares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagecoach.infra.formats.partitions import partition_summary
from stagecoach.infra.formats.snapshot import Snapshot, TableSnapshot
from stagecoach.infra.formats.units import ScanUnit, join_neighbours
from stagecoach.infra.pruning.key_sets import KeyDomain, key_domain
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.estimator import InputSizes
from stagecoach.infra.runtime.planning.build_keys import BuildKeys
from stagecoach.infra.runtime.planning.row_group_bounds import MOST_FOOTERS, bounds_of_groups
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.planner.plan.physical import ScanExec, StageInputExec
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.pruning.key_filters import KeyFilter, key_filters
from stagecoach.planner.types import DataType

_FREE_BYTES = 1 << 20  # stored bytes of keys that are read whatever the scan is
_WORTH = 8  # how many times more the scan must be than other keys
_MOST_BYTES = 64 << 20  # stored bytes of keys that the driver reads at most
_GROUPS_BYTES = 8 << 20  # of a scan below which footers are not read for its row groups
_MOST_RUNS = 16  # pieces of a file: each is a query of its own in DuckDB


@dataclass(frozen=True)
class _ScanFilter:
    """Keys for a column of a scan.

    Args:
        name: Of the column in the table.
        place: Its position among the columns of the files; None for a partition column.
        partition: Its position among the partition columns, otherwise.
        stage_id: Which stage has the keys.
        keys: The keys.
    """

    name: str
    place: int | None
    partition: int
    stage_id: int
    keys: BuildKeys

    def may_meet(self, table: TableSnapshot, file: DataFile) -> bool:
        """Whether a row of the file may have one of the keys."""
        if self.place is not None:
            bounds = file.bounds[self.place] if self.place < len(file.bounds) else (None,) * 3
            return self.keys.may_meet(bounds, file.num_rows)
        dtype = table.partition_columns[self.partition].dtype
        found = partition_summary(file.partition[self.partition], dtype, file.num_rows)
        known = found.null_count, found.min_value, found.max_value
        return self.keys.may_meet(known, file.num_rows)


@dataclass
class KeyPruner:
    """Leaves out what cannot have a partner, for the scans of a stage.

    Args:
        stage: The stage.
        snapshot: Files of its tables.
        manifests: Upstream manifests by stage number.
        store: Where upstream output is.
        row_groups: Whether tasks can read some row groups of a file only.
    """

    stage: Stage
    snapshot: Snapshot
    manifests: Mapping[int, Manifest]
    store: ObjectStore
    row_groups: bool = True
    _keys: dict[tuple[int, int, KeyDomain, bool], BuildKeys] = field(default_factory=dict)

    def prune(self, sizes: InputSizes) -> tuple[InputSizes, list[Decision]]:
        """The sizes of what must be read, and what was decided.

        Raises:
            ShuffleReadError: Keys are lost.
            StorageError: The store failed.
        """
        wanted: dict[int, list[KeyFilter]] = {}
        for found in key_filters(self.stage):
            if sizes.scans.get(found.scan):
                wanted.setdefault(found.scan, []).append(found)
        scans = dict(sizes.scans)
        decisions: list[Decision] = []
        for scan, known in wanted.items():
            filters = self._filters(scan, known, sizes.num_bytes(scan))
            if not filters:
                continue
            scans[scan], pruned = self._pruned(scan, sizes.scans[scan], filters)
            if (decision := _decision(pruned)) is not None:
                decisions.append(decision)
        return replace(sizes, scans=scans), decisions

    def _leaf(self, position: int) -> ScanExec:
        leaf = self.stage.leaves[position]
        if not isinstance(leaf, ScanExec):
            raise TypeError(f"a {type(leaf).__name__} is not a scan")
        return leaf

    def _filters(self, scan: int, known: Sequence[KeyFilter], scan_bytes: int) -> list[_ScanFilter]:
        leaf = self._leaf(scan)
        table = self.snapshot.table(leaf.table)
        stored = len(table.columns) - len(table.partition_columns)
        places = {column.name.lower(): i for i, column in enumerate(table.columns)}
        filters: list[_ScanFilter] = []
        for wanted in known:
            column, name = leaf.outputs[wanted.column], leaf.source[wanted.column]
            place = places.get(name.lower())
            if place is None or table.columns[place].dtype != column.dtype:
                continue
            # Dates and times of the old calendar are other ones in the footer.
            if place < stored and table.native_reason is not None:
                continue
            keys = self._build_keys(wanted, column.dtype, scan_bytes)
            if keys is not None:
                number = place if place < stored else None
                source = self._input(wanted).stage_id
                filters.append(_ScanFilter(name, number, place - stored, source, keys))
        return filters

    def _input(self, wanted: KeyFilter) -> StageInputExec:
        leaf = self.stage.leaves[wanted.source]
        if not isinstance(leaf, StageInputExec):
            raise TypeError(f"a {type(leaf).__name__} is not a stage input")
        return leaf

    def _build_keys(self, wanted: KeyFilter, dtype: DataType, scan_bytes: int) -> BuildKeys | None:
        """The keys of an input; None where they would not tell, or cost more than they save."""
        leaf = self._input(wanted)
        manifest = self.manifests[leaf.stage_id]
        domain = key_domain(leaf.outputs[wanted.key].dtype, dtype)
        if domain is None or sum(manifest.partition_bytes) > most_key_bytes(scan_bytes):
            return None
        name = leaf.stage_id, wanted.key, domain, wanted.null_safe
        if name not in self._keys:
            column = manifest.schema.names[wanted.key]
            self._keys[name] = BuildKeys(self.store, manifest, column, domain, wanted.null_safe)
        return self._keys[name]

    def _pruned(
        self, scan: int, sources: Sequence[ScanUnit], filters: Sequence[_ScanFilter]
    ) -> tuple[tuple[ScanUnit, ...], _Pruned]:
        table = self.snapshot.table(self._leaf(scan).table)
        known = {file.uri: file for file in table.files}
        left = [s for s in sources if all(f.may_meet(table, known[s.uri]) for f in filters)]
        groups = sum(len(source.pieces) for source in left)
        files = len(left)
        if self.row_groups:
            left = self._without_groups(table, left, filters)
        used = [f for f in filters if f.keys.were_sorted]
        first = used[0].keys.keys if used else None
        pruned = _Pruned(
            table=table.table,
            columns=tuple(dict.fromkeys(f.name for f in used)),
            sources=tuple(dict.fromkeys(f.stage_id for f in used)),
            num_keys=0 if first is None else len(first.values) + first.has_null,
            files=(len({source.uri for source in left}), len(sources)),
            row_groups=(sum(len(source.pieces) for source in left), groups if files else 0),
            num_bytes=(sum(s.num_bytes for s in left), sum(s.num_bytes for s in sources)),
        )
        return tuple(left), pruned

    def _without_groups(
        self,
        table: TableSnapshot,
        sources: Sequence[ScanUnit],
        filters: Sequence[_ScanFilter],
    ) -> list[ScanUnit]:
        """The files without the row groups that have none of the keys."""
        by_footer = [f for f in filters if f.place is not None]
        several = [source for source in sources if len(source.pieces) > 1]
        few = not several or sum(source.num_bytes for source in several) < _GROUPS_BYTES
        if not by_footer or few or len(several) > MOST_FOOTERS:
            return list(sources)
        names = tuple(table.columns[f.place].name for f in by_footer if f.place is not None)
        options = StorageOptions.of(self.store)
        known = {file.uri: file for file in table.files}
        bounds = bounds_of_groups([known[s.uri] for s in several], names, options)
        keys = [f.keys for f in by_footer]
        left: list[ScanUnit] = []
        for source in sources:
            left += _runs(source, bounds.get(source.uri), keys)
        return left


def most_key_bytes(scan_bytes: int) -> int:
    """Stored bytes of keys that are worth reading for a scan of that size, in the driver."""
    return min(max(_FREE_BYTES, scan_bytes // _WORTH), _MOST_BYTES)


def _runs(
    source: ScanUnit,
    bounds: Sequence[Sequence[StoredBounds]] | None,
    keys: Sequence[BuildKeys],
) -> list[ScanUnit]:
    """Neighbouring row groups of a file that may have one of the keys of each list."""
    if bounds is None:
        return [source]
    kept = (
        piece
        for piece, known in zip(source.split(), bounds, strict=True)
        if all(k.may_meet(b, piece.num_rows) for k, b in zip(keys, known, strict=True))
    )
    runs = join_neighbours(kept)
    return [source] if len(runs) > _MOST_RUNS else list(runs)


@dataclass(frozen=True)
class _Pruned:
    """What keys have left of a scan.

    Args:
        table: Its table.
        columns: Columns of the keys that not all of it meets.
        sources: Numbers of the stages that have these keys.
        num_keys: How many different keys these have, of the first.
        files: Files that are read and files that there are.
        row_groups: Likewise, of the files that are read.
        num_bytes: Stored bytes, likewise.
    """

    table: str
    columns: tuple[str, ...]
    sources: tuple[int, ...]
    num_keys: int
    files: tuple[int, int]
    row_groups: tuple[int, int]
    num_bytes: tuple[int, int]


def _decision(found: _Pruned) -> Decision | None:
    """What to say of a scan that reads less; None where it reads everything."""
    (files, of_files), (groups, of_groups) = found.files, found.row_groups
    parts = [f"{files:,} of {of_files:,} files"] if files < of_files else []
    parts += [f"{groups:,} of {of_groups:,} row groups"] if groups < of_groups else []
    if not parts:
        return None
    stages = " and ".join(f"stage {number}" for number in found.sources)
    keys = f"{found.num_keys:,} key{'' if found.num_keys == 1 else 's'} of {stages}"
    return Decision(
        "prune",
        f"{' and '.join(parts)} of {found.table}, {found.num_bytes[0]:,} of "
        f"{found.num_bytes[1]:,} bytes, may have one of the {keys} in {', '.join(found.columns)}",
    )
