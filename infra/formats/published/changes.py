"""Computes the next version of a published table from the newest one and new files.

Pure: a loser of a race applies its change again, to the winner's version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from stagecoach.infra.formats.published.version import (
    StagedChange,
    TableFile,
    TablePart,
    TableVersion,
)
from stagecoach.infra.formats.publishing import PublishError, PublishMode, column_difference
from stagecoach.planner.types import Field

KEPT_MERGES = 50
"""Of so many merges with the same partition key it is known that they were made."""


@dataclass(frozen=True, kw_only=True)
class TableChange:
    """One publication, ready to be committed.

    Attributes:
        table: Name of the table.
        mode: What becomes of the files that are there; `clear` leaves nothing, not even columns.
        token: Identity of the commit.
        committed_at: ISO 8601 in UTC.
        fingerprint: Which output of a head stage the files hold.
        rows: Rows by partition key; the one key is None without Dagster partitions.
        columns: Columns of the table, partition columns last.
        partition_by: Names of the partition columns.
        files: New files.
        rewritten: For a merge, by the path of each file that it replaces, what takes its place.
        keep_versions: How many of the newest versions gc leaves alone.
        run_id: The run.
        comments: What columns mean, for people: names and texts.
    """

    table: str
    mode: PublishMode | Literal["clear"]
    token: str
    committed_at: str
    fingerprint: str = ""
    rows: Mapping[str | None, int]
    columns: tuple[Field, ...] = ()
    partition_by: tuple[str, ...] = ()
    files: tuple[TableFile, ...] = ()
    rewritten: Mapping[str, tuple[TableFile, ...]] = field(default_factory=dict)
    keep_versions: int = 5
    run_id: str = ""
    comments: tuple[tuple[str, str], ...] = ()


def is_published(base: TableVersion | None, change: TableChange) -> bool:
    """Whether the table is already what the change would make of it."""
    if base is None:
        return False
    if change.mode == "clear":
        return not base.has_data
    if not base.has_data or base.columns != change.columns:
        return False
    if base.partition_by != change.partition_by:
        return False
    if not all(base.has_part(key, change.fingerprint) for key in change.rows):
        return False
    match change.mode:
        case "merge":
            return all(_is_merged(base, key, change) for key in change.rows)
        case "append":
            return True
        case "replace":
            return len(base.parts) == len(change.rows)
    parts = [p for p in base.parts if p.partition_key in change.rows]
    return len(parts) == len(change.rows)


def _is_merged(base: TableVersion, key: str | None, change: TableChange) -> bool:
    """Whether rows are merged: last of their partition key, or by this run, whatever followed.

    A run that is repeated must not put its rows above those of later ones. But a result that comes
    back after another one is merged again.
    """
    parts = [part for part in base.parts if part.partition_key == key]
    ours = [part for part in parts if part.fingerprint == change.fingerprint]
    is_last = bool(ours) and ours[-1] is parts[-1]
    return is_last or any(part.run_id == change.run_id != "" for part in ours)


def apply_change(base: TableVersion | None, change: TableChange) -> TableVersion:
    """The version that follows `base`.

    Raises:
        PublishError: What stays of the table has other columns or partition columns.
    """
    number = 1 if base is None else base.number + 1
    files: tuple[TableFile, ...] = ()
    parts: tuple[TablePart, ...] = ()
    new = change.files
    if base is not None and change.mode in ("append", "replace_partition", "merge"):
        keeps = change.mode != "replace_partition"
        files = tuple(f for f in base.files if keeps or f.partition_key not in change.rows)
        parts = tuple(p for p in base.parts if keeps or p.partition_key not in change.rows)
        if parts:
            _check_fits(base, parts, change)
    if change.mode == "merge":
        parts = _remembered(parts, change)
        files, new = _merged(files, change, number)
    added = tuple(
        TablePart(
            partition_key=key,
            fingerprint=change.fingerprint,
            version=number,
            num_rows=rows,
            run_id=change.run_id,
        )
        for key, rows in change.rows.items()
    )
    return TableVersion(
        table=change.table,
        number=number,
        token=change.token,
        committed_at=change.committed_at,
        mode=change.mode,
        columns=change.columns,
        partition_by=change.partition_by,
        parts=parts + added,
        files=files + tuple(replace(file, version=number) for file in new),
        keep_versions=change.keep_versions,
        run_id=change.run_id,
        comments=change.comments,
        staged=_still_staged(base, change),
    )


def _still_staged(base: TableVersion | None, change: TableChange) -> tuple[StagedChange, ...]:
    """What waits after a change, which may be one of those that have waited."""
    known = () if base is None else base.staged
    place = next((i for i, item in enumerate(known) if is_same_rows(item, change)), len(known))
    # Rows of another merge have other keys: it may still be under way.
    older = (i for i in known[:place] if i.mode == "merge" or not is_superseded(i, change))
    return (*older, *(item for item in known[place:] if not is_same_rows(item, change)))


def is_same_rows(staged: StagedChange, change: TableChange) -> bool:
    """Whether a change publishes what is staged."""
    return (staged.fingerprint, staged.mode, dict(staged.rows).keys()) == (
        change.fingerprint,
        change.mode,
        change.rows.keys(),
    )


def is_superseded(staged: StagedChange, change: TableChange) -> bool:
    """Whether a later change brings other rows for all that what is staged is about."""
    return staged.mode == change.mode != "append" and (
        dict(staged.rows).keys() <= change.rows.keys()
    )


def _remembered(parts: tuple[TablePart, ...], change: TableChange) -> tuple[TablePart, ...]:
    """The parts without the oldest ones of the partition keys of a merge."""
    found: list[TablePart] = []
    counts = dict.fromkeys(change.rows, 1)
    for part in reversed(parts):
        if part.partition_key in counts:
            counts[part.partition_key] += 1
            if counts[part.partition_key] > KEPT_MERGES:
                continue
        found.append(part)
    return tuple(reversed(found))


def _merged(
    files: tuple[TableFile, ...], change: TableChange, number: int
) -> tuple[tuple[TableFile, ...], tuple[TableFile, ...]]:
    """What stays of the files of a table and took their place, and the new files.

    A file without rows tells the columns, so there is one if there is no other.
    """
    kept = [
        file
        for old in files
        for file in (
            (replace(new, version=number) for new in change.rewritten[old.path])
            if old.path in change.rewritten
            else (old,)
        )
    ]
    stays, new = ([file for file in some if file.num_rows] for some in (kept, change.files))
    if not stays and not new:
        return (), change.files[:1]
    return tuple(stays), tuple(new)


def _check_fits(base: TableVersion, parts: tuple[TablePart, ...], change: TableChange) -> None:
    problem = column_difference(base.columns, change.columns)
    if problem is None and base.partition_by != change.partition_by:
        there, here = (", ".join(v.partition_by) or "none" for v in (base, change))
        problem = f"its partition folders are {there} there and {here} here"
    if problem is None and change.mode == "replace_partition":
        if all(part.partition_key is not None for part in parts):
            return
        problem = "it was published without partition keys, so its rows cannot be told apart"
    if problem is not None:
        raise PublishError(
            f"table '{base.table}': rows kept from version {base.number} do not match the result: "
            f"{problem}; clear it with `stagecoach tables clear {base.table}` "
            "and publish all of it again (or use mode replace)"
        )
