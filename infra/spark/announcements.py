"""How processes of one user find the warm Sparks that run on this machine.

    watcher of a server ─▶ <machine>-<name>.json   private file: port, token, what must be equal
                               ▲ locked by the watcher as long as it lives
    command, notebook ─────────┘ reads it, and holds a lock on <machine>-<name>.use while it uses it

Like the socket of ssh-agent and the connection file of IPython, the file is for its user alone: the
folder has mode 0700 and the file 0600, and a file that anybody else could have written is not read.
Whether a server is there, and whether somebody uses it, are locks, which the kernel drops with the
process: numbers of processes come again. Removing the file asks the server of `stagecoach warm` to
end.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from stagecoach.infra.errors import ConfigError
from stagecoach.infra.host.file_locks import try_lock
from stagecoach.infra.spark.java import cache_folders, is_private

Owner = Literal["warm", "ui"]
FOLDER = "warm"

_VERSION = 1
_SUFFIX = ".json"
_IN_USE = ".use"
_MAX_BYTES = 1 << 20
_NAMESPACES = ("mnt", "net", "pid")
_POLL_SECONDS = 0.05

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """A server that is up, as its file tells.

    Args:
        port: On the loopback address.
        token: What a client must show.
        owner: Which command has started it.
        watcher_pid: The process that keeps it up; for people.
        started: When it was started, seconds since 1970.
        ttl_seconds: How long it stays without use; None for as long as its owner runs.
        log: What its JVM and its watcher say.
        host: Socket of the process that commands are forked from; empty if there is none.
        digests: Of what a client must have in common with it, by name; the token is the key.
        version: Of this format.
    """

    port: int
    token: str = field(repr=False)
    owner: Owner
    watcher_pid: int
    started: float
    ttl_seconds: float | None
    log: str
    host: str
    digests: Mapping[str, str] = field(repr=False)
    version: int = _VERSION

    @property
    def url(self) -> str:
        """The address, without the token."""
        return f"sc://localhost:{self.port}"


# ------------------------------------------------------------------ the side of the server


class Published:
    """An announcement that others can see, until `withdraw` or until this process ends.

    Args:
        announcement: What to tell.

    Raises:
        ConfigError: No folder of this user can hold it.
    """

    def __init__(self, announcement: Announcement) -> None:
        content = json.dumps(asdict(announcement)).encode()
        problems: list[str] = []
        for folder in _folders():
            try:
                _make_private(folder)
                self.path = folder / f"{machine()}-{secrets.token_hex(4)}{_SUFFIX}"
                self._lock = _write_locked(self.path, content)
            except OSError as error:
                problems.append(f"{folder}: {error.strerror or error}")
                continue
            self._in_use = os.open(_use_path(self.path), os.O_RDWR | os.O_CREAT, 0o600)
            return
        raise ConfigError(f"a warm Spark cannot be announced ({'; '.join(problems)})")

    def is_withdrawn(self) -> bool:
        """Whether somebody has removed the file, which asks the server to end."""
        return not self.path.exists()

    def is_in_use(self) -> bool:
        """Whether a client holds it at this moment."""
        if not try_lock(self._in_use):
            return True
        fcntl.flock(self._in_use, fcntl.LOCK_UN)
        return False

    def withdraw_if_unused(self) -> bool:
        """Withdraw it unless a client holds it; return whether it is withdrawn.

        A client that comes at the same moment either has it in use, or finds no file.
        """
        if not try_lock(self._in_use):
            return False
        self.withdraw()
        return True

    def withdraw(self) -> None:
        """Remove it; its lock is kept as long as this process, which still has to end."""
        _remove(self.path)


def _write_locked(path: Path, content: bytes) -> int:
    """Write a file that is locked from its first moment on; return the descriptor."""
    building = path.with_name(f".{path.name}")
    opened = os.open(building, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        if not try_lock(opened):
            raise OSError("a new file is locked")
        os.write(opened, content)
        os.replace(building, path)
    except OSError:
        os.close(opened)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(building)
        raise
    return opened


# ------------------------------------------------------------------ the side of clients


@dataclass(frozen=True, eq=False)
class Found:
    """A server that was there when somebody looked.

    Args:
        announcement: What it tells.
        path: Its file.
    """

    announcement: Announcement
    path: Path

    def hold(self) -> Hold | None:
        """Keep the server from ending for want of use; None where it is ending just now."""
        try:
            opened = os.open(_use_path(self.path), os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            fcntl.flock(opened, fcntl.LOCK_SH)
        except OSError:
            os.close(opened)
            return None
        hold = Hold(opened)
        if not self.path.exists():  # withdrawn before we had the lock
            hold.release()
            return None
        return hold

    def is_in_use(self) -> bool:
        """Whether a client holds it at this moment."""
        with contextlib.suppress(OSError):
            opened = os.open(_use_path(self.path), os.O_RDWR | os.O_NOFOLLOW)
            try:
                return not try_lock(opened)
            finally:
                os.close(opened)
        return False

    def end(self, seconds: float) -> bool:
        """Ask the server to end, and wait; return whether it has ended in time."""
        try:
            opened = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        try:
            self.path.unlink(missing_ok=True)
            deadline = time.monotonic() + seconds
            # Its watcher holds the lock until the JVM is gone, and itself.
            while not try_lock(opened, fcntl.LOCK_SH):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_POLL_SECONDS)
            return True
        finally:
            os.close(opened)


class Hold:
    """A use of a server, until it is released or this process ends.

    Args:
        opened: The descriptor whose lock shows it.
    """

    def __init__(self, opened: int) -> None:
        self._opened: int | None = opened

    def release(self) -> None:
        """End the use."""
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None


def find_servers() -> list[Found]:
    """Return the servers of this user that run on this machine, the newest first.

    Files that ended servers have left are removed.
    """
    found: list[Found] = []
    for folder in _folders():
        if not _is_private_folder(folder):
            continue
        for path in folder.glob(f"{machine()}-*{_SUFFIX}"):
            try:
                announcement = _read(path)
            except (OSError, ValueError, TypeError) as error:
                log.info("%s is not read: %s", path, error)
                continue
            if announcement is not None:
                found.append(Found(announcement, path))
    return sorted(found, key=lambda item: item.announcement.started, reverse=True)


def server_folder() -> Path:
    """Return the private folder of this user for what warm servers write, made if it is missing.

    Raises:
        ConfigError: There is none that this user alone can read and write.
    """
    folders = list(_folders())
    for folder in folders:
        with contextlib.suppress(OSError):
            _make_private(folder)
            return folder
    places = ", ".join(map(str, folders))
    raise ConfigError(f"none of these folders is private and can be written: {places}")


def _read(path: Path) -> Announcement | None:
    """The announcement in a file; None where its server has ended, whose file is removed."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if not _is_private_file(os.fstat(opened)):
            raise ValueError("other users can read or write it")
        if try_lock(opened, fcntl.LOCK_SH):
            _remove(path)
            return None
        content = json.loads(os.read(opened, _MAX_BYTES))
    finally:
        os.close(opened)
    if content.get("version") != _VERSION:
        raise ValueError(f"its format is {content.get('version')}, and not {_VERSION}")
    return Announcement(**content)


@functools.cache
def machine() -> str:
    """What tells this machine, since its start, and this container from others: 16 digits.

    They may share the folder, but not addresses, files and processes.
    """
    parts = [os.uname().nodename]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts += [os.readlink(f"/proc/self/ns/{name}") for name in _NAMESPACES]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _folders() -> Iterator[Path]:
    for folder in cache_folders():
        yield folder / FOLDER


def _make_private(folder: Path) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(folder.parent):
        raise PermissionError("other users can write to it")
    folder.mkdir(mode=0o700, exist_ok=True)
    if not _is_private_folder(folder):
        raise PermissionError("other users can enter it")


def _is_private_folder(folder: Path) -> bool:
    """Whether it is there, and nobody else can even enter it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _is_private_file(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _remove(path: Path) -> None:
    for suffix in (_SUFFIX, _IN_USE):
        path.with_suffix(suffix).unlink(missing_ok=True)


def _use_path(path: Path) -> Path:
    return path.with_suffix(_IN_USE)
