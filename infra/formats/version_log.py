"""Numbered versions of anything: finds the newest one and commits one more.

    commit:  read the newest version ─▶ apply the change ─▶ put_if_absent of the next number
                     ▲                                            │ somebody else was first
                     └────────────────────────────────────────────┘

The highest number is the newest version. `current.json` is a hint: readers start there and look
whether there is a next number. A hint that is missing, old or damaged costs a listing, nothing
else. Numbers have no gaps (gc removes from the oldest on), so a next number that is not there
means that the hint's version is the newest.

Where the store honours put-if-absent (local folders, Amazon S3, Google, Azure, MinIO, R2) no commit
is ever lost. Where it does not, each commit is read back, twice: a writer that overwrote another
within these moments makes the other one try again. Only commits of the same table while such a
request is under way (3 of 90 races of three, on a loaded processor) can then lose one of them;
readers see a whole version all the same.

Published and deduplicated tables keep their versions this way.
"""

from __future__ import annotations

import json
import logging
import random
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.version_json import TableVersionError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.rereads import reread

log = logging.getLogger(__name__)

MAX_COMMIT_TRIES = 1000
_HINT_VERSION = 1
_WAIT_SECONDS = 0.05
_LIST_TRIES = 10


class LoggedVersion(Protocol):
    """What the log needs of a version."""

    @property
    def table(self) -> str:
        """Name of the table."""
        ...

    @property
    def number(self) -> int:
        """1 for the first commit; without gaps."""
        ...

    @property
    def token(self) -> str:
        """Identity of the commit."""
        ...

    def to_json(self) -> bytes:
        """Its text, which the log's `parse` reads."""
        ...


V = TypeVar("V", bound=LoggedVersion)


@dataclass(frozen=True)
class VersionLog(Generic[V]):
    """The versions of one table.

    Args:
        store: Where they are.
        table: Name of the table.
        folder: Key of the folder with `versions/` and `current.json`; empty for the store's root.
        parse: Makes a version of its text and its URI; raises `TableVersionError`.
    """

    store: ObjectStore
    table: str
    folder: str
    parse: Callable[[bytes, str], V]

    def current(self) -> V | None:
        """Return the newest version, or None where there never was one.

        Raises:
            TableVersionError: The newest version is damaged.
            StorageError: The store failed.
        """
        hinted = self._read_hint()
        if hinted is not None and (found := self._newest_from(hinted)) is not None:
            return found
        for _ in range(_LIST_TRIES):
            numbers = self.numbers()
            if not numbers:
                return None
            # Between the listing and the reading others may have committed, and gc been here.
            if (found := self._newest_from(numbers[-1])) is not None:
                return found
        raise StorageError(
            f"table '{self.table}': its versions are listed but cannot be read; try again, and "
            f"look at {self.store.uri(layout.log_versions(self.folder))}"
        )

    def version(self, number: int) -> V:
        """Return one version.

        Raises:
            StorageError: There is no such version (any more), or the store failed.
            TableVersionError: It is damaged.
        """
        found = self._read(number)
        if found is None:
            kept = self.numbers()
            raise ObjectMissingError(
                f"table '{self.table}' has no version {number}; "
                + (f"there are {kept[0]} to {kept[-1]}" if kept else "nothing was ever published")
            )
        return found

    def numbers(self) -> list[int]:
        """Return the numbers of the versions that are kept, ascending. Lists the store."""
        keys = self.store.list(layout.log_versions(self.folder))
        numbers = (layout.parse_table_version(key) for key in keys)
        return sorted(number for number in numbers if number is not None)

    def kept(self) -> Iterator[V]:
        """Yield the versions that are kept, newest first, but those that gc removes meanwhile."""
        for number in reversed(self.numbers()):
            if (version := self._read(number)) is not None:
                yield version

    def commit(self, token: str, step: Callable[[V | None], V | None]) -> tuple[V, bool]:
        """Make a change visible, whole and after all that was committed before it.

        Args:
            token: Identity of the commit.
            step: Makes the next version of the newest one (None: there is none), or returns None
                where that is already what it should be. Called again after a lost race.

        Returns:
            The version that holds the change, and whether it was there already.

        Raises:
            TableVersionError: The newest version is damaged.
            StorageError: The store failed, or others were first `MAX_COMMIT_TRIES` times.
        """
        for attempt in range(MAX_COMMIT_TRIES):
            base = self.current()
            if base is not None and base.token == token:
                return base, False  # our write of a moment ago, whose answer was lost
            version = step(base)
            if version is None and base is not None:
                return base, True
            if version is not None and self._write(version):
                return version, False
            number = 1 if base is None else base.number + 1
            log.debug("table %s: version %d is another's; again", self.table, number)
            time.sleep(random.uniform(0, _WAIT_SECONDS) * min(attempt + 1, 10))
        raise StorageError(
            f"table '{self.table}': {MAX_COMMIT_TRIES} other commits were first; publish again"
        )

    def repair_hint(self, version: V) -> None:
        """Let `current.json` name a version unless it names a later one; failures are logged."""
        try:
            hinted = self._read_hint()
            if hinted is None or hinted < version.number:
                write_hint(self, version.number)
        except StorageError as error:
            # The version is committed: readers find it without the hint, only slower.
            log.warning("table %s: its hint cannot be written: %s", self.table, error)

    def _write(self, version: V) -> bool:
        """Write a version and return whether it is ours that is there."""
        key, text = layout.log_version(self.folder, version.number), version.to_json()
        self.store.put_if_absent(key, text)
        if not self._is_ours(key, text):
            return False
        self.repair_hint(version)
        # A local folder never overwrites; of others we cannot know.
        return self.store.is_local or self._is_ours(key, text)

    def _is_ours(self, key: str, text: bytes) -> bool:
        # Texts have the commit's token, so no two writers' are the same.
        try:
            return self.store.read_bytes(key) == text
        except ObjectMissingError:
            return False

    def _newest_from(self, number: int) -> V | None:
        """The newest version, given that there was one of `number`; None if that one is gone."""
        while self.store.exists(layout.log_version(self.folder, number + 1)):
            number += 1
        return self._read(number)

    def _read(self, number: int) -> V | None:
        key = layout.log_version(self.folder, number)
        try:
            version = reread(
                self.store,
                key,
                lambda: self.parse(self.store.read_bytes(key), self.store.uri(key)),
                (TableVersionError,),
            )
        except ObjectMissingError:
            return None
        if (version.table.lower(), version.number) != (self.table.lower(), number):
            raise TableVersionError(
                f"{self.store.uri(key)} is version {version.number} of table '{version.table}'; "
                "restore it"
            )
        return version

    def _read_hint(self) -> int | None:
        try:
            values = json.loads(self.store.read_bytes(layout.log_current(self.folder)))
            number = values["version"]
            return number if isinstance(number, int) and number >= 1 else None
        except ObjectMissingError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            log.warning(
                "table %s: its hint is damaged (%s); versions are listed", self.table, error
            )
            return None


def write_hint(versions: VersionLog[V], number: int) -> None:
    """Let `current.json` name a version."""
    name = layout.log_version(versions.folder, number).rsplit("/", 1)[-1]
    values = {
        "format_version": _HINT_VERSION,
        "table": versions.table,
        "version": number,
        "path": f"{layout.TABLE_VERSIONS}/{name}",
    }
    versions.store.write_bytes(layout.log_current(versions.folder), json.dumps(values).encode())


def new_token() -> str:
    """Return the identity of a commit: no two are the same, and they sort by time."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(6)}"


def utc_now() -> str:
    """Return this moment, ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
