"""Tasks as plain data that travels to executors: what each of them reads, runs and writes.

Worker code.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stagecoach.infra.engines.registry import DEFAULT_ENGINE
from stagecoach.infra.functions.function_set import NO_FUNCTIONS, FunctionSet
from stagecoach.infra.integrity.local import FileChecks
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.format_input import (
    FormatInput,
    TableInput,
    input_from_dict,
    input_to_dict,
)
from stagecoach.infra.reading.inputs import LeafColumn, ScanInput
from stagecoach.infra.reading.row_bounds import BoundsTest
from stagecoach.infra.shuffle.map_file import Codec, OutputPartitioning
from stagecoach.infra.shuffle.row_order import RowOrder
from stagecoach.infra.shuffle.sorted_blocks import SortedRange
from stagecoach.infra.storage.known_objects import KnownObjects
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.sealed import PropertyReader, opened
from stagecoach.infra.storage.stores import store_from_dict
from stagecoach.infra.worker.bloom import BloomStep
from stagecoach.planner.types import DataType, parse_result_type

EXPANSION = 3
"""Stored shuffle bytes are compressed; about this many bytes in memory each."""


@dataclass(frozen=True, kw_only=True)
class ShuffleInput:
    """Partitions `low` to `high` (exclusive) of another stage's output.

    Args:
        columns: Names in the fragment and types, in the producer's order.
        fingerprint: Which output.
        manifest_hash: Which commit of it the run pinned.
        stage: The producer's name, for messages.
        num_bytes: Stored bytes of those partitions.
        files: First of the map files that are read and the one after the last; None for all.
        share: Of the rows of each batch, the part of this number of so many parts.
        sorted_range: The rows of sorted files that are read; None for all.
        shared: Whether other tasks read the same, so that a worker keeps it for its next ones.
    """

    columns: tuple[LeafColumn, ...]
    fingerprint: str
    manifest_hash: str
    stage: str
    low: int
    high: int
    num_bytes: int = 0
    files: tuple[int, int] | None = None
    share: tuple[int, int] = (0, 1)
    sorted_range: SortedRange | None = None
    shared: bool = False


InputSpec = TableInput | ShuffleInput


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How a task finds out whether its partial aggregate reduces its rows.

    Args:
        sql: The fragment that gives each row as a state of its own instead.
        num_keys: How many of the first columns are keys.
        leaf: Position of the input that is sampled.
        num_rows: Rows of the sample.
        of_rows: About how many rows that input has.
        files: What the sample is, of a scan; of a stage's output it is the first rows.
        share: Groups per row from which the rows are passed on.
    """

    sql: str
    num_keys: int
    leaf: int
    num_rows: int
    of_rows: int
    files: tuple[DataFile, ...]
    share: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        return {**vars(self), "files": [f.to_list() for f in self.files]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Trial:
        """The trial that `to_dict` described."""
        files = tuple(map(DataFile.from_list, values["files"]))
        return cls(**{**values, "files": files})


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """What a task needs of the engine settings; sizes are bytes, zeros are resolved.

    Args:
        store: The object store as `ObjectStore.to_dict` describes it; may hold secrets.
        time_zone: Session time zone, an IANA name.
        directories: Local folders that hold table files.
        num_readers: How many tasks with these settings may run at the same time.
        verify_files: Whether table files are compared with their checksums.
        verify_pages: Whether the pages of other Parquet files are.
        verify_seconds: How long a check of a local file counts.
        functions: Functions of the project that the stage calls.
        threads: Cores that the engine of a task may use.
        chooses_build_side: Whether the engine may make the hash table of the left side of a join.
        known: Objects of the store that the driver has at hand, as base64, by key.
    """

    store: Mapping[str, Any] = field(repr=False)
    time_zone: str
    memory_bytes: int
    writer_memory_bytes: int
    max_spill_bytes: int
    spill_dir: str
    codec: Codec
    reader_memory_bytes: int = 128 << 20
    broadcast_cache_bytes: int = 0
    directories: tuple[str, ...] = ()
    num_readers: int = 1
    verify_files: bool = True
    verify_pages: bool = True
    verify_seconds: float = 600.0
    functions: FunctionSet = NO_FUNCTIONS
    threads: int = 1
    chooses_build_side: bool = False
    known: Mapping[str, str] = field(default_factory=dict, repr=False)

    def open_store(self) -> ObjectStore:
        """The store, of which what the driver has at hand is not asked for.

        Raises:
            StorageError: It cannot be opened.
        """
        store = store_from_dict(self.store)
        if not self.known:
            return store
        return KnownObjects(store, {key: b64decode(text) for key, text in self.known.items()})

    @property
    def checks(self) -> FileChecks:
        """What is checked of table files, and how often."""
        return FileChecks(
            files=self.verify_files,
            pages=self.verify_pages,
            seconds=self.verify_seconds,
            folder=self.spill_dir,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        return {
            **vars(self),
            "directories": list(self.directories),
            "functions": self.functions.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TaskSettings:
        """The settings that `to_dict` described."""
        return cls(
            **{
                **values,
                "directories": tuple(values["directories"]),
                "functions": FunctionSet.from_dict(values["functions"]),
            }
        )


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """One task of a stage.

    Args:
        query: Name of the query.
        stage_id: Number of the stage in it.
        fingerprint: Identity of the stage's output, and where it goes.
        task_index: 0-based number of the task.
        sql: The fragment, a SELECT over `in_0`, `in_1`, ….
        inputs: What those are.
        types: Pinned types of the output columns `c0`, `c1`, ….
        output: How the output is divided.
        settings: Shared by all tasks of the stage.
        trial: How the task chooses between two forms of the fragment; None where it has one.
        order: How the output is sorted, where ranges of it may be read; None where it is not.
        bloom: What becomes of the rows of the fragment before they are written; None for nothing.
        engine: Which engine runs the SQL (`stagecoach.infra.engines.registry`).
        variables: Values that the SQL reads and that are known late or differ by task, by name.
    """

    query: str
    stage_id: int
    fingerprint: str
    task_index: int
    sql: str
    inputs: tuple[InputSpec, ...]
    types: tuple[DataType, ...]
    output: OutputPartitioning
    settings: TaskSettings
    order: RowOrder | None = None
    bloom: BloomStep | None = None
    trial: Trial | None = None
    engine: str = DEFAULT_ENGINE
    variables: Mapping[str, int] = field(default_factory=dict)

    @property
    def fragment_types(self) -> tuple[DataType, ...]:
        """Types of the columns that the SQL gives."""
        return self.types if self.bloom is None else self.bloom.types or self.types

    @property
    def stage_name(self) -> str:
        """Name of the stage as messages show it."""
        return f"{self.query}/stage_{self.stage_id}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        return {
            "query": self.query,
            "stage_id": self.stage_id,
            "fingerprint": self.fingerprint,
            "task_index": self.task_index,
            "sql": self.sql,
            "inputs": [input_to_plain(i) for i in self.inputs],
            "types": [str(t) for t in self.types],
            "output": self.output.to_dict(),
            "settings": self.settings.to_dict(),
            "trial": None if self.trial is None else self.trial.to_dict(),
            "order": None if self.order is None else self.order.to_list(),
            "bloom": None if self.bloom is None else self.bloom.to_dict(),
            "engine": self.engine,
            "variables": dict(self.variables),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], read: PropertyReader | None = None) -> TaskSpec:
        """The spec that `to_dict` described.

        Args:
            values: Plain data, whose store may be sealed.
            read: Reads the property with which it is opened.

        Raises:
            StorageRefusedError: The store cannot be opened.
        """
        settings = dict(values["settings"])
        settings["store"] = opened(settings["store"], read)
        return cls(
            query=values["query"],
            stage_id=values["stage_id"],
            fingerprint=values["fingerprint"],
            task_index=values["task_index"],
            sql=values["sql"],
            inputs=tuple(input_from_plain(i) for i in values["inputs"]),
            types=tuple(parse_result_type(t) for t in values["types"]),
            output=OutputPartitioning.from_dict(values["output"]),
            settings=TaskSettings.from_dict(settings),
            trial=None if values["trial"] is None else Trial.from_dict(values["trial"]),
            order=None if values["order"] is None else RowOrder.from_list(values["order"]),
            bloom=None if values["bloom"] is None else BloomStep.from_dict(values["bloom"]),
            engine=values["engine"],
            variables=values["variables"],
        )


def input_to_plain(spec: InputSpec) -> dict[str, Any]:
    """Plain data for `input_from_plain`."""
    if isinstance(spec, FormatInput):
        return {"kind": "format", **input_to_dict(spec)}
    columns = [c.to_list() for c in spec.columns]
    if isinstance(spec, ScanInput):
        files = [f.to_list() for f in spec.files]
        test = None if spec.test is None else spec.test.to_list()
        return {"kind": "scan", "columns": columns, "files": files, "test": test}
    part = None if spec.sorted_range is None else spec.sorted_range.to_dict()
    return {"kind": "shuffle", **vars(spec), "columns": columns, "sorted_range": part}


def input_from_plain(values: Mapping[str, Any]) -> InputSpec:
    """The input that `input_to_plain` described."""
    if values["kind"] == "format":
        return input_from_dict(values)
    columns = tuple(LeafColumn.from_list(c) for c in values["columns"])
    if values["kind"] == "scan":
        test = None if values["test"] is None else BoundsTest.from_list(values["test"])
        files = tuple(map(DataFile.from_list, values["files"]))
        return ScanInput(columns=columns, files=files, test=test)
    found = {k: v for k, v in values.items() if k not in ("kind", "columns")}
    found["files"] = None if values["files"] is None else tuple(values["files"])
    found["share"] = tuple(values["share"])
    if values["sorted_range"] is not None:
        found["sorted_range"] = SortedRange.from_dict(values["sorted_range"])
    return ShuffleInput(columns=columns, **found)
