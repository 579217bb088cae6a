"""Publishes a result in a Delta table, by one entry of its log."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.delta.commit import (
    CommitConflictError,
    add_actions,
    check_removable,
    commit,
    create_table,
    find_table,
)
from stagecoach.infra.formats.delta.commits import past_commits
from stagecoach.infra.formats.delta.opening import open_table, translated
from stagecoach.infra.formats.delta.partition_files import files_of_partitions
from stagecoach.infra.formats.delta.result_columns import (
    check_delta_columns,
    check_fields,
    check_partitions,
    new_schema,
)
from stagecoach.infra.formats.delta.state import (
    file_uri,
    live_files,
    state_folder,
    table_schema,
    table_state,
)
from stagecoach.infra.formats.delta.stored_table import DATA_FOLDER, FOLDER
from stagecoach.infra.formats.delta.versions import DeltaVersions, live_sizes
from stagecoach.infra.formats.delta.writable import check_writable
from stagecoach.infra.formats.delta.write_plan import DeltaPlan
from stagecoach.infra.formats.lake_tables.publications import (
    LakeVersion,
    PastCommit,
    Publication,
)
from stagecoach.infra.formats.lake_tables.staging_writer import StagingLakeWriter
from stagecoach.infra.formats.lake_tables.writer import AddedFile
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.table_places import write_place
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from stagecoach.infra.formats.delta.commits import DeltaCommit

_OURS = re.compile(rf"{DATA_FOLDER}/([^/]+)/\1-\d+-")

log = logging.getLogger(__name__)


class DeltaWriter(StagingLakeWriter["DeltaTable", "DeltaCommit"]):
    """One commit of a Delta table."""

    folder = FOLDER

    def _check_columns(self) -> None:
        check_delta_columns(self._columns, self._target.partition_by)

    def _find_table(self) -> DeltaTable | None:
        table = find_table(self._location, self._options)
        if table is not None:
            write_place(self._store, FOLDER, self._target.table, self._target.place)
        return table

    def _created(self) -> DeltaTable:
        target = self._target
        # Before the table, so that one that has rows is always known by its name.
        write_place(self._store, FOLDER, target.table, target.place)
        schema = new_schema(self._columns, dict(target.comments))
        return create_table(self._location, self._options, schema, target.partition_by)

    def _check_fits(self, table: DeltaTable) -> None:
        target, schema = self._target, _schema(table)
        check_writable(target.table, table, schema, removes=target.mode != "append")
        check_fields(target.table, schema, table_schema(table).fields, self._columns)
        check_partitions(target.table, table.metadata().partition_columns, target.partition_by)

    def _check_removable(self, table: DeltaTable) -> None:
        is_known = self._target.mode in ("replace", "replace_partition")
        if is_known or (self._rewritten and self._newest(table) == self._base):
            self._removed(table)

    def _new_plan(self, table: DeltaTable, token: str) -> DeltaPlan:
        fields, target = _schema(table)["fields"], self._target
        return DeltaPlan(
            table=target.table,
            location=f"{self._location}/{DATA_FOLDER}/{token}",
            token=token,
            columns=self._columns,
            trees=table_schema(table).columns,
            required=tuple(i for i, field in enumerate(fields) if not field["nullable"]),
            partition_by=tuple(table.metadata().partition_columns),
            partition_key=target.partition_keys[0] if target.partition_keys else None,
            row_keys=self._row_keys,
            target_bytes=target.target_file_bytes,
        )

    def _try(self, table: DeltaTable) -> bool:
        self._check_as_planned(table_schema(table).columns, table.metadata().partition_columns)
        added = add_actions(self._location, self._described)
        removed = self._removed(table)
        try:
            commit(table, self._location, self._options, added, removed, self._published)
        except CommitConflictError as error:
            log.info("table %s: another writer was first: %s", self._target.table, error)
            return False
        return True

    def _state_with(self, table: DeltaTable) -> TableState:
        target, location = self._target, self._location
        self._check_as_planned(table_schema(table).columns, table.metadata().partition_columns)
        folder = state_folder(location)
        if target.mode == "merge":
            try:
                table = open_table(location, self._options, self._base)
            except CatalogError as error:
                raise self._base_expired() from error
            removed: Collection[str] = self._rewritten
        else:
            paths = self._removed(table)
            live = live_files(table)["path"].to_pylist() if paths is None else paths
            removed = {file_uri(path, folder) for path in live}
        with translated(location):
            return table_state(
                target.table,
                table,
                location,
                self._options,
                added=self._described,
                removed=removed,
            )

    def _removed(self, table: DeltaTable) -> list[str] | None:
        """The files that the commit removes, as the log has them; None for all."""
        target, adds = self._target, live_files(table)
        found: list[str] = []
        if target.mode == "replace":
            found = adds["path"].to_pylist()
        elif target.mode == "replace_partition" and self._row_keys is not None:
            column = self._columns[self._row_keys.column]
            schema = table_schema(table)
            found = files_of_partitions(
                target.table, adds, schema, column, self._row_keys, lambda p: bool(_OURS.match(p))
            )
        elif target.mode == "merge":
            found = self._replaced(adds["path"].to_pylist())
        is_all = target.mode == "replace"
        check_removable(target.table, table, self._location, self._options, found, is_all=is_all)
        return None if is_all else found

    def _replaced(self, paths: Sequence[str]) -> list[str]:
        """Those of the live files that a merge replaces."""
        folder = state_folder(self._location)
        found = [path for path in paths if file_uri(path, folder) in self._rewritten]
        if len(found) != len(self._rewritten):
            raise StorageError(
                f"table '{self._target.table}': the log does not list each file once that the "
                "merge replaces; look at the table with the tool that manages it"
            )
        return found

    def _find(self, table: DeltaTable) -> DeltaCommit | None:
        versions = self._versions(table)
        if self._first_version is None:
            self._first_version = table.version()
        first = self._first_version
        return self._find_in(
            lambda: past_commits(versions.commits(), frozenset(live_sizes(table))),
            lambda: (
                PastCommit(commit=found, ours=found.ours)
                for found in itertools.takewhile(lambda c: c.version > first, versions.commits())
            ),
        )

    def _newest(self, table: DeltaTable) -> int | None:
        return int(table.version())

    def _snapshot_of(self, table: DeltaTable) -> TableSnapshot:
        with translated(self._location):
            name = self._target.table
            return table_state(name, table, self._location, self._options).snapshot

    def _publication_of(self, commit: DeltaCommit) -> Publication | None:
        return commit.ours

    def _version_of(self, table: DeltaTable, commit: DeltaCommit) -> LakeVersion:
        return self._versions(table).at(commit)

    def _number_of(self, commit: DeltaCommit) -> int:
        return commit.version

    def _added(self, table: DeltaTable, commit: DeltaCommit) -> tuple[AddedFile, ...]:
        files = (
            AddedFile(f"{self._location}/{path}", rows or 0, size)
            for path, (rows, size) in commit.added.items()
        )
        return tuple(sorted(files, key=lambda file: file.path))

    def _versions(self, table: DeltaTable) -> DeltaVersions:
        return DeltaVersions(self._target.table, table, self._location, self._options)

    @property
    def _location(self) -> str:
        return canonical_path(self._target.place["location"])


def _schema(table: DeltaTable) -> dict[str, Any]:
    """The schema of a table as its log has it."""
    found: dict[str, Any] = json.loads(table.schema().to_json())
    return found
