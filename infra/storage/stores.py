"""Opens the `ObjectStore` of a root and its options.

A root is a local folder, `file://…`, `s3://…` or any other fsspec URL. Worker code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from stagecoach.infra.errors import StorageError, StorageRefusedError
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions, redact_url


def open_store(
    url: str | os.PathLike[str], options: StorageOptions | Mapping[str, Any] | None = None
) -> ObjectStore:
    """Return the store whose root is `url`.

    Args:
        url: A local folder (path or `file://`), `s3://bucket/prefix`, or another fsspec URL.
        options: How to reach it.

    Raises:
        StorageError: The URL is chained, its scheme is unknown, its package is not installed, or
            it lacks what the file system needs.
    """
    # Imported late: settings open stores, and pyarrow and fsspec cost time to load.
    from stagecoach.infra.storage.local_store import LocalStore

    if not isinstance(options, StorageOptions):
        options = StorageOptions.from_dict(options or {})
    text = os.fspath(url)
    if not text:
        raise StorageError("the storage root is empty; give a local folder or an s3:// URL")
    scheme, separator, path = text.partition("://")
    if separator and scheme in ("file", "local"):
        return LocalStore(unquote(path), options)
    if "::" in text:
        from stagecoach.infra.storage.filesystems import is_chained

        if is_chained(text):
            raise StorageRefusedError(
                f"cannot open {redact_url(text)}: chained URLs are not supported, since a cache or "
                "an archive would hide what other processes write and lose; give the inner URL"
            )
    if not separator:
        return LocalStore(text, options)
    from stagecoach.infra.storage.fsspec_store import FsspecStore

    return FsspecStore(text, options)


def store_from_dict(values: Mapping[str, Any]) -> ObjectStore:
    """Return the store that `ObjectStore.to_dict` described."""
    return open_store(values["url"], StorageOptions.from_dict(values.get("options", {})))
