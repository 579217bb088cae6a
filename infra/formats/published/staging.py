"""Computes the versions of a published table by which a change is staged, and discarded.

What is staged stands in the log of versions, beside the live files. So staging, publishing and
discarding are commits like any other: whichever is first decides, and the others see it. Versions
that only stage or discard are quiet: they have the rows of the version before.

Pure, as `changes` is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from stagecoach.infra.formats.published.changes import TableChange, is_superseded
from stagecoach.infra.formats.published.version import StagedChange, TableFile, TableVersion
from stagecoach.infra.formats.publishing import TableChangedError
from stagecoach.infra.formats.staged_version import StagedVersion, staged_id


def change_id(change: TableChange) -> str:
    """Return the identity that a change has when it is staged."""
    return staged_id(
        change.fingerprint, change.mode, list(change.rows), change.columns, change.partition_by
    )


def find_staged(base: TableVersion | None, wanted: str) -> StagedChange | None:
    """Return what is staged under an identity, or None."""
    return next((item for item in (() if base is None else base.staged) if item.id == wanted), None)


def find_same(
    base: TableVersion | None, change: TableChange, read: TableVersion | None
) -> StagedChange | None:
    """Return what is staged that is the same as a change, or None.

    Args:
        base: The newest version.
        change: The change.
        read: For a merge, the version that it was made on.
    """
    found = find_staged(base, change_id(change))
    if found is not None and change.mode == "merge" and found.base_files != files_id(read):
        return None
    return found


def files_id(version: TableVersion | None) -> str:
    """Return the identity of the live files of a version; None is a table without any."""
    files: Iterable[TableFile] = () if version is None else version.files
    return hashlib.sha256("\n".join(sorted(file.path for file in files)).encode()).hexdigest()


def check_base(current: TableVersion | None, base: int, base_files: str) -> None:
    """Look whether a table has the files that a merge has looked at.

    Args:
        current: The newest version.
        base: The version that the merge was made on.
        base_files: The identity of its files.

    Raises:
        TableChangedError: It has others.
    """
    if files_id(current) != base_files:
        number = 0 if current is None else current.number
        raise TableChangedError(f"version {number} was committed after version {base} was read")


def stage_change(
    base: TableVersion | None, change: TableChange, read: TableVersion | None = None
) -> TableVersion:
    """The version that follows `base` and differs by what is staged in it alone.

    Of what it would replace, as many stay as versions are kept, for people to look at.

    Args:
        base: The newest version.
        change: What is staged.
        read: For a merge, the version that it was made on.
    """
    if change.mode == "clear":
        raise ValueError("a table is cleared at once")
    staged = StagedChange(
        id=change_id(change),
        staged_at=change.committed_at,
        mode=change.mode,
        fingerprint=change.fingerprint,
        rows=tuple(change.rows.items()),
        columns=change.columns,
        partition_by=change.partition_by,
        files=change.files,
        keep_versions=change.keep_versions,
        run_id=change.run_id,
        comments=change.comments,
    )
    if change.mode == "merge":
        staged = replace(
            staged,
            rewritten=tuple(change.rewritten.items()),
            base=0 if read is None else read.number,
            base_files=files_id(read),
        )
    known = tuple(i for i in (() if base is None else base.staged) if i.id != staged.id)
    older = [item for item in known if is_superseded(item, change)]
    dropped = {item.id for item in older[: len(older) + 1 - max(change.keep_versions, 1)]}
    known = tuple(item for item in known if item.id not in dropped)
    return _quiet(base, change.table, change.token, change.committed_at, (*known, staged))


def discard_change(base: TableVersion, discarded: str, token: str) -> TableVersion:
    """The version that follows `base`, without what is staged under an identity."""
    kept = tuple(item for item in base.staged if item.id != discarded)
    return _quiet(base, base.table, token, base.committed_at, kept)


def staged_change(
    table: str, staged: StagedChange, *, token: str, committed_at: str
) -> TableChange:
    """Return the change that was staged, to be committed now.

    Args:
        table: Name of the table.
        staged: What waits.
        token: Identity of the commit.
        committed_at: ISO 8601 in UTC.
    """
    return TableChange(
        table=table,
        mode=staged.mode,
        token=token,
        committed_at=committed_at,
        fingerprint=staged.fingerprint,
        rows=dict(staged.rows),
        columns=staged.columns,
        partition_by=staged.partition_by,
        files=staged.files,
        rewritten=dict(staged.rewritten),
        keep_versions=staged.keep_versions,
        run_id=staged.run_id,
        comments=staged.comments,
    )


def shown_staged(table: str, staged: StagedChange) -> StagedVersion:
    """Return it as commands and Dagster show it."""
    return StagedVersion(
        table=table,
        id=staged.id,
        staged_at=staged.staged_at,
        mode=staged.mode,
        fingerprint=staged.fingerprint,
        run_id=staged.run_id,
        rows=dict(staged.rows),
        num_bytes=sum(file.num_bytes for file in staged.all_files),
        num_files=len(staged.all_files),
    )


def _quiet(
    base: TableVersion | None,
    table: str,
    token: str,
    committed_at: str,
    staged: tuple[StagedChange, ...],
) -> TableVersion:
    if base is None:
        # As after `clear`: there is nothing to read yet.
        base = TableVersion(
            table=table, number=0, token=token, committed_at=committed_at, mode="clear"
        )
    return replace(base, number=base.number + 1, token=token, staged=staged, is_quiet=True)
