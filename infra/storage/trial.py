"""Tries what runs do with a store, with one small object: write, read, list, put if absent, delete.

Worker code: `stagecoach doctor` does it in the driver and on executors.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.listing import store_now
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore, StorageOptions
from stagecoach.infra.storage.stores import open_store

PATIENCE_SECONDS = 4.0
"""How long `stagecoach doctor` waits for a store at a time."""

_CONTENT = b"stagecoach doctor"


def try_store(values: Mapping[str, Any]) -> dict[str, Any]:
    """Try a store.

    Args:
        values: The store as `ObjectStore.to_dict` describes it.

    Returns:
        Plain data: `steps`, each with its `name`, `seconds` and `problem` (empty if it went well),
        up to the first that failed; `conditional`, whether the store refuses to overwrite where it
        is told to; and `clock`, by how many seconds the store's clock is ahead of this machine's.
        The last two are None where they are not known.
    """
    found: dict[str, Any] = {"steps": [], "conditional": None, "clock": None}
    for name, step in _steps(values, found):
        started = time.perf_counter()
        problem = ""
        try:
            step()
        except StorageError as error:
            problem = str(error)
        seconds = round(time.perf_counter() - started, 4)
        found["steps"].append({"name": name, "seconds": seconds, "problem": problem})
        if problem:
            break
    return found


def _steps(
    values: Mapping[str, Any], found: dict[str, Any]
) -> Iterator[tuple[str, Callable[[], None]]]:
    options = StorageOptions.from_dict(values.get("options", {}))
    patience = min(options.retry_seconds, PATIENCE_SECONDS)
    stores: list[ObjectStore] = []
    folder = layout.run_prefix(f"doctor-{uuid.uuid4().hex}")
    key = f"{folder}/trial"

    def connect() -> None:
        hasty = replace(options, retry_seconds=patience, timeout_seconds=PATIENCE_SECONDS)
        stores.append(open_store(values["url"], hasty))
        # Finding credentials and connecting are not part of the time of a request. Not `exists`,
        # whose answer has no body that would say what is wrong.
        with suppress(ObjectMissingError):
            stores[0].read_bytes(key)

    def read() -> None:
        if stores[0].read_bytes(key) != _CONTENT:
            raise StorageError(f"{stores[0].uri(key)} is read otherwise than it was written")

    def listed() -> None:
        if key not in list(stores[0].list(folder)):
            raise StorageError(f"{stores[0].uri(key)} is not listed though it has been written")

    def conditional() -> None:
        stores[0].put_if_absent(key, _CONTENT)
        if isinstance(stores[0], LocalStore):
            found["conditional"] = True
            return
        from stagecoach.infra.storage.fsspec_store import FsspecStore  # fsspec takes time to load

        if isinstance(stores[0], FsspecStore):
            found["conditional"] = stores[0].refuses_to_replace(key, _CONTENT)

    def clock() -> None:
        before = time.time()
        now = store_now(stores[0], folder).timestamp()
        # Stores tell whole seconds: a moment within that second is no difference.
        found["clock"] = round(max(now - time.time(), min(now + 1 - before, 0.0)), 1)

    yield "open", connect
    yield "write", lambda: stores[0].write_bytes(key, _CONTENT)
    yield "read", read
    yield "list", listed
    yield "put if absent", conditional
    yield "clock", clock
    yield "delete", lambda: stores[0].delete([key])
