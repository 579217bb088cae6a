"""Stages a commit to a table of a lake: its files are in place, and the lake does not name them.

    tasks write ─▶ stage_commit: the commit as plain data, and an entry of the log of what is staged
                        │
                        ▼ in this process, or in another one that makes the commit of the data anew
                   claim ─▶ the format's own commit ─▶ the entry is removed ─▶ the data is removed

Until then nothing of it is in the lake. What is staged is the change: it is committed on whatever
the table is by then. A merge has been made on one version, and is committed on that one only.
"""

from __future__ import annotations

import datetime
import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.lake_tables import leftovers
from stagecoach.infra.formats.lake_tables.staged_log import (
    PUBLISH_TIME,
    StagedCommit,
    StagedLog,
)
from stagecoach.infra.formats.lake_tables.write_plan import LakePlan
from stagecoach.infra.formats.lake_tables.writer import LakeWriter
from stagecoach.infra.formats.publishing import (
    PublishError,
    PublishTarget,
    StagedGoneError,
    TableChangedError,
    plan_from_dict,
    plan_to_dict,
)
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.staged_version import StagedVersion, staged_id
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.table_places import read_place
from stagecoach.infra.formats.version_log import utc_now
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.serde import decode

T = TypeVar("T")
C = TypeVar("C")

log = logging.getLogger(__name__)


class StagingLakeWriter(LakeWriter[T, C]):
    """One commit to a table of a lake, which may wait; see `LakeWriter`."""

    _staged: StagedCommit | None = None
    adopted = False

    @abstractmethod
    def _state_with(self, table: T) -> TableState:
        """Return what the table would be with the commit; raises PublishError.

        A merge is that of `_base`, all else of the table as it is.
        """

    @classmethod
    def of_staged(cls, store: ObjectStore, table: str, commit: StagedCommit) -> Self:
        """Return the writer of a commit that is staged.

        Args:
            store: The storage root.
            table: Name of the table.
            commit: What is staged.

        Raises:
            PublishError: Results of the table are published in another place by now.
            StagedGoneError: It has been published.
            StorageError: Its record is damaged, or the store failed.
        """
        values = cls._record(store, table, commit)
        target = PublishTarget.from_dict(values["target"])
        if read_place(store, cls.folder, table) != dict(target.place):
            raise PublishError(
                f"table '{table}': '{commit.id}' was staged for another place than that in which "
                f"the table is now ({dict(target.place)}); discard it, and run its query again"
            )
        columns, ours = decode(values["columns"]), commit.fingerprint
        writer = cls(store, target, columns, fingerprint=ours, run_id=commit.run_id)
        writer._restore(commit, values)
        return writer

    def find_published(self) -> StoredVersion | None:
        """Return the version that has made the table what the commit would make of it; as above."""
        found = super().find_published()
        if found is not None:
            self._log_published()  # a run may have died before it has
        return found

    def find_staged(self) -> StagedVersion | None:
        """Return what is staged of this result for this purpose; then `publish` publishes that."""
        found = self._log.find(self._staged_id)
        if found is None:
            return None
        if self._target.mode == "merge":
            table = self._find_table()
            if found.base != (None if table is None else self._newest(table)):
                return None
        try:
            values = self._record(self._store, self._target.table, found)
        except StagedGoneError:
            return None  # it was published at this moment, which `stage_commit` finds
        self._restore(found, values)
        return found.shown(self._target.table)

    def stage_commit(self) -> StagedVersion | None:
        """Write down the commit in the storage root, where no reader of the lake sees it.

        Returns:
            What is staged; None if another writer has published the same rows meanwhile.

        Raises:
            PublishError: The table does not take them; then they are discarded.
            StorageError: The table or its storage failed; may be called again.
        """
        plan, ours, table = self.plan, self._published, self._opened()
        if (found := self._find(table)) is not None:
            self._holder = table, found
            return None
        try:
            self._check_fits(table)
            self._check_removable(table)
        except PublishError:
            self.discard()
            raise
        files = self._described
        commit = StagedCommit(
            id=self._staged_id,
            token=plan.token,
            staged_at=utc_now(),
            mode=ours.mode,
            fingerprint=ours.fingerprint,
            run_id=ours.run_id,
            rows=tuple(ours.rows.items()),
            num_bytes=sum(values["num_bytes"] for values in files),
            num_files=len(files),
            keep=self._target.keep_versions,
            base=self._base,
        )
        where = self._store, self.folder, plan.table, plan.token
        leftovers.hold(*where, plan.location, self._values())
        there = self._log.stage(commit)
        if there.token != plan.token:
            log.info("table %s: another run has staged the same rows", plan.table)
            self.discard()
            self._restore(there, self._record(self._store, plan.table, there))
        self._staged = there
        return there.shown(plan.table)

    def staged_state(self) -> TableState:
        """Return what the table would be if the commit were made now; of a merge, of its base.

        Raises:
            CatalogError: The table is gone, or the base of a merge is.
            PublishError: The table does not take the rows any more.
            StorageError: The table or its storage does not answer.
        """
        table = self._find_table()
        if table is None:
            raise CatalogError(f"table '{self._target.table}' is gone; run its query again")
        self._check_fits(table)
        return self._state_with(table)

    def publish(self) -> int:
        """Commit the files by one version and return its number.

        Raises:
            StagedGoneError: They were staged, and are not any more.
            PublishError: The table does not take them; then they are discarded, unless they are
                staged.
            TableChangedError: A merge has another base; it may look at the table again.
            StorageError: The table or its storage failed; may be called again.
        """
        if self._staged is None:
            number = super().publish()
            self._log_published()
            return number
        token = self._staged.token
        if self._holder is None:
            self._publish_staged(token)
        table, commit = self._held()
        ours = self._publication_of(commit)
        self._log_published()
        if ours is not None and ours.token == token:
            # Whoever else has published the commit of a merge may have written other files for it.
            self._end(file.path for file in self._added(table, commit))
        else:
            log.info("table %s: another writer has published the same rows", self._target.table)
            self.reused = True  # gc removes the files: somebody may be at the same commit
        return self._number_of(commit)

    def _publish_staged(self, token: str) -> None:
        claim = self._log.claim(token)
        if claim is None:
            table = self._find_table()
            found = None if table is None else self._find(table)
            if table is None or found is None:
                raise self._gone(self._target.table, self._staged_id)
            self._holder, self.reused = (table, found), True
            return
        self._commit_until = datetime.datetime.now(datetime.UTC) + PUBLISH_TIME
        try:
            self._publish()
        except (PublishError, TableChangedError):
            self._log.release(token, claim)
            raise

    def _give_up(self) -> None:
        if self._staged is None:
            self.discard()

    def _log_published(self) -> None:
        ours = self._published
        self._log.published(self._staged_id, ours.token, ours.mode, tuple(ours.rows))

    def _restore(self, commit: StagedCommit, values: Mapping[str, Any]) -> None:
        """Become the writer of a commit that is staged."""
        plan = plan_from_dict(values["plan"])
        if not isinstance(plan, LakePlan):
            raise TypeError(f"{type(plan).__name__} is not a plan of a lake")
        self._staged, self._plan, self.adopted = commit, plan, True
        self._reported = list(values["files"])
        self._rewritten = {uri: list(written) for uri, written in values["rewritten"].items()}
        self._base, self._first_version = commit.base, values["first_version"]
        self._published = replace(
            self._published, token=commit.token, run_id=commit.run_id, rows=dict(commit.rows)
        )

    def _values(self) -> dict[str, Any]:
        """All that another process needs to make the commit."""
        return {
            "target": self._target.to_dict(),
            "columns": encode(self._columns),
            "plan": plan_to_dict(self.plan),
            "files": self._reported,
            "rewritten": self._rewritten,
            "first_version": self._first_version,
        }

    @classmethod
    def _record(cls, store: ObjectStore, table: str, commit: StagedCommit) -> Mapping[str, Any]:
        """What `_values` has told of a commit that is staged."""
        found = leftovers.held(store, cls.folder, table, commit.token)
        if found is None:
            raise cls._gone(table, commit.id)
        values: Mapping[str, Any] | None = found.get("commit")
        if values is None:
            raise StorageError(
                f"table '{table}': the record of '{commit.id}' does not tell what is staged; "
                f"discard it (`stagecoach tables discard {table} {commit.id}`), and run its query "
                "again"
            )
        return values

    def _base_expired(self) -> CatalogError:
        """The error of a merge whose base is not kept any more."""
        return CatalogError(
            f"table '{self._target.table}' no longer has version {self._base}, on which the merge "
            "was staged; discard it, and run its query again"
        )

    @staticmethod
    def _gone(table: str, wanted: str) -> StagedGoneError:
        return StagedGoneError(
            f"what was staged for table '{table}' ({wanted}) is not staged any more: it was "
            "discarded, or a later result has replaced it; run the query again"
        )

    @property
    def _staged_id(self) -> str:
        ours, target = self._published, self._target
        keys = tuple(ours.rows)
        return staged_id(ours.fingerprint, target.mode, keys, self._columns, target.partition_by)

    @property
    def _log(self) -> StagedLog:
        return StagedLog(self._store, self.folder, self._target.table)
