"""What a stage reads of a deduplicated table.

    chunks ─▶ those that the filters need ─▶ the planner's passes ─▶ plain chunks and groups
                                                        │
                                  units for the estimator: files, and slices of groups
                                                        │
                              task's share of them ─▶ `ChunkInput`: plain, base, newer

The filters stay in the fragment. Those over the primary key are evaluated below the deduplication,
too, and rule out chunks; others rule out chunks only that hide no row of another.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stagecoach.infra.engines.duckdb.parquet_bounds import leaves_out_values
from stagecoach.infra.formats.deduplicated.bounds import ChunkPruner
from stagecoach.infra.formats.deduplicated.inputs import ChunkInput, ChunkPart, ChunkRows
from stagecoach.infra.formats.file_pruning import bound
from stagecoach.infra.formats.first_rows import FirstRows, steps_of
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.units import ScanSlice, ScanUnit
from stagecoach.infra.pruning.fixed_times import fixed_times
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import CatalogError, ParameterError, SqlError
from stagecoach.planner.formats.deduplicated.chunk import Chunk, ChunkValue, DedupState, DedupTable
from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.initial import initial_plan
from stagecoach.planner.formats.deduplicated.layers import layers_of
from stagecoach.planner.formats.deduplicated.passes import run_passes
from stagecoach.planner.formats.deduplicated.plan import ChunkPlan
from stagecoach.planner.formats.deduplicated.reading import Group, Reading, reading_of
from stagecoach.planner.formats.deduplicated.rules.push_filters_through_dedup import passes_dedup
from stagecoach.planner.formats.deduplicated.slices import Slice, joined, slices_of
from stagecoach.planner.optimizer.proofs import is_total
from stagecoach.planner.plan.expressions import Expression, Literal, conjoin, substitute
from stagecoach.planner.plan.physical import DedupScanExec, ScanExec
from stagecoach.planner.render.fragment import render_scalar
from stagecoach.planner.types import DataType

_GROUP = "group:"


@dataclass(frozen=True)
class ChunkScan:
    """A scan of a deduplicated table, planned.

    Args:
        request: The scan in its fragment.
        table: Key and roles of the table's columns.
        plan: The plan of its chunks, after all passes.
        reading: What the plan reads, without chunks that a filter rules out.
        where: DuckDB's SQL of filters that are alike for all rows of a key; empty for none.
        wanted: What the fragment asks for, if that is the first rows by time.
    """

    request: ScanRequest
    table: DedupTable
    plan: ChunkPlan
    reading: Reading
    where: str
    wanted: FirstRows | None = None

    @cached_property
    def context(self) -> ChunkContext:
        """What rules know of the table."""
        return ChunkContext(self.table)

    @cached_property
    def slices(self) -> tuple[tuple[Slice, ...], ...]:
        """The slices of each group."""
        groups = self.reading.groups
        return tuple(slices_of(group.chunks, group.key, self.context) for group in groups)

    @cached_property
    def units(self) -> tuple[ScanUnit, ...]:
        """What tasks share out: files that are read plainly, and groups.

        The slices of a group are what row groups are to a file: neighbours stay together.
        """
        plain = (_source(chunk) for chunk in self.reading.plain if chunk.num_rows)
        grouped = (
            ScanUnit(f"{_GROUP}{number}", tuple(map(_size, slices)))
            for number, slices in enumerate(self.slices)
        )
        return (*plain, *grouped)

    def bind(self, share: ScanSlice) -> ChunkInput:
        """The input of a task that reads a share of the sources."""
        if self.wanted is not None and (ordered := self._in_steps(share, self.wanted)) is not None:
            return ordered
        plain = {chunk.uri: chunk for chunk in self.reading.plain}
        rows = [self._rows(plain[u.uri], u) for u in share.units if u.uri in plain]
        parts = [ChunkPart(plain=tuple(rows), where=self.where)] if rows else []
        parts += [self._part(group, part) for group, part in self._shared(share)]
        return self._input(parts)

    def _input(
        self, parts: Sequence[ChunkPart], fetch: int = 0, steps: tuple[int, ...] = ()
    ) -> ChunkInput:
        return ChunkInput(
            columns=self.request.columns,
            hidden=self._hidden,
            parts=tuple(part for part in parts if part.files),
            version=self._name(self.table.version_column),
            marker=self._name(self.table.delete_column),
            fetch=fetch,
            steps=steps,
        )

    def _in_steps(self, share: ScanSlice, wanted: FirstRows) -> ChunkInput | None:
        """The share in order of time, each file and slice a part; None where times are unknown."""
        plain = {chunk.uri: chunk for chunk in self.reading.plain}
        parts: list[ChunkPart] = []
        ranges: list[tuple[int, int] | None] = []
        for unit in share.units:
            if unit.uri in plain:
                chunk = plain[unit.uri]
                parts.append(ChunkPart(plain=(self._rows(chunk, unit),), where=self.where))
                ranges.append(chunk.time_range)
                continue
            group, slices = self._slices(unit)
            parts += [self._part(group, part) for part in slices]
            ranges += [part.time_range for part in slices]
        known = [r for r in ranges if r is not None]
        if len(known) < len(parts):
            return None
        steps = steps_of(known, descending=wanted.descending)
        ordered = [parts[i] for step in steps for i in step]
        return self._input(ordered, wanted.num_rows, tuple(len(step) for step in steps))

    def _shared(self, share: ScanSlice) -> Iterable[tuple[Group, Slice]]:
        """The slices of groups in a share, neighbours put together."""
        for unit in share.units:
            if unit.uri.startswith(_GROUP):
                group, slices = self._slices(unit)
                yield from ((group, part) for part in joined(slices))

    def _slices(self, unit: ScanUnit) -> tuple[Group, tuple[Slice, ...]]:
        """The group that a source stands for, and those of its slices that are meant."""
        number = int(unit.uri.removeprefix(_GROUP))
        slices = self.slices[number]
        ends = list(itertools.accumulate(_size(part)[0] for part in slices))
        first = bisect.bisect_right(ends, unit.row_start)
        end = bisect.bisect_left(ends, unit.row_end)
        return self.reading.groups[number], slices[first : end + 1]

    def _part(self, group: Group, part: Slice) -> ChunkPart:
        layers = layers_of(part, self.context)
        return ChunkPart(
            plain=tuple(self._rows(c, None, part) for c in layers.plain),
            base=tuple(self._rows(c, None, part) for c in layers.base),
            newer=tuple(self._rows(c, None, part) for c in layers.newer),
            are_newer_distinct=layers.are_newer_distinct,
            key=tuple(self._name(column) for column in group.key),
            where=" AND ".join(filter(None, (self.where, self._key_clip(part)))),
            shares=(0, 1, 1)
            if part.keys is not None
            else (part.first_share, part.end_share, part.num_shares),
        )

    def _rows(self, chunk: Chunk, unit: ScanUnit | None, part: Slice | None = None) -> ChunkRows:
        needed = dict.fromkeys(c.source for c in (*self.request.columns, *self._hidden))
        stored = [(source, chunk.type_of(source)) for source in needed]
        bounded = {r.name for r in chunk.ranges if r.low is not None and r.high is not None}
        rows = None if part is None else part.rows_of(chunk)
        if unit is not None:
            rows = unit.row_start, unit.row_end
        return ChunkRows(
            uri=chunk.uri,
            num_rows=chunk.num_rows,
            num_bytes=chunk.num_bytes,
            version=chunk.file_version,
            footer_checksum=chunk.checksum,
            checksums=chunk.checksums,
            rows=rows,
            kind=chunk.kind,
            sequence=chunk.sequence,
            stored=tuple((source, str(kind)) for source, kind in stored if kind is not None),
            may_hold_nan=tuple(
                source
                for source, kind in stored
                if kind is not None and leaves_out_values(kind) and source not in bounded
            ),
            has_duplicates=chunk.may_contain_duplicates,
            has_deletes=chunk.has_deletes,
            clip="" if part is None or part.holds_times_of(chunk) else self._time_clip(part),
        )

    def _time_clip(self, part: Slice) -> str:
        """DuckDB's SQL of the times of a slice."""
        column = self.table.time_column or ""
        return " AND ".join(self._bounds(column, part.low, part.high))

    def _key_clip(self, part: Slice) -> str:
        """DuckDB's SQL of the keys of a slice; empty where it is not a range."""
        keys = part.keys
        if keys is None:
            return ""
        text = " AND ".join(self._bounds(keys.column, keys.low, keys.high))
        return text if keys.low is not None else f"({text} OR {self._quoted(keys.column)} IS NULL)"

    def _bounds(
        self, column: str, low: ChunkValue | None, high: ChunkValue | None
    ) -> Iterable[str]:
        dtype = next(f.dtype for f in self.table.columns if f.name == column)
        for compare, value in ((">=", low), ("<", high)):
            if value is not None:
                yield f"{self._quoted(column)} {compare} {_value_text(value, dtype)}"

    @cached_property
    def _hidden(self) -> tuple[LeafColumn, ...]:
        """Columns that only the deduplication needs."""
        table = self.table
        roles = (table.time_column, table.version_column, table.delete_column)
        wanted = dict.fromkeys((*table.primary_key, *(name for name in roles if name is not None)))
        given = {c.source for c in self.request.columns}
        kinds = {f.name: f.dtype for f in table.columns}
        names = (name for name in wanted if name not in given)
        return tuple(LeafColumn(f"__x{i}", name, kinds[name]) for i, name in enumerate(names))

    def _quoted(self, source: str) -> str:
        return f'"{self._name(source)}"'

    def _name(self, source: str | None) -> str:
        """The name of a column in the task's SQL; empty for none."""
        known = {c.source: c.name for c in (*self._hidden, *self.request.columns)}
        return "" if source is None else known[source]


def plan_chunk_scan(request: ScanRequest, table: TableSnapshot) -> ChunkScan:
    """Plan what a stage reads of a deduplicated table.

    Args:
        request: The scan in its fragment.
        table: Its table in the run's snapshot.

    Raises:
        CatalogError: The table is no longer what the plan was made for.
    """
    state = _checked_state(request.leaf, table)
    leaf, context = request.leaf, ChunkContext(state.table)
    positions = _positions(leaf, context)
    above, alike = request.filters, _alike(request, context)
    chunks = pruned_chunks(request, table)
    predicate = conjoin([substitute(p, positions) for p in above])
    columns = tuple(dict.fromkeys(leaf.source))
    first = initial_plan(chunks, context, predicate=predicate, columns=columns or None)
    plan = run_passes(first, context)
    reading = reading_of(plan, context)
    plain = _pruner(request, state.table, above).matching(reading.plain)
    # A text that is cast to a time might raise an error, a constant does not.
    fixed = (fixed_times(p, request.time_zone) for p in alike)
    where = _rendered([p for p in fixed if is_total(p)], request.parameters)
    wanted = request.first_rows
    if wanted is not None and wanted.column != state.table.time_column:
        wanted = None
    found = Reading(plain, reading.groups)
    return ChunkScan(request, state.table, plan, found, where, wanted=wanted)


def pruned_chunks(request: ScanRequest, table: TableSnapshot) -> tuple[Chunk, ...]:
    """Return the chunks that may hold a key which the filters right above the scan let through.

    Others have no part in the result, for all rows with a key are let through alike.

    Raises:
        CatalogError: The table is no longer what the plan was made for.
    """
    state = _checked_state(request.leaf, table)
    alike = _alike(request, ChunkContext(state.table))
    return _pruner(request, state.table, alike).matching(state.chunks)


def _checked_state(leaf: ScanExec, table: TableSnapshot) -> DedupState:
    """What the snapshot says of the table that a scan reads.

    Raises:
        CatalogError: It is not deduplicated, or by another key than the plan was made for.
    """
    key = leaf.key if isinstance(leaf, DedupScanExec) else ()
    state = table.detail
    if not isinstance(state, DedupState) or state.table.primary_key != key:
        now = ", ".join(state.table.primary_key) if isinstance(state, DedupState) else "no key"
        raise CatalogError(
            f"the query was planned for table '{table.table}' with the primary key "
            f"{', '.join(key)}, which is {now} now; compile the query again"
        )
    return state


def _pruner(request: ScanRequest, table: DedupTable, parts: Sequence[Expression]) -> ChunkPruner:
    bounded = [bound(p, request.parameters, request.time_zone) for p in parts]
    return ChunkPruner(request.leaf, table, bounded)


def _alike(request: ScanRequest, context: ChunkContext) -> Sequence[Expression]:
    """The filters that let all rows of a key through, or none."""
    positions = _positions(request.leaf, context)
    return [p for p in request.filters if passes_dedup(substitute(p, positions), context)]


def _positions(leaf: ScanExec, context: ChunkContext) -> dict[int, Expression]:
    """The table's columns for those of the scan."""
    pairs = zip(leaf.outputs, leaf.source, strict=True)
    return {c.id: context.ref(source) for c, source in pairs}


def _rendered(parts: Sequence[Expression], parameters: Mapping[str, Literal]) -> str:
    """DuckDB's SQL of conjuncts; those that DuckDB cannot evaluate are left to the fragment."""
    texts = []
    for part in parts:
        try:
            texts.append(f"({render_scalar(part, 'duckdb', parameters)})")
        except (SqlError, ParameterError):
            continue
    return " AND ".join(texts)


def _source(chunk: Chunk) -> ScanUnit:
    # There are no bytes per row group; rows of one file are about equally wide.
    groups = chunk.row_groups or (chunk.num_rows,)
    sizes = tuple((rows, chunk.num_bytes * rows // chunk.num_rows) for rows in groups)
    return ScanUnit(chunk.uri, sizes)


def _size(part: Slice) -> tuple[int, int]:
    """About how many rows and bytes of its chunks a slice has; at least one row."""
    rows = sum(c.num_rows * part.share(c) for c in part.chunks)
    return max(math.ceil(rows), 1), math.ceil(part.num_bytes())


def _value_text(value: ChunkValue, dtype: DataType) -> str:
    """DuckDB's SQL of a value of a column by which rows are clipped."""
    match dtype.kind:
        case "date":
            return f"(DATE '1970-01-01' + CAST({value} AS INTEGER))"
        case "timestamp":
            return f"make_timestamptz(CAST({value} AS BIGINT))"
        case "timestamp_ntz":
            return f"make_timestamp(CAST({value} AS BIGINT))"
        case "string":
            text = str(value).replace("'", "''")
            return f"'{text}'"
    return f"CAST('{value}' AS BIGINT)"
