"""Publishes a result in a table of a lake: data files in place, then one commit of the format.

    find_published ─▶ the table, created if need be ─▶ plan ─▶ tasks write ─▶ publish
                                                        │                       │
                                          pending/<token>.json                removed

A run that dies on the way leaves files that no version names, and the record of them, by which
garbage collection finds them. A commit that finds another writer's before it is made again on the
new version, after a look at whether that has published the same rows. A merge is made only on the
version that it has looked at.
"""

from __future__ import annotations

import datetime
import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.lake_tables import leftovers
from stagecoach.infra.formats.lake_tables.publications import (
    LakeVersion,
    PastCommit,
    Publication,
    find_commit,
    find_merge,
    find_publication,
)
from stagecoach.infra.formats.lake_tables.write_plan import LakePlan
from stagecoach.infra.formats.publishing import (
    PublishedPart,
    PublishError,
    PublishTarget,
    TableChangedError,
)
from stagecoach.infra.formats.row_keys import target_row_keys
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.version_log import new_token
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.planner.types import Field

MAX_COMMIT_TRIES = 20
_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 5.0

T = TypeVar("T")
C = TypeVar("C")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AddedFile:
    """A data file; a `WrittenFile`."""

    path: str
    num_rows: int
    num_bytes: int


class LakeWriter(ABC, Generic[T, C]):
    """One commit to a table of a lake; a `MergeWriter`.

    A format has the table as a `T` and a version of it as a `C`.

    Args:
        store: The storage root.
        target: The table, and what becomes of the rows that are there.
        columns: The result's columns.
        fingerprint: Identity of the rows: they are published once only.
        run_id: The run.

    Raises:
        PublishError: The columns do not fit the target.
    """

    folder: str
    """Folder of the format in the storage root."""

    def __init__(
        self,
        store: ObjectStore,
        target: PublishTarget,
        columns: Sequence[Field],
        *,
        fingerprint: str,
        run_id: str = "",
    ) -> None:
        self._store = store
        self._target = target
        self._columns = tuple(columns)
        self._check_result()
        self._options = StorageOptions.of(store)
        self._row_keys = target_row_keys(self._columns, target)
        self._reported: list[Mapping[str, Any]] = []
        self._holder: tuple[T, C] | None = None
        self._plan: LakePlan | None = None
        self._base: int | None = None
        self._rewritten: dict[str, list[Mapping[str, Any]]] = {}  # of a merge, by replaced file
        self._first_version: int | None = None  # nothing of this commit is in it or before it
        self._commit_until: datetime.datetime | None = None
        self.reused = False
        self._published = Publication(
            fingerprint=fingerprint,
            mode=target.mode,
            token=new_token(),
            run_id=run_id,
            rows=dict.fromkeys(target.partition_keys or (None,), 0),
        )

    @abstractmethod
    def _check_columns(self) -> None:
        """Look whether a table of the format can have the columns; raises PublishError."""

    @abstractmethod
    def _find_table(self) -> T | None:
        """Return the table as it is now, and note its place; None if there is none."""

    @abstractmethod
    def _created(self) -> T:
        """Create the table, unless another writer is first."""

    @abstractmethod
    def _check_fits(self, table: T) -> None:
        """Look whether the table takes the rows; raises PublishError."""

    @abstractmethod
    def _check_removable(self, table: T) -> None:
        """Look whether what the rows replace can be removed; raises PublishError."""

    @abstractmethod
    def _new_plan(self, table: T, token: str) -> LakePlan:
        """Return how the files of the commit with a token are written."""

    @abstractmethod
    def _newest(self, table: T) -> int | None:
        """Return the number of the table's present version; None if it has none."""

    @abstractmethod
    def _snapshot_of(self, table: T) -> TableSnapshot:
        """Return the files of the table's present version."""

    @abstractmethod
    def _try(self, table: T) -> bool:
        """Commit on the present version of the table; whether nobody was first.

        It adds `_described`, and a merge removes the files of `_rewritten`.
        """

    @abstractmethod
    def _find(self, table: T) -> C | None:
        """Return the version that has made the table what the commit would make of it."""

    @abstractmethod
    def _publication_of(self, commit: C) -> Publication | None:
        """Return what a version says of itself."""

    @abstractmethod
    def _version_of(self, table: T, commit: C) -> LakeVersion:
        """Return a version as commands show it."""

    @abstractmethod
    def _number_of(self, commit: C) -> int:
        """Return the number of a version."""

    @abstractmethod
    def _added(self, table: T, commit: C) -> tuple[AddedFile, ...]:
        """Return the data files that came with a version."""

    @property
    def plan(self) -> LakePlan:
        """How its files are written; creates the table if there is none."""
        # Not a cached property: those of all writers would wait for each other.
        if self._plan is None:
            plan = self._new_plan(self._opened(), self._published.token)
            leftovers.begin(self._store, self.folder, plan.table, plan.token, plan.location)
            self._plan = plan
        return self._plan

    @property
    def fingerprint(self) -> str:
        """Identity of the rows."""
        return self._published.fingerprint

    @property
    def version(self) -> StoredVersion:
        """The version that holds the rows, once they are published."""
        table, commit = self._held()
        return self._version_of(table, commit)

    def find_published(self) -> StoredVersion | None:
        """Return the version that has made the table what the commit would make of it.

        Raises:
            PublishError: The table does not take such rows; nothing need be written.
            StorageError: The table or its storage does not answer.
        """
        table = self._find_table()
        if table is None:
            return None
        self._check_fits(table)
        found = self._find(table)
        if found is None:
            self._check_removable(table)  # what cannot be removed is told before anything is done
            return None
        self._holder = table, found
        return self._version_of(table, found)

    def add(self, written: Iterable[Mapping[str, Any]]) -> None:
        """Take files that tasks wrote by `plan`, as they described them."""
        self._reported += written
        rows = dict.fromkeys(self._published.rows, 0)
        for values in self._reported:
            rows[values["partition_key"]] += values["num_rows"]
        self._published = replace(self._published, rows=rows)

    @property
    def rewrite_plan(self) -> LakePlan:
        """How the rows are written that stay of files which are replaced."""
        return self.plan.rewriting()

    def merge_base(self) -> TableSnapshot | None:
        """Return the table as it is now, on which a merge is committed; None if it has no files.

        Raises:
            PublishError: The table does not take the rows; then they are discarded, unless they are
                staged.
            StorageError: The table or its storage does not answer.
        """
        table = self._opened()
        try:
            self._check_fits(table)
        except PublishError:
            self._give_up()
            raise
        self._base = self._newest(table)
        found = self._snapshot_of(table)
        return found if found.files else None

    def rewritten(self, files: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Say by which files a merge replaces files of its base."""
        self._rewritten = {uri: list(written) for uri, written in files.items()}

    @property
    def _described(self) -> list[Mapping[str, Any]]:
        """All files that the commit adds, as tasks described them."""
        return [*self._reported, *(f for some in self._rewritten.values() for f in some)]

    def publish(self) -> int:
        """Commit the files by one version and return its number.

        Raises:
            PublishError: The table does not take them; then they are discarded.
            TableChangedError: A merge has another base; it may look at the table again.
            StorageError: The table or its storage failed; may be called again.
        """
        plan = self.plan
        if self._holder is None:
            try:
                self._publish()
            except PublishError:
                self._give_up()
                raise
        _, commit = self._held()
        ours = self._publication_of(commit)
        if ours is None or ours.token != plan.token:
            log.info("table %s: another writer has published the same rows", plan.table)
            self.reused = True
            self.discard()
        else:
            self._end(str(values["path"]) for values in self._described)
        return self._number_of(commit)

    def discard(self) -> None:
        """Remove the files; gc would find them too."""
        self._reported, self._rewritten = [], {}
        self._end(())

    def _give_up(self) -> None:
        """The commit will not be made: remove its files."""
        self.discard()

    def part_of(self, version: StoredVersion) -> PublishedPart:
        """Return what a version holds of these rows."""
        table, commit = self._held()
        if version.number != self._number_of(commit):
            raise TypeError(f"not the version that was published: {version!r}")
        ours = self._publication_of(commit)
        rows = {} if ours is None else ours.rows
        keys = self._target.partition_keys or (None,)
        return PublishedPart(
            files=self._added(table, commit),
            partition_rows={key: rows[key] for key in keys if key in rows},
        )

    def _publish(self) -> None:
        wait = _FIRST_WAIT_SECONDS
        for _ in range(MAX_COMMIT_TRIES):
            table = self._opened()
            # First of all: the files of a commit that was made after all must not be discarded.
            if (found := self._find(table)) is not None:
                self._holder = table, found
                return
            self._check_fits(table)
            self._check_base(table)
            self._check_time()
            if self._try(table):
                table = self._opened()
                found = self._find(table)
                if found is None:
                    raise StorageError(
                        f"the commit to table '{self._target.table}' is gone; run it again"
                    )
                self._holder = table, found
                return
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        raise StorageError(
            f"table '{self._target.table}': other writers were first {MAX_COMMIT_TRIES} times; "
            "run it again when they are done"
        )

    def _end(self, paths: Iterable[str]) -> None:
        """Remove files of attempts that failed; the commit is over.

        Args:
            paths: The files that it has.
        """
        plan = self.plan
        kept = {path.rsplit("/", 1)[1] for path in paths}
        leftovers.remove_others(plan.data_store(self._store), kept)
        leftovers.end(self._store, self.folder, plan.table, plan.token)

    def _opened(self) -> T:
        """The table as it is now; created if there is none."""
        found = self._find_table()
        return self._created() if found is None else found

    def _check_as_planned(self, trees: Sequence[object], partition_by: Sequence[str]) -> None:
        """Look whether the table has the columns and partitions for which the files are written.

        Raises:
            PublishError: It has not.
        """
        plan = self.plan
        if tuple(trees) != plan.trees or tuple(partition_by) != plan.partition_by:
            raise PublishError(
                f"table '{self._target.table}' has got other columns or partitions since its files "
                "were written; run it again"
            )

    def _check_base(self, table: T) -> None:
        """Look whether a merge has looked at the version on which it is committed."""
        newest = self._newest(table)
        if self._target.mode == "merge" and newest != self._base:
            raise TableChangedError(f"version {newest} was committed after {self._base} was read")

    def _check_time(self) -> None:
        until = self._commit_until
        if until is not None and datetime.datetime.now(datetime.UTC) > until:
            raise StorageError(
                f"table '{self._target.table}': publishing took too long, so it may have been "
                "discarded meanwhile; run it again"
            )

    def _find_in(
        self,
        history: Callable[[], Iterable[PastCommit[C]]],
        newer: Callable[[], Iterable[PastCommit[C]]] | None = None,
    ) -> C | None:
        """Return the version that has made the table what the commit would make of it.

        Args:
            history: Gives the versions that made the table what it is, newest first.
            newer: Gives those that may be the commit itself, if they are not all.
        """
        ours, mode = self._published, self._target.mode
        found = find_publication(history(), mode, ours.fingerprint, tuple(ours.rows))
        if found is None and mode == "merge":
            found = find_merge(history(), ours)
        return find_commit((newer or history)(), ours.token) if found is None else found

    def _check_result(self) -> None:
        target = self._target
        try:
            if not self._columns:
                raise PublishError("the result has no columns; select at least one")
            self._check_columns()
        except PublishError as error:
            raise PublishError(f"table '{target.table}': {error}") from None
        if target.mode == "replace_partition" and target.partition_column is None:
            raise PublishError(
                f"table '{target.table}': mode replace_partition needs the column of the result "
                "that tells a row's partition (partitions.column); name it"
            )

    def _held(self) -> tuple[T, C]:
        if self._holder is None:
            raise PublishError(f"the rows for table '{self._target.table}' are not published yet")
        return self._holder
