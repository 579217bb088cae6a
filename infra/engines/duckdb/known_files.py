"""The local files whose footers DuckDB keeps, each as it was when that began.

DuckDB parses a footer once and keeps it for as long as the file's time of modification is the same.
A file that is written again and then has that time would be read by the footer of the one before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

_MAX_FILES = 100_000

_Version = tuple[int, int, int, int, int]


class KnownFiles:
    """Versions of files by path."""

    def __init__(self) -> None:
        self._versions: dict[str, _Version] = {}

    def are_kept(self, paths: Iterable[str]) -> bool:
        """Note files that are about to be read; return whether each is as it was when first noted.

        If one is not, all are forgotten but these, and so must be what was kept of them.
        """
        now: dict[str, _Version] = {}
        for path in paths:
            with contextlib.suppress(OSError):  # which reading it reports
                found = os.stat(path)
                now[path] = (
                    found.st_dev,
                    found.st_ino,
                    found.st_size,
                    found.st_mtime_ns,
                    found.st_ctime_ns,
                )
        kept = all(self._versions.get(path, version) == version for path, version in now.items())
        if not kept or len(self._versions) > _MAX_FILES:
            self._versions.clear()
            kept = False
        self._versions.update(now)
        return kept
