"""A result that is written and not visible yet: staged, until it is published or discarded.

    tasks write files ─▶ stage ─▶ checks ─┬▶ publish   readers see it
                                          └▶ discard   as if it had never been

What is staged is the change of the table, not a table: when the table has got another version
meanwhile, the change is applied to that one, as it is by a commit that has lost a race.

Worker code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.types import Field
from stagecoach.planner.versioned_names import TableVersion

STAGED = "staged"
"""The version of a table that stands for what is staged, as in `t VERSION AS OF 'staged'`."""
_ID_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class StagedVersion:
    """A change of a table that waits to be published, as commands and Dagster show it.

    Attributes:
        table: Name of the table.
        id: Its identity: the same result for the same purpose has the same.
        staged_at: When it was staged, ISO 8601 in UTC.
        mode: What it will do to the table.
        fingerprint: Identity of the rows.
        run_id: The run that staged it.
        rows: Rows by partition key; the one key is None without partitions.
        num_bytes: Size of its files in bytes.
        num_files: Number of its files.
    """

    table: str
    id: str
    staged_at: str
    mode: str
    fingerprint: str
    run_id: str = ""
    rows: Mapping[str | None, int] = field(default_factory=dict)
    num_bytes: int = 0
    num_files: int = 0

    @property
    def num_rows(self) -> int:
        """Rows of all partitions."""
        return sum(self.rows.values())

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Its partitions, sorted."""
        return tuple(sorted(key for key in self.rows if key is not None))


def staged_id(
    fingerprint: str,
    mode: str,
    partition_keys: Sequence[str | None],
    columns: Sequence[Field],
    partition_by: Sequence[str],
) -> str:
    """Return the identity of what is staged: a run that is repeated finds what it has staged."""
    keys = sorted(key for key in partition_keys if key is not None)
    known = [fingerprint, mode, keys, encode(tuple(columns)), list(partition_by)]
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:_ID_DIGITS]


def staged_version(staged_id: str) -> TableVersion:
    """Return the version by which a query reads the table with what is staged."""
    return TableVersion("version", f"{STAGED}-{staged_id}")


def id_of(version: TableVersion) -> str | None:
    """Return what is asked for: the identity, empty for the newest; None for another version."""
    if version.kind != "version":
        return None
    word, _, wanted = version.value.partition("-")
    return wanted.lower() if word.lower() == STAGED else None
