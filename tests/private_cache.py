"""A cache folder of its own for commands of a test, so that they see no warm Spark of others."""

from __future__ import annotations

import contextlib
from pathlib import Path

from stagecoach.infra.spark.java import cache_folders


def private_cache(place: Path) -> Path:
    """Return a new folder for `XDG_CACHE_HOME`, with the class data of this machine in it.

    Args:
        place: Where the folder is made.
    """
    cache = place / "cache" / "stagecoach"
    cache.mkdir(parents=True, mode=0o700)
    for folder in cache_folders():  # which takes long to make
        for archive in folder.glob("spark-*.jsa"):
            with contextlib.suppress(FileExistsError):
                (cache / archive.name).symlink_to(archive)
    return cache.parent
