"""What lies in a store: in, a folder; out, every object in it with its size and time.

For garbage collection and for people who look around: nothing that runs a query lists. How old an
object is, only the clock that dated it can tell: `store_now`.
"""

from __future__ import annotations

import datetime
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from infra.errors import StorageError
from infra.shuffle.manifest import Manifest, ManifestError, ManifestVersionError
from infra.storage.fsspec_store import FsspecStore
from infra.storage.object_store import ObjectMissingError, ObjectStore, explain_os_error
from infra.tables.expiry import StoredObject

_TIMES = ("LastModified", "last_modified", "mtime", "created", "updated", "modify")
_DIGITS = re.compile(r"^(\d{8})(\d{6})(\.\d+)?$")


def list_objects(store: ObjectStore, prefix: str) -> Iterator[StoredObject]:
    """Yield every object below a folder, by key.

    Raises:
        StorageError: The store failed, or does not say when an object was written.
    """
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


def manifest_at(store: ObjectStore, key: str) -> Manifest | None:
    """Return the manifest at a key; None where it is damaged or was removed just now.

    Raises:
        StorageError: The store failed.
    """
    try:
        return parse_manifest(store.read_bytes(key), uri=store.uri(key))
    except ObjectMissingError:
        return None


def parse_manifest(text: bytes, *, uri: str) -> Manifest | None:
    """Return the manifest with this text; None where it is damaged or of another version."""
    try:
        return Manifest.from_json(text, stage=uri, uri=uri)
    except (ManifestError, ManifestVersionError):
        return None


def _remote_time(store: ObjectStore, key: str, details: Mapping[str, Any]) -> datetime.datetime:
    for name in _TIMES:
        value = details.get(name)
        if isinstance(value, int | float):
            return datetime.datetime.fromtimestamp(value, tz=datetime.UTC)
        if isinstance(value, str):
            # FTP has no `T` in it; `20261122T120000` would be ISO's.
            value = datetime.datetime.fromisoformat(_DIGITS.sub(r"\1T\2", value))
        if isinstance(value, datetime.datetime):
            return value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    raise StorageError(
        f"the store does not say when {store.uri(key)} was written, so its age is not known; "
        "use the lifecycle rules of the store instead"
    )
