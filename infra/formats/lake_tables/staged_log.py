"""Which commits to a table of a lake are staged: a log of its own in the storage root.

    <folder>/<table>/staged/versions/000000000003.json    what is staged, and who publishes it
    <folder>/<table>/pending/<token>.json                 the commit, and where its files are

The lake knows nothing of it, so no other tool ever sees what is staged. But then the lake cannot
order a publication and a discard, and the log does: who publishes claims the commit first, and a
commit that is claimed is not discarded.

    staged ──claim──▶ claimed ──commit of the lake──▶ published: it leaves the log
      │  ▲               │
      │  └───release─────┘ the table does not take it
      └────discard───▶ it leaves the log; gc removes its files

A process that dies leaves its claim. Another one may publish what is claimed, for a commit is made
once only. Nobody commits by a claim that is older than `PUBLISH_TIME`, so what is claimed may be
discarded after `CLAIM_TIME`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.formats.staged_version import StagedVersion
from stagecoach.infra.formats.version_json import check_fields, seal, unsealed
from stagecoach.infra.formats.version_log import VersionLog, new_token, utc_now
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore

PUBLISH_TIME = datetime.timedelta(minutes=30)
"""How long after its claim a process may commit."""
CLAIM_TIME = datetime.timedelta(hours=1)
"""How long a claim keeps others from discarding."""

_FORMAT_VERSION = 1
_MOMENT = len("20260131T120000")  # of a token, at its beginning


@dataclass(frozen=True, kw_only=True)
class StagedCommit:
    """A commit whose files are written and that waits.

    Attributes:
        id: Its identity; see `staged_version.staged_id`.
        token: Identity of the commit, by which its files and its record are named.
        staged_at: When it was staged, ISO 8601 in UTC.
        mode: What it will do to the table.
        fingerprint: Identity of the rows.
        run_id: The run that staged it.
        rows: Partition keys, None without Dagster partitions, and the rows of each.
        num_bytes: Size of its files in bytes.
        num_files: Number of its files.
        keep: How many results stay staged of which one would replace the others.
        base: For a merge, the version of the table on which it was made; None for an empty table.
        claims: Who publishes it: an identity, and the moment of the claim.
    """

    id: str
    token: str
    staged_at: str
    mode: str
    fingerprint: str
    run_id: str
    rows: tuple[tuple[str | None, int], ...]
    num_bytes: int
    num_files: int
    keep: int
    base: int | None = None
    claims: tuple[tuple[str, str], ...] = ()

    def shown(self, table: str) -> StagedVersion:
        """Return it as commands and Dagster show it."""
        return StagedVersion(
            table=table,
            id=self.id,
            staged_at=self.staged_at,
            mode=self.mode,
            fingerprint=self.fingerprint,
            run_id=self.run_id,
            rows=dict(self.rows),
            num_bytes=self.num_bytes,
            num_files=self.num_files,
        )

    def is_replaced_by(self, mode: str, keys: Collection[str | None]) -> bool:
        """Whether a later commit brings other rows for all that this one is about.

        Args:
            mode: Of the later commit.
            keys: Its partition keys; None without.
        """
        return self.mode == mode != "append" and dict(self.rows).keys() <= set(keys)


@dataclass(frozen=True, kw_only=True)
class StagedCommits:
    """What is staged of a table at one moment: a `LoggedVersion`.

    Attributes:
        table: Name of the table.
        number: 1 for the first; without gaps.
        token: Identity of the change that made it.
        commits: What is staged, oldest first.
    """

    table: str
    number: int
    token: str
    commits: tuple[StagedCommit, ...] = ()

    def to_json(self) -> bytes:
        """Return its text."""
        commits = [vars(commit) for commit in self.commits]
        return seal({"format_version": _FORMAT_VERSION, **vars(self), "commits": commits})

    @classmethod
    def from_json(cls, text: bytes, uri: str) -> StagedCommits:
        """Return what `to_json` described.

        Raises:
            TableVersionError: It is damaged.
        """
        return unsealed(text, _from_values, uri=uri, format_versions=(_FORMAT_VERSION,))


def _from_values(values: dict[str, Any]) -> StagedCommits:
    check_fields(StagedCommits, values)
    return StagedCommits(**{**values, "commits": tuple(map(_commit, values["commits"]))})


def _commit(values: Mapping[str, Any]) -> StagedCommit:
    check_fields(StagedCommit, dict(values))
    pairs = {name: tuple((a, b) for a, b in values[name]) for name in ("rows", "claims")}
    return StagedCommit(**{**values, **pairs})


_Commits = tuple[StagedCommit, ...]


class _NeverStagedError(Exception):
    """Nothing has ever been staged, and the change stages nothing."""


@dataclass(frozen=True)
class StagedLog:
    """What is staged of a table of a lake.

    Args:
        store: The storage root.
        folder: Folder of the format in it.
        table: Name of the table.
    """

    store: ObjectStore
    folder: str
    table: str

    def commits(self) -> _Commits:
        """Return what is staged, oldest first.

        Raises:
            TableVersionError: The log is damaged.
            StorageError: The store failed.
        """
        found = self.versions.current()
        return () if found is None else found.commits

    def find(self, staged_id: str) -> StagedCommit | None:
        """Return what is staged under an identity; None for nothing."""
        return next((c for c in self.commits() if c.id == staged_id), None)

    def stage(self, commit: StagedCommit) -> StagedCommit:
        """Stage a commit, unless the same result is staged on the same version of the table.

        Of what it would replace, `keep` commits stay with it, for people to look at. What is being
        published stays in any case, for gc must not find its files loose.

        Returns:
            What is staged under the identity of the commit.
        """

        def step(known: _Commits) -> _Commits | None:
            same = next((c for c in known if c.id == commit.id), None)
            if same is not None and (same.base == commit.base or same.claims):
                return None
            keys = dict(commit.rows)
            older = [c for c in known if c != same and c.is_replaced_by(commit.mode, keys)]
            dropped = older[: len(older) + 1 - max(commit.keep, 1)]
            gone = {c.token for c in dropped if not c.claims}
            kept = (c for c in known if c.id != commit.id and c.token not in gone)
            return (*kept, commit)

        return next(c for c in self._change(step) if c.id == commit.id)

    def claim(self, token: str) -> str | None:
        """Say that one publishes a commit from now on.

        Returns:
            The identity of the claim; None if the commit is not staged any more.
        """
        ours, now = new_token(), utc_now()

        def step(known: _Commits) -> _Commits | None:
            return _changed(known, token, lambda c: replace(c, claims=(*c.claims, (ours, now))))

        return ours if any(c.token == token for c in self._change(step)) else None

    def release(self, token: str, claim: str) -> None:
        """Take back a claim: the commit was not made, and stays staged."""

        def step(known: _Commits) -> _Commits | None:
            return _changed(
                known,
                token,
                lambda c: replace(c, claims=tuple(item for item in c.claims if item[0] != claim)),
            )

        self._change(step)

    def published(
        self, staged_id: str, token: str, mode: str, keys: Collection[str | None]
    ) -> None:
        """Forget a commit that is published, and older ones that could bring nothing any more.

        Args:
            staged_id: Its identity when it is staged, whether it was or not.
            token: Its identity.
            mode: Its mode.
            keys: Its partition keys; None without.
        """

        def step(known: _Commits) -> _Commits | None:
            place = next((i for i, c in enumerate(known) if c.id == staged_id), None)
            if place is None:  # it did not wait: its token tells when it was begun
                older = [c for c in known if c.token[:_MOMENT] <= token[:_MOMENT]]
            else:
                older = list(known[:place])
            gone = {staged_id}
            for commit in older:
                # Rows of another merge have other keys, and it may still be under way.
                is_over = mode != "merge" and not commit.claims
                if is_over and commit.is_replaced_by(mode, keys):
                    gone.add(commit.id)
            left = tuple(commit for commit in known if commit.id not in gone)
            return None if left == known else left

        self._change(step)

    def discard(self, staged_id: str) -> None:
        """Forget what is staged under an identity; what is not there is forgotten already.

        Raises:
            PublishError: It is being published.
        """

        def step(known: _Commits) -> _Commits | None:
            found = next((c for c in known if c.id == staged_id), None)
            if found is None:
                return None
            latest = max((moment_of(moment) for _, moment in found.claims), default=None)
            if latest is not None and moment_of(utc_now()) < latest + CLAIM_TIME:
                raise PublishError(
                    f"table '{self.table}': '{staged_id}' is being published since "
                    f"{latest:%Y-%m-%d %H:%M} UTC; if the process that does it is gone, publish "
                    f"it, or discard it after {latest + CLAIM_TIME:%H:%M} UTC"
                )
            return tuple(c for c in known if c is not found)

        self._change(step)

    @property
    def versions(self) -> VersionLog[StagedCommits]:
        """The log."""
        folder = f"{self.folder}/{layout.check_component('table', self.table)}/staged"
        return VersionLog(self.store, self.table, folder, StagedCommits.from_json)

    def _change(self, step: Callable[[_Commits], _Commits | None]) -> _Commits:
        """Change what is staged, and return what is then; None from `step` changes nothing."""
        token = new_token()

        def make(base: StagedCommits | None) -> StagedCommits | None:
            commits = step(() if base is None else base.commits)
            if commits is None:
                if base is None:
                    raise _NeverStagedError
                return None
            number = 1 if base is None else base.number + 1
            return StagedCommits(table=self.table, number=number, token=token, commits=commits)

        try:
            return self.versions.commit(token, make)[0].commits
        except _NeverStagedError:
            return ()


def moment_of(text: str) -> datetime.datetime:
    """Return a moment that `utc_now` has told."""
    return datetime.datetime.fromisoformat(text)


def _changed(
    known: _Commits, token: str, change: Callable[[StagedCommit], StagedCommit]
) -> _Commits | None:
    """What is staged, with one commit changed; None if it is not staged."""
    if not any(commit.token == token for commit in known):
        return None
    return tuple(change(commit) if commit.token == token else commit for commit in known)
