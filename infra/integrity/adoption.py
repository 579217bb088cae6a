"""Tables that an older Stagecoach wrote, whose files have no checksums: one warning each."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

log = logging.getLogger(__name__)

_lock = threading.Lock()
_warned: set[str] = set()


def warn_without_checksums(table: str, location: str, checksums: Iterable[str]) -> None:
    """Warn once in a process if files of a table have no checksums.

    Args:
        table: Name of the table.
        location: Where its files are.
        checksums: Those of each of its files, packed.
    """
    missing = sum(1 for packed in checksums if not packed)
    if not missing:
        return
    with _lock:
        if location in _warned:
            return
        _warned.add(location)
    log.warning(
        "table '%s': %d of its files have no checksums, because an older Stagecoach wrote them, so "
        "damage to them may not be found; `stagecoach storage verify --adopt` adds checksums",
        table,
        missing,
    )
