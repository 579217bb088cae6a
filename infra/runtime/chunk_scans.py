"""What a stage reads of a deduplicated table: in, a snapshot's chunks and a scan; out, task inputs.

    chunks ─▶ those that the filters need ─▶ passes of `planner.chunks` ─▶ plain chunks and groups
                                                        │
                                  units for the estimator: files, and slices of groups
                                                        │
                              task's share of them ─▶ `ChunkInput`: plain, base, newer

The filters stay in the fragment. Those over the primary key are evaluated below the deduplication,
too, and rule out chunks; others rule out chunks only that hide no row of another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from infra.catalog.snapshot import TableSnapshot
from infra.engines.chunk_inputs import ChunkInput, ChunkPart, ChunkRows
from infra.engines.inputs import LeafColumn
from infra.runtime.chunk_bounds import ChunkPruner
from infra.runtime.chunk_first_rows import FirstRows, first_rows
from infra.runtime.estimator import FileSlice, ScanSlice, SourceFile
from infra.runtime.prune_files import bound
from planner.chunks.chunk import Chunk, DedupTable
from planner.chunks.context import ChunkContext
from planner.chunks.initial import initial_plan
from planner.chunks.passes import run_passes
from planner.chunks.plan import ChunkPlan
from planner.chunks.reading import (
    Group,
    Reading,
    Slice,
    joined,
    layers_of,
    reading_of,
    slices_of,
)
from planner.chunks.rules.order_by_range import steps_of
from planner.chunks.rules.push_filters_through_dedup import passes_dedup
from planner.errors import CatalogError, ParameterError, SqlError
from planner.expressions import Column, Expression, Literal, conjoin, substitute
from planner.optimizer.proofs import is_total
from planner.physical import DedupScanExec, PhysicalPlan
from planner.scan_filters import conjuncts_above
from planner.sql.fragment import render_scalar
from planner.types import DataType, Field

_GROUP = "group:"


@dataclass(frozen=True)
class ChunkScan:
    """A scan of a deduplicated table, planned.

    Args:
        leaf: The scan.
        table: Key and roles of the table's columns.
        plan: The plan of its chunks, after all passes.
        reading: What the plan reads, without chunks that a filter rules out.
        where: DuckDB's SQL of filters that are alike for all rows of a key; empty for none.
        names: Names of the columns that are given, `c<id>` by default.
        wanted: What the fragment asks for, if that is the first rows by time.
    """

    leaf: DedupScanExec
    table: DedupTable
    plan: ChunkPlan
    reading: Reading
    where: str
    names: tuple[str, ...] = ()
    wanted: FirstRows | None = None

    @cached_property
    def context(self) -> ChunkContext:
        """What rules know of the table."""
        return ChunkContext(self.table)

    @cached_property
    def slices(self) -> tuple[tuple[Slice, ...], ...]:
        """The slices of each group."""
        return tuple(slices_of(group, self.context) for group in self.reading.groups)

    @cached_property
    def sources(self) -> tuple[SourceFile, ...]:
        """What tasks share out: files that are read plainly, and slices of groups."""
        plain = (_source(chunk) for chunk in self.reading.plain if chunk.num_rows)
        grouped = (
            SourceFile(f"{_GROUP}{number}:{index}", (_size(part),))
            for number, slices in enumerate(self.slices)
            for index, part in enumerate(slices)
        )
        return (*plain, *grouped)

    def bind(self, share: ScanSlice) -> ChunkInput:
        """The input of a task that reads a share of the sources."""
        if self.wanted is not None and (ordered := self._in_steps(share, self.wanted)) is not None:
            return ordered
        plain = {chunk.uri: chunk for chunk in self.reading.plain}
        rows = [self._rows(plain[f.uri], f) for f in share.files if f.uri in plain]
        parts = [ChunkPart(plain=tuple(rows), where=self.where)] if rows else []
        parts += [self._part(group, part) for group, part in self._shared(share)]
        return self._input(parts)

    def _input(
        self, parts: Sequence[ChunkPart], fetch: int = 0, steps: tuple[int, ...] = ()
    ) -> ChunkInput:
        return ChunkInput(
            columns=self._columns,
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
        for file in share.files:
            if file.uri in plain:
                chunk = plain[file.uri]
                parts.append(ChunkPart(plain=(self._rows(chunk, file),), where=self.where))
                ranges.append(chunk.time_range)
            else:
                number, index = _place(file.uri)
                part = self.slices[number][index]
                parts.append(self._part(self.reading.groups[number], part))
                ranges.append(part.time_range)
        known = [r for r in ranges if r is not None]
        if len(known) < len(parts):
            return None
        steps = steps_of(known, descending=wanted.descending)
        ordered = [parts[i] for step in steps for i in step]
        return self._input(ordered, wanted.num_rows, tuple(len(step) for step in steps))

    def _shared(self, share: ScanSlice) -> Iterable[tuple[Group, Slice]]:
        """The slices of groups in a share, neighbours put together."""
        places = sorted(_place(f.uri) for f in share.files if f.uri.startswith(_GROUP))
        for _, run in itertools.groupby(enumerate(places), key=lambda p: (p[1][0], p[1][1] - p[0])):
            found = [place for _, place in run]
            number = found[0][0]
            slices = [self.slices[number][index] for _, index in found]
            yield self.reading.groups[number], joined(slices)

    def _part(self, group: Group, part: Slice) -> ChunkPart:
        layers = layers_of(part, self.context)
        return ChunkPart(
            plain=tuple(self._rows(c, None, part) for c in layers.plain),
            base=tuple(self._rows(c, None, part) for c in layers.base),
            newer=tuple(self._rows(c, None, part) for c in layers.newer),
            key=tuple(self._name(column) for column in group.key),
            where=self.where,
            shares=(part.first_share, part.end_share, part.num_shares),
        )

    def _rows(self, chunk: Chunk, rows: FileSlice | None, part: Slice | None = None) -> ChunkRows:
        needed = dict.fromkeys(c.source for c in (*self._columns, *self._hidden))
        stored = ((source, chunk.type_of(source)) for source in needed)
        return ChunkRows(
            uri=chunk.uri,
            kind=chunk.kind,
            row_start=0 if rows is None else rows.row_start,
            row_end=chunk.num_rows if rows is None else rows.row_end,
            num_rows=chunk.num_rows,
            num_bytes=chunk.num_bytes,
            version=chunk.file_version,
            sequence=chunk.sequence,
            stored=tuple((source, str(kind)) for source, kind in stored if kind is not None),
            has_duplicates=chunk.may_contain_duplicates,
            has_deletes=chunk.has_deletes,
            clip="" if part is None or part.holds(chunk) else self._clip(part),
        )

    def _clip(self, part: Slice) -> str:
        """DuckDB's SQL of the times of a slice."""
        column = self.table.time_column or ""
        dtype = next(f.dtype for f in self.table.columns if f.name == column)
        name = f'"{self._name(column)}"'
        bounds = []
        if part.low is not None:
            bounds.append(f"{name} >= {_time_text(part.low, dtype)}")
        if part.high is not None:
            bounds.append(f"{name} < {_time_text(part.high, dtype)}")
        return " AND ".join(bounds)

    @cached_property
    def _columns(self) -> tuple[LeafColumn, ...]:
        names = self.names or tuple(f"c{c.id}" for c in self.leaf.outputs)
        triples = zip(names, self.leaf.source, self.leaf.outputs, strict=True)
        return tuple(LeafColumn(name, source, c.dtype) for name, source, c in triples)

    @cached_property
    def _hidden(self) -> tuple[LeafColumn, ...]:
        """Columns that only the deduplication needs."""
        table = self.table
        roles = (table.time_column, table.version_column, table.delete_column)
        wanted = dict.fromkeys((*table.primary_key, *(name for name in roles if name is not None)))
        given = {c.source for c in self._columns}
        kinds = {f.name: f.dtype for f in table.columns}
        names = (name for name in wanted if name not in given)
        return tuple(LeafColumn(f"__x{i}", name, kinds[name]) for i, name in enumerate(names))

    def _name(self, source: str | None) -> str:
        """The name of a column in the task's SQL; empty for none."""
        known = {c.source: c.name for c in (*self._hidden, *self._columns)}
        return "" if source is None else known[source]


def plan_chunk_scan(
    fragment: PhysicalPlan,
    leaf: DedupScanExec,
    table: TableSnapshot,
    parameters: Mapping[str, Literal],
    time_zone: str,
) -> ChunkScan:
    """What a stage reads of a deduplicated table.

    Args:
        fragment: The stage's fragment.
        leaf: The scan, a node of the fragment.
        table: Its table in the run's snapshot.
        parameters: Values of the query's parameters.
        time_zone: Session time zone.

    Raises:
        CatalogError: The table is no longer what the plan was made for.
    """
    declared = declared_table(leaf, table)
    context = ChunkContext(declared)
    above = conjuncts_above(fragment, leaf)
    positions = _positions(leaf, context)
    alike = [p for p in above if passes_dedup(substitute(p, positions), context)]
    chunks = pruned_chunks(fragment, leaf, table, parameters, time_zone)
    predicate = conjoin([substitute(p, positions) for p in above])
    columns = tuple(dict.fromkeys(leaf.source))
    first = initial_plan(chunks, context, predicate=predicate, columns=columns or None)
    plan = run_passes(first, context)
    reading = reading_of(plan, context)
    pruner = ChunkPruner(leaf, declared, [bound(p, parameters, time_zone) for p in above])
    plain = tuple(c for c in reading.plain if pruner.may_match(c))
    where = _rendered([p for p in alike if is_total(p)], parameters)
    wanted = first_rows(fragment, leaf, declared.time_column)
    found = Reading(plain, reading.groups)
    return ChunkScan(leaf, declared, plan, found, where, wanted=wanted)


def pruned_chunks(
    fragment: PhysicalPlan,
    leaf: DedupScanExec,
    table: TableSnapshot,
    parameters: Mapping[str, Literal],
    time_zone: str,
) -> tuple[Chunk, ...]:
    """The chunks that may hold a key which the filters right above the scan let through.

    Others have no part in the result, for all rows with a key are let through alike.

    Raises:
        CatalogError: The table is no longer what the plan was made for.
    """
    declared = declared_table(leaf, table)
    context = ChunkContext(declared)
    positions = _positions(leaf, context)
    above = conjuncts_above(fragment, leaf)
    alike = [p for p in above if passes_dedup(substitute(p, positions), context)]
    pruner = ChunkPruner(leaf, declared, [bound(p, parameters, time_zone) for p in alike])
    return tuple(c for c in table.chunks if pruner.may_match(c))


def whole_chunk_table(table: TableSnapshot, fields: Sequence[Field]) -> ChunkInput:
    """All rows of a deduplicated table, its columns under their own names.

    Args:
        table: The table in the run's snapshot.
        fields: The columns to give.

    Raises:
        CatalogError: It is not deduplicated.
    """
    columns = tuple(Column(i, f.name, f.dtype) for i, f in enumerate(fields))
    names = tuple(f.name for f in fields)
    key = () if table.dedup is None else table.dedup.primary_key
    leaf = DedupScanExec(table.table, columns, names, key=key)
    scan = replace(plan_chunk_scan(leaf, leaf, table, {}, "UTC"), names=names)
    files = (FileSlice(s.uri, 0, s.num_rows, s.num_rows) for s in scan.sources)
    return scan.bind(ScanSlice(tuple(files)))


def declared_table(leaf: DedupScanExec, table: TableSnapshot) -> DedupTable:
    """What the snapshot says of the table that a scan reads.

    Raises:
        CatalogError: It is not deduplicated, or by another key than the plan was made for.
    """
    if table.dedup is None or table.dedup.primary_key != leaf.key:
        now = "no key" if table.dedup is None else ", ".join(table.dedup.primary_key)
        raise CatalogError(
            f"the query was planned for table '{table.table}' with the primary key "
            f"{', '.join(leaf.key)}, which is {now} now; compile the query again"
        )
    return table.dedup


def _positions(leaf: DedupScanExec, context: ChunkContext) -> dict[int, Expression]:
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


def _place(uri: str) -> tuple[int, int]:
    """Group and slice that a source stands for."""
    number, index = uri.removeprefix(_GROUP).split(":")
    return int(number), int(index)


def _source(chunk: Chunk) -> SourceFile:
    # There are no bytes per row group; rows of one file are about equally wide.
    groups = chunk.row_groups or (chunk.num_rows,)
    sizes = tuple((rows, chunk.num_bytes * rows // chunk.num_rows) for rows in groups)
    return SourceFile(chunk.uri, sizes)


def _size(part: Slice) -> tuple[int, int]:
    """About how many rows and bytes of its chunks a slice has; at least one row."""
    rows = sum(c.num_rows * part.share(c) for c in part.chunks)
    return max(math.ceil(rows), 1), math.ceil(sum(c.num_bytes * part.share(c) for c in part.chunks))


def _time_text(value: int, dtype: DataType) -> str:
    match dtype.kind:
        case "date":
            return f"(DATE '1970-01-01' + CAST({value} AS INTEGER))"
        case "timestamp":
            return f"make_timestamptz(CAST({value} AS BIGINT))"
        case "timestamp_ntz":
            return f"make_timestamp(CAST({value} AS BIGINT))"
    return f"CAST('{value}' AS BIGINT)"
