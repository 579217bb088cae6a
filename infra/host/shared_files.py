"""Files that one process of a host writes and the others map into memory.

Worker code. They lie in a folder that only their user may enter:

    <parent>/stagecoach-shared-<user>/<name>        mapped by whoever has a lock on it
                                      <name>.part   written by the process that has a lock on it

There is one rule: what nobody has locked is garbage, and whoever comes to the folder removes it
first. So nothing is left of processes that were killed, nothing half-written is ever used, and
nothing that lay on a disk while no process had it, or when the machine stopped. What is read is
what some process has written and living ones have had mapped since, in the system's cache of pages:
as safe as a process's memory, which may be swapped out, too. So it has no checksums. A map has its
file's lock for as long as anything refers to it. Names come and go while the folder is locked,
which is for less than a millisecond. All goes by descriptors: somebody else may own the parent, and
move what is in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import mmap
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from stagecoach.infra.host.file_locks import lock_folder, try_lock

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_LOCK_SECONDS = 5.0
"""How long a process waits for the folder's lock: another may have been stopped while it had it."""

_POLL_SECONDS = 0.001

_PART = ".part"


@dataclass(frozen=True)
class Unfinished:
    """A file that is being written elsewhere.

    Args:
        num_bytes: What it has so far.
    """

    num_bytes: int


class SharedFolder:
    """The folder of this user.

    Args:
        parent: Local folder in which it is; both are made where they are missing.
    """

    def __init__(self, parent: str) -> None:
        self._parent = parent

    def open(self, name: str) -> mmap.mmap | Draft | Unfinished | None:
        """Find a file, or begin it.

        Args:
            name: Its name, which names its content for good; no `.`.

        Returns:
            A map of the file; what there is of one that is being written; None for one that its
            writer has declined; a draft of a new one, which the caller must close.

        Raises:
            OSError: The folder cannot be used, or has no locks.
        """
        with self.locked() as folder:
            _sweep(folder)
            with contextlib.suppress(FileNotFoundError):
                return _map_file(folder, name)
            with contextlib.suppress(FileNotFoundError):
                return Unfinished(os.stat(name + _PART, dir_fd=folder).st_size)
            return Draft(self, folder, name)

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Lock it while the block runs, which gets its descriptor.

        Raises:
            OSError: It cannot be used, or has no locks.
        """
        deadline = time.monotonic() + _LOCK_SECONDS
        os.makedirs(self._parent, exist_ok=True)
        while (lock := _lock_own(self._parent, make=True)) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{_path(self._parent)} is locked by another process")
            time.sleep(_POLL_SECONDS)
        try:
            yield lock
        finally:
            os.close(lock)


class Draft:
    """A file that this process writes; others wait for it.

    Args:
        owner: Where it is.
        folder: The same, open and locked.
        name: Its name once it is finished.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, owner: SharedFolder, folder: int, name: str) -> None:
        self._owner = owner
        self._name = name
        self._present_name = name + _PART
        # Opened anew: a copy of the descriptor would hold the folder's lock.
        self._folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
            self._file = os.open(self._present_name, flags, 0o600, dir_fd=folder)
        except OSError:
            os.close(self._folder)
            raise
        self._is_open = True
        try_lock(self._file, fcntl.LOCK_SH)  # it can: the folder is on the same file system

    @property
    def folder_bytes(self) -> int:
        """Size of all files in the folder."""
        sizes = 0
        for name in os.listdir(self._folder):
            with contextlib.suppress(FileNotFoundError):
                sizes += os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_size
        return sizes

    def writer(self) -> io.RawIOBase:
        """A file of what is added to its end; `close` closes it."""
        return _Writer(self._file)

    def reader(self) -> IO[bytes]:
        """A file of what it has so far."""
        os.lseek(self._file, 0, os.SEEK_SET)
        return os.fdopen(os.dup(self._file), "rb")

    def publish(self) -> mmap.mmap:
        """Let others have it as it is now, and return a map of it.

        Raises:
            OSError: It cannot be mapped, or the folder not be used.
        """
        # Of a copy of the descriptor, so it has the lock as well.
        mapped = mmap.mmap(self._file, 0, prot=mmap.PROT_READ)
        self._rename()
        self._release()
        return mapped

    def decline(self) -> None:
        """Let others know until `close` that it will not come; what is written is lost.

        Raises:
            OSError: The folder cannot be used.
        """
        os.ftruncate(self._file, 0)  # a finished file is never empty
        self._rename()

    def close(self) -> None:
        """Remove it, unless it is published."""
        if self._is_open:
            with contextlib.suppress(OSError):  # what stays has no lock, so the next one removes it
                os.unlink(self._present_name, dir_fd=self._folder)
            self._release()

    def _rename(self) -> None:
        names = self._present_name, self._name
        with self._owner.locked():
            os.rename(*names, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._present_name = self._name

    def _release(self) -> None:
        self._is_open = False
        os.close(self._file)
        os.close(self._folder)


class _Writer(io.RawIOBase):
    """Writes all that it is given, or raises an error, and keeps nothing back."""

    def __init__(self, file: int) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, content: ReadableBuffer) -> int:
        """Write all of it.

        Raises:
            OSError: The disk is full, for example; some of it may be written.
        """
        view = memoryview(content).cast("B")
        size = len(view)
        while view:
            view = view[os.write(self._file, view) :]
        return size


def sweep_shared_files(parent: str) -> None:
    """Remove the files that no process uses, and the folder if it is empty then.

    Args:
        parent: Where the folder is. Nothing happens where it is not; or is locked, for whoever has
            locked it does the same.
    """
    with contextlib.suppress(OSError):  # somebody else's, or there are no locks
        if (lock := _lock_own(parent)) is not None:
            try:
                _sweep(lock)
                os.rmdir(_path(parent))
            finally:
                os.close(lock)


def _path(parent: str) -> str:
    return os.path.join(parent, f"stagecoach-shared-{os.geteuid()}")


def _lock_own(parent: str, *, make: bool = False) -> int | None:
    """The folder, opened and locked; None where it is not there, or another has locked it.

    Raises:
        OSError: It cannot be opened, is open to others, or has no locks.
    """
    path = _path(parent)
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    lock = lock_folder(path)
    if lock is None:
        return None
    found = os.fstat(lock)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        # Where the parent is open to all, anybody may have made it.
        os.close(lock)
        raise PermissionError(f"{path} is not a folder of this user alone")
    return lock


def _sweep(folder: int) -> None:
    """Remove what nobody has locked from a folder that is locked."""
    for name in os.listdir(folder):
        try:
            opened = os.open(name, os.O_RDWR | os.O_NOFOLLOW, dir_fd=folder)
        except FileNotFoundError:  # its writer has given it up
            continue
        try:
            if try_lock(opened):
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(opened)


def _map_file(folder: int, name: str) -> mmap.mmap | None:
    """A map of a finished file in a folder that is locked; None for one that was declined.

    Raises:
        FileNotFoundError: There is none.
        OSError: It cannot be mapped.
    """
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        if not os.fstat(opened).st_size:
            return None
        try_lock(opened, fcntl.LOCK_SH)  # it can: only who has locked the folder locks it alone
        # Of a copy of the descriptor, so it has the lock as well, until nothing refers to it.
        return mmap.mmap(opened, 0, prot=mmap.PROT_READ)
    finally:
        os.close(opened)
