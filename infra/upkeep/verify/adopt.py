"""Gives checksums to files of tables that were written before files had any."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from stagecoach.infra.formats.capabilities import Adopted, Verifies
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.verify.stored import verified_tables


def adopt_checksums(
    store: ObjectStore,
    tables: Iterable[Verifies] = (),
    *,
    table: str | None = None,
) -> list[Adopted]:
    """Give checksums to files of the newest versions of tables that have none.

    Args:
        store: The storage root, with tables that queries have made.
        tables: Tables that are elsewhere.
        table: Name of the only table; None for all.

    Returns:
        One item for each table with such files.

    Raises:
        TableVersionError: The newest version of a table is damaged.
        StorageError: The store failed.
    """
    done = [
        item.adopt_checksums()
        for item in itertools.chain(verified_tables(store), tables)
        if table is None or item.name.lower() == table.lower()
    ]
    return [item for item in done if item is not None]
