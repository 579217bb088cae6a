"""Where tables are whose rows are not in the storage root.

    <folder>/<table>/place.json        the table's place, written before its first commit

The record lets readers, commands and gc find a table that a query has published somewhere else by
its name. It has no secrets in it, for `PublishTarget.place` has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore

_NAME = "place.json"


def place_key(folder: str, table: str) -> str:
    """Return the key of a table's record.

    Args:
        folder: The folder of the format, `StoredFormat.folder`.
        table: Name of the table.
    """
    return f"{folder}/{layout.check_component('table', table)}/{_NAME}"


def read_place(store: ObjectStore, folder: str, table: str) -> dict[str, Any] | None:
    """Return the place of a table; None for one that was never published.

    Raises:
        StorageError: The record is damaged, or the store failed.
    """
    key = place_key(folder, table)
    try:
        return dict(checked_json.load(store.read_bytes(key)))
    except ObjectMissingError:
        return None
    except ValueError as error:
        raise StorageError(
            f"{store.uri(key)} is damaged ({error}); remove it, and run the query that publishes "
            f"table '{table}' again"
        ) from error


def write_place(store: ObjectStore, folder: str, table: str, place: Mapping[str, Any]) -> None:
    """Write down the place of a table, unless it is known already.

    Raises:
        StorageError: The record is damaged, or the store failed.
    """
    if read_place(store, folder, table) != dict(place):
        store.write_bytes(place_key(folder, table), checked_json.dump(place))


def forget_place(store: ObjectStore, folder: str, table: str) -> None:
    """Forget a table, which stays where it is."""
    store.delete([place_key(folder, table)])
