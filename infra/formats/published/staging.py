"""Computes the versions of a published table by which a change is staged, and discarded.

What is staged stands in the log of versions, beside the live files. So staging, publishing and
discarding are commits like any other: whichever is first decides, and the others see it. Versions
that only stage or discard are quiet: they have the rows of the version before.

Pure, as `changes` is.
"""

from __future__ import annotations

from dataclasses import replace

from stagecoach.infra.formats.published.changes import TableChange, is_superseded
from stagecoach.infra.formats.published.version import StagedChange, TableVersion
from stagecoach.infra.formats.staged_version import StagedVersion, staged_id


def change_id(change: TableChange) -> str:
    """Return the identity that a change has when it is staged."""
    return staged_id(
        change.fingerprint, change.mode, list(change.rows), change.columns, change.partition_by
    )


def find_staged(base: TableVersion | None, wanted: str) -> StagedChange | None:
    """Return what is staged under an identity, or None."""
    return next((item for item in (() if base is None else base.staged) if item.id == wanted), None)


def stage_change(base: TableVersion | None, change: TableChange) -> TableVersion:
    """The version that follows `base` and differs by what is staged in it alone.

    Of what it would replace, as many stay as versions are kept, for people to look at.
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
    known = () if base is None else base.staged
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
        num_bytes=sum(file.num_bytes for file in staged.files),
        num_files=len(staged.files),
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
