"""What has been checked lately, so that the tasks of a host do not check the same bytes again.

Worker code. In memory for this process, and in a folder that its user's processes on this host
share:

    <parent>/stagecoach-checked-<user>/<file version>    one time (uint32) for each part of the file

A version of a file is its device, inode, size and times of modification and status change: whoever
writes to a file changes the last of them, whatever he does to the others. Bits that rot on the
device change none, so what was checked is checked again after some minutes. A record that is lost
costs one more check. A record that is damaged has a time that lies far away, so it counts as none.
"""

from __future__ import annotations

import array
import contextlib
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence

_MAX_FILES = 4096
"""File versions that a process remembers."""


class CheckedParts:
    """Parts of files that were checked.

    Args:
        parent: Local folder in which the shared folder is; empty to remember in memory only.
        seconds: How long a check counts.
    """

    def __init__(self, parent: str, seconds: float) -> None:
        self._parent = parent
        self._seconds = seconds
        self._known: OrderedDict[str, dict[int, float]] = OrderedDict()
        self._swept = 0.0

    def missing(self, version: str, parts: Iterable[int]) -> list[int]:
        """Return those of the parts of a file that are to be checked.

        Args:
            version: What `file_version` returned.
            parts: Numbers of parts.
        """
        known = self._known.get(version, {})
        now = time.time()
        missing = [part for part in parts if not self._counts(known.get(part, 0.0), now)]
        if not missing or not self._parent:
            return missing
        times = self._read(version)
        found = {
            part: float(times[part])
            for part in missing
            if part < len(times) and self._counts(times[part], now)
        }
        self._remember(version, found)
        return [part for part in missing if part not in found]

    def add(self, version: str, parts: Sequence[int]) -> None:
        """Remember that these parts of a file are right at this moment."""
        now = time.time()
        self._remember(version, dict.fromkeys(parts, now))
        if not self._parent or not parts:
            return
        with contextlib.suppress(OSError):  # a check more, nothing else
            folder = _open_folder(self._parent)
            try:
                if now - self._swept > self._seconds:
                    self._swept = now
                    self._sweep(folder, now)
                self._write(folder, version, parts, int(now))
            finally:
                os.close(folder)

    def _counts(self, checked: float, now: float) -> bool:
        return 0 <= now - checked <= self._seconds

    def _remember(self, version: str, times: dict[int, float]) -> None:
        if times:
            self._known.setdefault(version, {}).update(times)
            self._known.move_to_end(version)
        while len(self._known) > _MAX_FILES:
            self._known.popitem(last=False)

    def _read(self, version: str) -> array.array[int]:
        times = array.array("I")
        with contextlib.suppress(OSError):
            folder = _open_folder(self._parent)
            try:
                file = os.open(version, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    content = os.read(file, os.fstat(file).st_size)
                finally:
                    os.close(file)
            finally:
                os.close(folder)
            times.frombytes(content[: len(content) // times.itemsize * times.itemsize])
        return times

    @staticmethod
    def _write(folder: int, version: str, parts: Sequence[int], now: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
        file = os.open(version, flags, 0o600, dir_fd=folder)
        try:
            moment = array.array("I", [now])
            for first, end in _runs(parts):
                os.pwrite(file, (moment * (end - first)).tobytes(), first * moment.itemsize)
        finally:
            os.close(file)

    def _sweep(self, folder: int, now: float) -> None:
        """Remove records in which nothing counts any more."""
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not self._counts(status.st_mtime, now):
                    os.unlink(name, dir_fd=folder)


def file_version(status: os.stat_result, *expected: str) -> str:
    """Return a name for a file's version and what is expected of it."""
    identity = (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        *expected,
    )
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:40]


def _runs(parts: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Neighbouring numbers as ranges."""
    start = previous = None
    for part in sorted(parts):
        if start is None or previous is None:
            start = part
        elif part != previous + 1:
            yield start, previous + 1
            start = part
        previous = part
    if start is not None and previous is not None:
        yield start, previous + 1


def _open_folder(parent: str) -> int:
    """The shared folder, opened; made where it is missing.

    Raises:
        OSError: It cannot be made or opened, or other users may write there.
    """
    path = os.path.join(parent, f"stagecoach-checked-{os.geteuid()}")
    with contextlib.suppress(FileExistsError):
        os.makedirs(parent, exist_ok=True)
        os.mkdir(path, 0o700)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        os.close(folder)
        raise PermissionError(f"{path} is not a folder of this user alone")
    return folder
