"""Paths below the location of a deduplicated table, which is a root of its own.

    chunks/<name>.arrow|.parquet          rows, immutable
    versions/<number>.json                a version: the chunks that are live
    current.json                          a hint which version is the newest

Those of versions are in `stagecoach.infra.storage.layout`, as all logs of versions have them.

Worker code.
"""

from __future__ import annotations

import re

from stagecoach.infra.errors import StorageError

CHUNKS_ROOT = "chunks"
_CHUNK_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}\.(?:parquet|arrow)")


def chunk_file(name: str) -> str:
    """Return the key of a chunk of a deduplicated table, below the table's own location."""
    if not _CHUNK_FILE.fullmatch(name):
        raise StorageError(
            f"{name!r} is not the name of a chunk; see stagecoach.infra.formats.deduplicated.writer"
        )
    return f"{CHUNKS_ROOT}/{name}"
