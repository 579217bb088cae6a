"""How the result of a query becomes a version of a table, whatever the format of the table.

    PublishTarget ──result_writer──▶ ResultWriter ── its plan ─▶ tasks write files
                                          ▲                          │
                                          └──────── add ─────────────┘ then publish, or stage first

A format that results can be published in derives `WritePlan`, and its `StoredFormat.result_writer`
returns a `ResultWriter`; one that takes mode `merge`, a `MergeWriter`. Nothing heavy is imported
here: projects are checked with it.

Worker code.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.registry import load
from stagecoach.planner.types import Field

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.formats.snapshot import TableSnapshot
    from stagecoach.infra.formats.staged_version import StagedVersion
    from stagecoach.infra.formats.stored_version import StoredVersion
    from stagecoach.infra.storage.object_store import ObjectStore

PublishMode = Literal["replace", "append", "replace_partition", "merge"]


class PublishError(StagecoachError):
    """A result cannot be published as it is asked for: a mistake in the query or its output."""


class StagedGoneError(PublishError):
    """What a run has staged was discarded, or replaced, before it was published."""

    retryable = True


class TableChangedError(StagecoachError):
    """A table has another version than the one that a merge looked at; nothing was committed."""


class OutputError(PublishError):
    """What a query says of its output does not fit the format.

    Args:
        key: The key of `output` that is wrong.
        message: What is wrong with it, and what to do.
    """

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class PartitionWindow:
    """The time window of one of Dagster's partitions.

    Args:
        key: The partition key.
        start: First moment; with a zone, unless the column is a date or has none either.
        end: First moment after it.
    """

    key: str
    start: datetime.date | datetime.datetime
    end: datetime.date | datetime.datetime

    def to_list(self) -> list[str]:
        """Return plain data for `from_list`."""
        return [self.key, self.start.isoformat(), self.end.isoformat()]

    @classmethod
    def from_list(cls, values: Sequence[str]) -> Self:
        """Return the window that `to_list` described."""
        key, start, end = values
        return cls(key, _moment(start), _moment(end))


@dataclass(frozen=True, kw_only=True)
class PublishTarget:
    """Where a result goes and what becomes of what is there.

    Attributes:
        table: Name of the table.
        format: Name of its format; empty for the default, the first of those of stored tables.
        place: Where the table is, as the format's `declare_output` returned it; plain data.
        mode: `replace` all rows, `append`, `replace_partition`: those of the partition keys, or
            `merge`: those with the keys of the result's rows.
        key: The columns by which `merge` finds rows.
        delete_column: The boolean column of the result that is true where `merge` removes the key;
            the table does not have it. None if no row is removed.
        partition_keys: Dagster's partitions that the run computed; none for one without.
        partition_column: Column of the result that tells a row's partition. Needed for several
            partition keys; with one, rows that belong elsewhere are an error.
        windows: The time window of each partition key, for a date or timestamp column; without
            them the column's text is the partition key.
        partition_by: Columns whose values tell files apart, outermost first.
        keep_versions: How many of the newest versions gc leaves alone.
        target_file_bytes: Size at which a file ends.
        comments: What columns mean, for people: names and texts.
    """

    table: str
    format: str = ""
    place: Mapping[str, Any] = field(default_factory=dict, hash=False)
    mode: PublishMode = "replace"
    key: tuple[str, ...] = ()
    delete_column: str | None = None
    partition_keys: tuple[str, ...] = ()
    partition_column: str | None = None
    windows: tuple[PartitionWindow, ...] = ()
    partition_by: tuple[str, ...] = ()
    keep_versions: int = 5
    target_file_bytes: int = 256 << 20
    comments: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        windows = [window.to_list() for window in self.windows]
        return {**vars(self), "place": dict(self.place), "windows": windows}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the target that `to_dict` described."""
        lists = {name: tuple(values[name]) for name in ("key", "partition_keys", "partition_by")}
        return cls(
            **{
                **values,
                **lists,
                "windows": tuple(map(PartitionWindow.from_list, values["windows"])),
                "comments": tuple((name, text) for name, text in values["comments"]),
            }
        )


class WrittenFile(Protocol):
    """A file of a table."""

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        ...

    @property
    def num_bytes(self) -> int:
        """Size in bytes."""
        ...


class WritePlan(ABC):
    """How tasks write the files of one commit; travels to them as plain data and its class."""

    table: str
    """Name of the table."""

    @abstractmethod
    def sized(self, target_bytes: int) -> Self:
        """Return the same plan with another size at which a file ends."""

    @abstractmethod
    def write_reported(
        self,
        store: ObjectStore,
        batches: Iterable[pa.RecordBatch],
        *,
        task_index: int,
        attempt: int,
        writes_empty: bool,
    ) -> list[dict[str, Any]]:
        """Write rows to files that no version names yet, and describe the files as plain data.

        Args:
            store: The storage root.
            batches: The rows; columns go by position.
            task_index: Place of the rows among those that others write.
            attempt: Number of the try; files have names of their own whatever it is.
            writes_empty: Whether a file is written even if there are no rows.

        Returns:
            For `ResultWriter.add`, in the order of the rows.

        Raises:
            PublishError: A row belongs to no partition.
            StorageError: The store failed.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the plan that `to_dict` described."""


def plan_to_dict(plan: WritePlan) -> dict[str, Any]:
    """Return plain data for `plan_from_dict`."""
    cls = type(plan)
    return {"class": f"{cls.__module__}:{cls.__qualname__}", "values": plan.to_dict()}


def plan_from_dict(values: Mapping[str, Any]) -> WritePlan:
    """Return the plan that `plan_to_dict` described."""
    cls = load(values["class"])
    if not (isinstance(cls, type) and issubclass(cls, WritePlan)):
        raise TypeError(f"{values['class']} is not a WritePlan")
    return cls.from_dict(values["values"])


@dataclass(frozen=True, kw_only=True)
class PublishedPart:
    """What a version of a table holds of one result.

    Attributes:
        files: Its files.
        partition_rows: Its rows by partition key; the one key is None without partitions.
    """

    files: tuple[WrittenFile, ...]
    partition_rows: Mapping[str | None, int]


class ResultWriter(Protocol):
    """One commit of a result; nothing is visible until `publish` returns.

    Its files may wait: `stage_commit` keeps them, and this process or another one publishes them.
    """

    @property
    def plan(self) -> WritePlan:
        """How its files are written."""
        ...

    @property
    def fingerprint(self) -> str:
        """Identity of the rows: they are published once only."""
        ...

    @property
    def reused(self) -> bool:
        """Whether another writer had published the result when `publish` came to it."""
        ...

    @property
    def adopted(self) -> bool:
        """Whether what is staged was written by another writer, and not by this one's plan."""
        ...

    @property
    def version(self) -> StoredVersion:
        """The version that holds the rows, once they are published."""
        ...

    def find_published(self) -> StoredVersion | None:
        """Return the newest version if the table is already what the commit would make of it.

        Raises:
            PublishError: The table does not take such rows; nothing need be written.
            StorageError: The store failed.
        """
        ...

    def add(self, written: Iterable[Mapping[str, Any]]) -> None:
        """Take files that tasks wrote by `plan`, as they described them."""
        ...

    def publish(self) -> int:
        """Commit the files and return the number of the version that holds the rows.

        Raises:
            StagedGoneError: They were staged, and are not any more.
            PublishError: The table does not take them; then they are discarded, unless they are
                staged.
            StorageError: The store failed; may be called again.
        """
        ...

    def part_of(self, version: StoredVersion) -> PublishedPart:
        """Return what a version holds of the result."""
        ...

    def find_staged(self) -> StagedVersion | None:
        """Return what is staged of this result for this purpose; then `publish` publishes that.

        Raises:
            StorageError: The store failed.
        """
        ...

    def stage_commit(self) -> StagedVersion | None:
        """Stage the files that were added: they stay, and no reader of the table sees them.

        `publish` makes them visible, in this process or in another one after `find_staged`. It
        applies the change to the table as it is then, and raises `StagedGoneError` if the files
        are not staged any more.

        Returns:
            What is staged; None if another writer has published the same rows meanwhile.

        Raises:
            PublishError: The table does not take them.
            StorageError: The store failed; may be called again.
        """
        ...


class MergeWriter(ResultWriter, Protocol):
    """One commit of a merge: it adds the rows of a result and replaces files that hold their keys.

    The files of the result's rows are written and added as in any other mode. Then, until `publish`
    succeeds:

        merge_base ─▶ files that may hold a key ─▶ tasks write the other rows ─▶ rewritten, publish

    `publish` commits only on the version that `merge_base` has returned. If another writer was
    first, it raises `TableChangedError`, and only files that are new in the table are looked at.

    What is staged of a merge is the merge of one version, which is published only while the table
    is at that version. `find_staged` returns None if it is not.
    """

    def merge_base(self) -> TableSnapshot | None:
        """Return the table as it is now; None if it has no files.

        Raises:
            PublishError: The table does not take the rows.
            StorageError: The store failed.
        """
        ...

    @property
    def rewrite_plan(self) -> WritePlan:
        """How the rows are written that stay of files which are replaced.

        They come with the columns of the table in the result's order.
        """
        ...

    def rewritten(self, files: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Say by which files the commit replaces files of the base; the last call counts.

        Args:
            files: By the URI of the replaced file, those that were written by `rewrite_plan`, as
                they were described; none if all of its rows go.
        """
        ...


def _moment(text: str) -> datetime.date | datetime.datetime:
    kind = datetime.datetime if "T" in text else datetime.date
    return kind.fromisoformat(text)


def stored_columns(columns: Sequence[Field], delete_column: str | None) -> tuple[Field, ...]:
    """Return the columns of a result that its table has: all but the one that removes keys."""
    if delete_column is None:
        return tuple(columns)
    return tuple(c for c in columns if c.name.lower() != delete_column.lower())


def column_difference(left: Sequence[Field], right: Sequence[Field]) -> str | None:
    """The first difference between two lists of columns in words (`left` first), or None."""
    ours, theirs = ({f.name: f.dtype for f in side} for side in (left, right))
    for name in [*ours, *theirs]:
        if ours.get(name) != theirs.get(name):
            one, other = ours.get(name, "missing"), theirs.get(name, "missing")
            return f"column {name!r} is {one} there and {other} here"
    if [f.name for f in left] != [f.name for f in right]:
        return "the columns are in another order"
    return None
