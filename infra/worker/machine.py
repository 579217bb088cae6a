"""What `stagecoach doctor` finds out on a machine: its disk, its storage, the files of tables.

Worker code.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.storage.trial import PATIENCE_SECONDS, try_store

_FILES_SECONDS = 20.0


def look_at_machine(
    store: Mapping[str, Any], spill_dir: str, files: Mapping[str, str]
) -> dict[str, Any]:
    """Look at the machine of this process.

    Args:
        store: The storage root as `ObjectStore.to_dict` describes it.
        spill_dir: Where tasks spill.
        files: URI of a file of each table, by the table's name.

    Returns:
        Plain data: `disk` (`try_disk`), `storage` (`try_store`), and `tables`, what is wrong with
        those whose file cannot be read, by name; after a while no further file is tried.
    """
    options = dict(store.get("options", {}))
    return {
        "disk": try_disk(spill_dir),
        "storage": try_store(store),
        "tables": _try_files(files, options),
    }


def _try_files(files: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    deadline = time.monotonic() + _FILES_SECONDS
    for name, uri in files.items():
        if problem := try_file(uri, options):
            found[name] = problem
        if time.monotonic() > deadline:
            break
    return found


def try_disk(folder: str) -> dict[str, Any]:
    """Return `free` and `total` bytes of a folder's disk, and the `problem` with writing there."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix="doctor-") as file:
            file.write(bytes(1 << 20))
            file.flush()
        usage = shutil.disk_usage(folder)
    except OSError as error:
        return {"free": 0, "total": 0, "problem": f"{folder}: {error.strerror or error}"}
    return {"free": usage.free, "total": usage.total, "problem": ""}


def try_file(uri: str, options: Mapping[str, Any]) -> str:
    """Return what is wrong with reading a file; empty if it can be read.

    Args:
        uri: The file.
        options: How to reach storage.
    """
    given = StorageOptions.from_dict(options).to_dict()
    given |= {"retry_seconds": PATIENCE_SECONDS, "timeout_seconds": PATIENCE_SECONDS}
    folder, _, name = uri.rpartition("/")
    try:
        open_store(folder, given).read_bytes(name, 0, 4)
    except StorageError as error:
        return str(error)
    return ""
