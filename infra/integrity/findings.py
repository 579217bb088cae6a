"""What a check of stored objects consists of, and what it can find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from stagecoach.infra.integrity.parquet import Damage


@dataclass(frozen=True, kw_only=True)
class StoredDamage:
    """A stored object that is not what was written.

    Attributes:
        uri: The object.
        problem: What is wrong with it, as a phrase.
        remedy: What to do about it, as a phrase.
        table: The table that it belongs to; empty if it belongs to none.
        version: Number of the table's newest version that names it; None if there is none.
        column: The column whose bytes are damaged; empty if they belong to no single column.
        row_group: 0-based number of the row group or record batch, or None.
        owner: What it is of where it belongs to no table, such as `run 2f…`.
        is_missing: Whether the object is not there at all.
    """

    uri: str
    problem: str
    remedy: str
    table: str = ""
    version: int | None = None
    column: str = ""
    row_group: int | None = None
    owner: str = ""
    is_missing: bool = False

    def at(self, damage: Damage) -> StoredDamage:
        """The same object with another problem."""
        return replace(
            self, problem=damage.problem, column=damage.column, row_group=damage.row_group
        )

    @property
    def place(self) -> str:
        """Table, version, column and row group as a phrase; empty if it belongs to nothing."""
        parts = [f"table '{self.table}'"] if self.table else []
        if self.version is not None:
            parts.append(f"version {self.version}")
        if self.owner:
            parts.append(self.owner)
        if self.column:
            parts.append(f"column '{self.column}'")
        if self.row_group is not None:
            parts.append(f"row group {self.row_group}")
        return ", ".join(parts)

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.uri}{place}: {self.problem}; {self.remedy}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a check came to.

    Attributes:
        damages: What is wrong with the object.
        num_bytes: Bytes that were checked.
        has_checksums: Whether damage to any of its bytes would have been found.
        is_foreign: Whether another version of Stagecoach wrote it, so that it cannot be read here.
        more: Checks of the objects that it names.
    """

    damages: Sequence[StoredDamage] = ()
    num_bytes: int = 0
    has_checksums: bool = True
    is_foreign: bool = False
    more: Sequence[Check] = ()


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check of one stored object.

    Attributes:
        kind: What the object is, for counts: `files of tables`, `runs`, …
        known: The object and what to do if it is damaged; its problem is filled in by the check.
        run: Checks it. Raises `ObjectMissingError` if there is no such object, and `StorageError`
            if it cannot be read.
        is_needed: Asked after damage was found, because gc may have been there meanwhile: whether
            an object that is missing (or is there) should be there and whole.
        num_bytes: Its size if that is known before it is read.
    """

    kind: str
    known: StoredDamage
    run: Callable[[], Outcome]
    is_needed: Callable[[bool], bool] = field(default=lambda is_missing: not is_missing)
    num_bytes: int = 0
