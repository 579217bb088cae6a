"""The tasks of a merge: what keys the result has, and which files of the table hold them.

    keys of the result ─▶ KeyTask     ─▶ no key occurs twice; ranges in which the keys lie
    files of the table ─▶ RewriteTask ─▶ of a file that holds a key, its other rows in new files

Keys are equal as in GROUP BY: NULL to NULL, NaN to NaN, -0.0 to 0.0. Both tasks compare them in
DuckDB, which spills what does not fit into memory.

Worker code: runs on a Spark executor or, for little data, in the driver alike.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment
from stagecoach.infra.engines.registry import DEFAULT_ENGINE, task_engine
from stagecoach.infra.errors import QueryError
from stagecoach.infra.formats.publishing import (
    PublishError,
    WritePlan,
    plan_from_dict,
    plan_to_dict,
)
from stagecoach.infra.pruning.key_ranges import KeyRanges, has_ranges, key_ranges
from stagecoach.infra.publishing.tasks import PublishTask
from stagecoach.infra.reading.format_input import EngineInput, FormatInput, TableInput
from stagecoach.infra.reading.input_files import check_still_same
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn, ScanInput, conform, leaf_schema
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.worker.damage import raise_if_damaged
from stagecoach.infra.worker.inputs import format_input, scan_input, task_resources
from stagecoach.infra.worker.spec import (
    EXPANSION,
    TaskSettings,
    input_from_plain,
    input_to_plain,
)
from stagecoach.planner.types import DataType, parse_result_type

_KEPT_SHARE = 8  # of a task's memory: keys that take less are read once for all files


@dataclass(frozen=True, kw_only=True)
class KeyColumn:
    """A column of the key.

    Attributes:
        name: Its name in the result, for messages.
        position: Its place in the output of the head stage.
        dtype: Its type.
    """

    name: str
    position: int
    dtype: DataType

    def to_list(self) -> list[Any]:
        """Return plain data for `from_list`."""
        return [self.name, self.position, str(self.dtype)]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> KeyColumn:
        """Return the column that `to_list` described."""
        name, position, dtype = values
        return cls(name=name, position=position, dtype=parse_result_type(dtype))


@dataclass(frozen=True, kw_only=True)
class MergeTask(PublishTask):
    """A task that reads the keys of the result.

    Attributes:
        settings: How it reads.
        key: Columns of the key.
        key_bytes: About how many stored bytes the keys have.
    """

    settings: TaskSettings
    key: tuple[KeyColumn, ...]
    key_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        settings = replace(self.settings, store={}).to_dict()
        key = [column.to_list() for column in self.key]
        return {**super().to_dict(), "settings": settings, "key": key}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the task that `to_dict` described."""
        settings = TaskSettings.from_dict({**values["settings"], "store": values["store"]})
        key = tuple(map(KeyColumn.from_list, values["key"]))
        return super().from_dict({**values, "settings": settings, "key": key})

    def _keys(self, store: ObjectStore) -> ArrowInput:
        """The keys as a relation with the columns `k0`, `k1`, …."""
        columns = tuple(LeafColumn(f"k{i}", "", c.dtype) for i, c in enumerate(self.key))
        read = functools.partial(self._key_batches, store, leaf_schema(columns))
        return ArrowInput(columns, read, self.key_bytes * EXPANSION)

    def _key_batches(self, store: ObjectStore, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = [f"c{column.position}" for column in self.key]
        for batch in self.output.batches(store, columns=names):
            yield conform(batch, schema)

    @contextmanager
    def _rows(
        self, sql: str, relations: Sequence[EngineInput], schema: pa.Schema
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        resources = task_resources(self.settings)
        with task_engine(DEFAULT_ENGINE).run(
            Fragment.of(sql, relations, schema), resources
        ) as batches:
            yield batches


@dataclass(frozen=True, kw_only=True)
class KeyTask(MergeTask):
    """Looks at the keys of the result, or at a share of them.

    Attributes:
        share: Of the keys, those whose hash belongs to the part of this number of so many parts.
        range_keys: How many keys a range has.
    """

    share: tuple[int, int] = (0, 1)
    range_keys: int

    def work(self, store: ObjectStore, attempt: int) -> list[dict[str, Any]]:
        """Return the ranges of each column of the key.

        Raises:
            PublishError: A key occurs twice.
        """
        keys = self._keys(store)
        self._check_unique(keys)
        return [self._ranges(keys, place).to_dict() for place in range(len(self.key))]

    def _check_unique(self, keys: ArrowInput) -> None:
        names = ", ".join(column.name for column in keys.columns)
        sql = f"SELECT {names} FROM in_0{self._where} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
        with self._rows(sql, [keys], leaf_schema(keys.columns)) as batches:
            found = next((row for batch in batches for row in batch.to_pylist()), None)
        if found is not None:
            columns = ", ".join(column.name for column in self.key)
            shown = ", ".join(
                f"{column.name} = {_shown(value)}"
                for column, value in zip(self.key, found.values(), strict=True)
            )
            raise PublishError(
                f"several rows of the result have the key {shown}, and mode merge needs one row "
                f"for each value of the key ({columns}): aggregate or deduplicate the result, or "
                "name more columns in the key"
            )

    def _ranges(self, keys: ArrowInput, place: int) -> KeyRanges:
        column = keys.columns[place]
        if not has_ranges(column.dtype):
            return KeyRanges(ranges=None)
        name, has_null = column.name, False
        sql = f"SELECT DISTINCT {name} FROM in_0{self._where} ORDER BY {name} NULLS FIRST"
        schema = pa.schema([leaf_schema(keys.columns).field(place)])
        with self._rows(sql, [keys], schema) as batches:
            first = next(batches, None)
            if first is None:
                return KeyRanges(ranges=(), has_null=False)
            has_null = first.column(0).null_count > 0

            def arrays() -> Iterator[pa.Array]:
                yield first.column(0).drop_null()
                for batch in batches:
                    yield batch.column(0)

            return key_ranges(column.dtype, arrays(), has_null=has_null, size=self.range_keys)

    @property
    def _where(self) -> str:
        index, count = self.share
        if count == 1:
            return ""
        names = ", ".join(f"k{i}" for i in range(len(self.key)))
        return f" WHERE hash({names}) % {count} = {index}"


@dataclass(frozen=True, kw_only=True)
class BaseFile:
    """A file of the table that may hold a key.

    Attributes:
        uri: The file.
        keys: Its rows with the columns of the key, `c0`, `c1`, …, of those that the plan writes.
        rows: Its rows with all columns, which have the same names.
    """

    uri: str
    keys: TableInput
    rows: TableInput


@dataclass(frozen=True, kw_only=True)
class RewriteTask(MergeTask):
    """Rewrites files of the table without the rows whose keys are in the result.

    Attributes:
        files: The files.
        places: Places of the columns of the key among those that the plan writes.
        plan: How the other rows are written.
    """

    files: tuple[BaseFile, ...]
    places: tuple[int, ...]
    plan: WritePlan

    def work(self, store: ObjectStore, attempt: int) -> Iterator[dict[str, Any]]:
        """Yield for each file how many of its rows go, and what took its place if there are any."""
        keys = _read_once(self._keys(store), self.settings.memory_bytes)
        options = StorageOptions.from_dict(self.settings.store.get("options", {}))
        on = " AND ".join(
            f"in_0.c{place} IS NOT DISTINCT FROM in_1.k{i}" for i, place in enumerate(self.places)
        )
        counted = pa.schema([("n", pa.int64())])
        for file in self.files:
            with self._of_table(file.keys) as found:
                sql = f"SELECT count(*) FROM in_0 SEMI JOIN in_1 ON {on}"
                with self._rows(sql, [found, keys], counted) as batches:
                    matched = sum(sum(batch.column(0).to_pylist()) for batch in batches)
            written = None
            if matched:
                with self._of_table(file.rows) as found:
                    names = ", ".join(column.name for column in found.columns)
                    sql = f"SELECT {names} FROM in_0 ANTI JOIN in_1 ON {on}"
                    with self._rows(sql, [found, keys], leaf_schema(found.columns)) as batches:
                        written = self.plan.write_reported(
                            store,
                            batches,
                            task_index=self.task_index,
                            attempt=attempt,
                            writes_empty=False,
                        )
            for spec in (file.keys, file.rows):
                check_still_same(_files(spec), options)
            yield {"uri": file.uri, "matched": matched, "written": written}

    @contextmanager
    def _of_table(self, spec: TableInput) -> Iterator[EngineInput]:
        found: EngineInput
        if isinstance(spec, ScanInput):
            found = scan_input(spec, self.settings)
        else:
            found = format_input(spec, self.settings)
        try:
            yield found
        except QueryError as error:
            raise_if_damaged(error, [found])
            raise

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        files = [[f.uri, input_to_plain(f.keys), input_to_plain(f.rows)] for f in self.files]
        return {**super().to_dict(), "files": files, "plan": plan_to_dict(self.plan)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the task that `to_dict` described."""
        changed = {
            "files": tuple(
                BaseFile(uri=uri, keys=_table_input(keys), rows=_table_input(rows))
                for uri, keys, rows in values["files"]
            ),
            "places": tuple(values["places"]),
            "plan": plan_from_dict(values["plan"]),
        }
        return super().from_dict({**values, **changed})


def _table_input(values: Mapping[str, Any]) -> TableInput:
    found = input_from_plain(values)
    if not isinstance(found, ScanInput | FormatInput):
        raise TypeError(f"{type(found).__name__} is not what a scan of a table reads")
    return found


def _files(spec: TableInput) -> Sequence[Any]:
    return spec.files if isinstance(spec, ScanInput) else spec.file_rows


def _read_once(keys: ArrowInput, memory_bytes: int) -> ArrowInput:
    """The keys, held in memory if they are small: each file is compared with all of them."""
    if keys.num_bytes > memory_bytes // _KEPT_SHARE:
        return keys
    kept: list[pa.RecordBatch] = list(keys.batches())
    read: Callable[[], Iterator[pa.RecordBatch]] = functools.partial(iter, kept)
    return replace(keys, batches=read)


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)
