"""Lists every object of a folder with its size and time.

For garbage collection and for people who look around: nothing that runs a query lists. How old an
object is, only the clock that dated it can tell: `store_now`.
"""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import ObjectStore, explain_os_error

_TIMES = ("LastModified", "last_modified", "mtime", "created", "updated", "modify")


@dataclass(frozen=True)
class StoredObject:
    """An object of the store.

    Args:
        key: Its key.
        num_bytes: Size in bytes.
        modified: When it was last written.
    """

    key: str
    num_bytes: int
    modified: datetime.datetime


def list_objects(store: ObjectStore, prefix: str) -> Iterator[StoredObject]:
    """Yield every object below a folder, by key.

    Raises:
        StorageError: The store failed, or does not say when an object was written.
    """
    if not isinstance(store, LocalStore):
        from stagecoach.infra.storage.fsspec_store import FsspecStore  # fsspec takes time to load

        if isinstance(store, FsspecStore):
            for key, details in store.list_details(prefix):
                yield StoredObject(key, int(details["size"]), _remote_time(store, key, details))
            return
    for key in store.list(prefix):
        try:
            status = os.stat(store.uri(key))
        except FileNotFoundError:
            continue  # another process removed it just now
        except OSError as error:
            raise explain_os_error("look at", store.uri(key), error) from error
        moment = datetime.datetime.fromtimestamp(status.st_mtime, tz=datetime.UTC)
        yield StoredObject(key, status.st_size, moment)


def store_now(store: ObjectStore, folder: str) -> datetime.datetime:
    """Return the present moment by the clock that dates a store's objects, whatever ours says.

    Writes an empty object, looks at its time and removes it. A store that rounds times makes
    everything look younger than it is, by that much.

    Args:
        store: The store.
        folder: A folder for the object, where nothing but it is listed.

    Raises:
        StorageError: The store failed, or does not say when an object was written.
    """
    key = f"{folder}/.tmp-{uuid.uuid4().hex}"  # a name that is known for one that may go
    store.write_bytes(key, b"")
    try:
        moments = [item.modified for item in list_objects(store, folder) if item.key == key]
    finally:
        store.delete([key])
    if not moments:
        raise StorageError(
            f"the store does not list {store.uri(key)}, which was written just now, so the age of "
            "its objects is not known"
        )
    return moments[0]


def _remote_time(store: ObjectStore, key: str, details: Mapping[str, Any]) -> datetime.datetime:
    for name in _TIMES:
        value = details.get(name)
        if isinstance(value, int | float):
            return datetime.datetime.fromtimestamp(value, tz=datetime.UTC)
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        if isinstance(value, datetime.datetime):
            return value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    raise StorageError(
        f"the store does not say when {store.uri(key)} was written, so its age is not known; "
        "use the lifecycle rules of the store instead"
    )
