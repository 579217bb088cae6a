"""The tables of a storage root, to verification."""

from __future__ import annotations

from collections.abc import Iterator

from stagecoach.infra.formats.capabilities import Verifies
from stagecoach.infra.formats.registry import stored_tables
from stagecoach.infra.storage.object_store import ObjectStore


def verified_tables(store: ObjectStore) -> Iterator[Verifies]:
    """Yield the tables that queries have made and that can be verified."""
    for table in stored_tables(store):
        if (found := table.verifies()) is not None:
            yield found
