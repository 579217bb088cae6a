"""Folders for what a process spills, removed soon after the process ends.

Worker code. A process that is killed removes nothing, so whoever makes a folder removes those
beside it whose processes have ended. A lock on the folder tells, which the kernel drops with the
process: numbers of processes come again, and those of other machines and containers, which may
share the parent, mean nothing here. The number is in the name for people only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile

from stagecoach.infra.host.file_locks import NO_LOCKS, lock_folder
from stagecoach.infra.host.shared_files import sweep_shared_files

_NAME = re.compile(r"stagecoach-[a-z]+-\d+-\w+")


class ProcessFolder:
    """A folder of this process, there until `close` or until the process has ended.

    Args:
        parent: Where it is made; made itself if it is missing.
        kind: What it is for, in lower-case letters.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, parent: str, kind: str) -> None:
        os.makedirs(parent, exist_ok=True)
        sweep_process_folders(parent)
        self._lock: int | None = None
        while self._lock is None:  # another process may remove it before it is locked
            self.path = tempfile.mkdtemp(prefix=f"stagecoach-{kind}-{os.getpid()}-", dir=parent)
            try:
                self._lock = lock_folder(self.path)
            except OSError as error:
                if error.errno in NO_LOCKS:
                    return  # nobody else will remove it, either
                raise

    def close(self) -> None:
        """Remove it and what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep_process_folders(parent: str) -> None:
    """Remove the folders of processes that have ended without doing so; others are kept.

    The same is done with files that processes share there.

    Args:
        parent: Where they are; nothing happens where it cannot be listed.
    """
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(parent) if _NAME.fullmatch(name)]
    for name in names:
        folder = os.path.join(parent, name)
        with contextlib.suppress(OSError):  # somebody else's, or there are no locks
            if (lock := lock_folder(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
    sweep_shared_files(parent)
