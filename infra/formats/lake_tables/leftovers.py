"""Files of commits to tables of a lake that were never ended: recorded, found and removed.

    <folder>/<table>/pending/<token>.json    a commit under way: where its files are

Each commit has a folder of its own in the table's data folder, named by its token. The record is
written before the first file and removed when the commit has ended. What is older belongs to a run
that died, or to a commit that was discarded. Attempts of tasks that failed leave files in the
folder, too.

A commit that is staged is under way until it is published: its record also has the commit itself.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.lake_tables.committed_table import CommittedTable, ExpiredObjects
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.listing import StoredObject, list_objects
from stagecoach.infra.storage.object_store import (
    ObjectMissingError,
    ObjectStore,
    StorageOptions,
)
from stagecoach.infra.storage.stores import open_store
from stagecoach.planner.errors import StagecoachError

log = logging.getLogger(__name__)


def begin(store: ObjectStore, folder: str, table: str, token: str, location: str) -> None:
    """Write down that a commit puts files into a folder.

    Args:
        store: The storage root.
        folder: Folder of the format in it.
        table: Name of the table.
        token: Identity of the commit.
        location: The folder of its files, as the table spells it.
    """
    store.write_bytes(_key(folder, table, token), checked_json.dump({"location": location}))


def hold(
    store: ObjectStore,
    folder: str,
    table: str,
    token: str,
    location: str,
    commit: Mapping[str, Any],
) -> None:
    """Write down what a commit is that is about to be staged.

    Args:
        store: The storage root.
        folder: Folder of the format in it.
        table: Name of the table.
        token: Identity of the commit.
        location: The folder of its files, as the table spells it.
        commit: All that making the commit takes, as plain data.
    """
    values = {"location": location, "commit": commit}
    store.write_bytes(_key(folder, table, token), checked_json.dump(values))


def held(store: ObjectStore, folder: str, table: str, token: str) -> dict[str, Any] | None:
    """Return the record of a commit; None for one that has ended.

    Raises:
        StorageError: It is damaged, or the store failed.
    """
    key = _key(folder, table, token)
    try:
        return checked_json.load(store.read_bytes(key))
    except ObjectMissingError:
        return None
    except ValueError as error:
        raise StorageError(
            f"{store.uri(key)} is damaged ({error}); discard what is staged of table '{table}' "
            f"(`stagecoach tables show {table} --staged`), and run its query again"
        ) from error


def end(store: ObjectStore, folder: str, table: str, token: str) -> None:
    """Forget a commit: its files are live, or gone."""
    store.delete([_key(folder, table, token)])


def remove_others(lake: ObjectStore, kept: Collection[str]) -> None:
    """Remove what lies in the folder of a commit and does not belong to it.

    Args:
        lake: The folder.
        kept: Keys of the files that belong to it.
    """
    if strays := [key for key in lake.list("") if key not in kept]:
        lake.delete(strays)


def lake_store(store: ObjectStore, location: str) -> ObjectStore:
    """Return a folder of a lake, which is reached in the same way as the storage root."""
    return open_store(canonical_path(location), StorageOptions.of(store))


@dataclass(frozen=True, kw_only=True)
class Leftover(ExpiredObjects):
    """Files of one commit that was never ended; an `Expired`.

    There are none if they are live, or if none was written.

    Attributes:
        token: Identity of the commit.
        location: The folder of its files.
    """

    what = "files of a lost commit"

    token: str
    location: str

    def without(self, pinned_uris: Collection[str]) -> Self:
        """Return what still may go; no run can have pinned a file that no version has."""
        root = canonical_path(self.location).rstrip("/")
        kept = tuple(f for f in self.objects if f"{root}/{f.key}" not in pinned_uris)
        return replace(self, objects=kept)

    def remove(self) -> None:
        """Remove the files, unless the commit has ended or is staged after all."""
        table = self.table
        if self.token in staged_tokens(table):
            return
        if self.objects and table.is_lost(self.token, self.location):
            lake_store(table.store, self.location).delete([file.key for file in self.objects])
        end(table.store, table.folder, table.name, self.token)


def find_leftovers(table: CommittedTable, limit: datetime.datetime) -> list[Leftover]:
    """Return the commits to a table that were begun before a moment, never ended nor are staged.

    A table that cannot be opened has none, for what its versions name is not known.
    """
    prefix = f"{table.folder}/{table.name}/pending"
    found = []
    try:
        # Listed before the log is read: what is staged since is not in the list.
        records = list(list_objects(table.store, prefix))
        staged = staged_tokens(table)
        for item in records:
            if item.modified >= limit or not item.key.endswith(".json"):
                continue
            token = item.key.rsplit("/", 1)[1].removesuffix(".json")
            if token in staged:
                continue
            location = checked_json.load(table.store.read_bytes(item.key))["location"]
            files: tuple[StoredObject, ...] = ()
            if table.is_lost(token, location):
                files = tuple(list_objects(lake_store(table.store, location), ""))
            found.append(Leftover(table=table, token=token, location=location, objects=files))
    except (StagecoachError, ValueError, KeyError) as error:
        log.warning("table %s: what its lost commits left is not known: %s", table.name, error)
        return []
    return found


def staged_tokens(table: CommittedTable) -> set[str]:
    """Return the identities of the commits that are staged.

    Raises:
        TableVersionError: The log of what is staged is damaged.
        StorageError: The store failed.
    """
    return {commit.token for commit in table.staged_log.commits()}


def _key(folder: str, table: str, token: str) -> str:
    return (
        f"{folder}/{layout.check_component('table', table)}/pending/"
        f"{layout.check_component('commit', token)}.json"
    )
