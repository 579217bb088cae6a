"""What gc needs of a table of a lake, and the objects of it that gc removes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from stagecoach.infra.formats.lake_tables.staged_log import StagedLog
from stagecoach.infra.storage.listing import StoredObject
from stagecoach.infra.storage.object_store import ObjectStore


class CommittedTable(Protocol):
    """A table that knows what its commits have put where."""

    @property
    def store(self) -> ObjectStore:
        """The storage root."""
        ...

    @property
    def name(self) -> str:
        """Name of the table."""
        ...

    @property
    def folder(self) -> str:
        """Folder of the format in the storage root."""
        ...

    @property
    def staged_log(self) -> StagedLog:
        """Which commits are staged."""
        ...

    def is_lost(self, token: str, location: str) -> bool:
        """Whether no version of the table has a file of a commit, as far as is known.

        A table that is gone or has moved may have them under another name.

        Args:
            token: Identity of the commit.
            location: The folder of its files, as the table spells it.

        Raises:
            StagecoachError: The table cannot be read.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ExpiredObjects:
    """Stored objects of a table of which no version needs any: what an `Expired` says of them.

    Attributes:
        table: The table.
        objects: They.
    """

    what: ClassVar[str]
    """What the objects are, as `counts` names them."""

    table: CommittedTable
    objects: tuple[StoredObject, ...]

    @property
    def table_name(self) -> str:
        """Name of the table."""
        return self.table.name

    @property
    def num_versions(self) -> int:
        """No version goes: none has the objects."""
        return 0

    @property
    def num_objects(self) -> int:
        """How many objects there are."""
        return len(self.objects)

    @property
    def num_bytes(self) -> int:
        """Their size."""
        return sum(item.num_bytes for item in self.objects)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many objects there are."""
        return {self.what: len(self.objects)}

    @property
    def metadata(self) -> Mapping[str, int]:
        """Nothing else."""
        return {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove."""
        return not self.objects
