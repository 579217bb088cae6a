"""Resolves the storage root from options, settings and the default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagecoach.infra.storage.object_store import ObjectStore

DEFAULT_STORAGE = ".stagecoach/storage"


def open_storage(storage: str | os.PathLike[str] | None = None) -> ObjectStore:
    """Return the store of a storage root, found as `connect` finds it."""
    from stagecoach.infra.config.settings import load_settings

    return load_settings(overrides=with_storage({}, storage)).open_store()


def existing_storage(storage: str | os.PathLike[str] | None = None) -> ObjectStore:
    """Return the same where something must have been stored before.

    Raises:
        ConfigError: A local folder that is named here does not exist. The default one may be
            missing: nothing has run yet.
    """
    from stagecoach.infra.errors import ConfigError

    root = storage_root(storage)
    if storage and "://" not in root and not os.path.isdir(root):
        raise ConfigError(f"the storage folder {os.fspath(storage)} does not exist")
    return open_storage(storage)


def storage_root(storage: str | os.PathLike[str] | None = None) -> str:
    """Return the storage root, found as `connect` finds it; a local one as an absolute path."""
    from stagecoach.infra.config.settings import load_settings

    root = load_settings(overrides=with_storage({}, storage)).storage_root
    return root if "://" in root else os.path.abspath(os.path.expanduser(root))


def with_storage(
    settings: Mapping[str, object], storage: str | os.PathLike[str] | None
) -> dict[str, object]:
    """Return settings with the storage root that is given here, if one is."""
    root = os.fspath(storage or "")
    return {**settings, "storage_root": root} if root else dict(settings)
