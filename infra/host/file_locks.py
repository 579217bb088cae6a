"""File locks that show whether a process still uses something.

Worker code. The kernel drops a lock when the last descriptor of its opening is closed, so with the
process at the latest, however that ends. Numbers of processes tell less: they come again, and those
of other machines and containers mean nothing here.
"""

from __future__ import annotations

import errno
import fcntl
import os

NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems without such locks (some network ones) say."""


def try_lock(opened: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock what is open, if that needs no waiting; return whether it is locked.

    Args:
        opened: Its descriptor.
        kind: `fcntl.LOCK_EX` for this opening alone, `fcntl.LOCK_SH` beside others of that kind.

    Raises:
        OSError: Nothing can be locked there.
    """
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_folder(folder: str) -> int | None:
    """The folder, opened and locked; None where another process has locked or removed it.

    Raises:
        OSError: It cannot be opened, or nothing can be locked there.
    """
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        if try_lock(opened) and os.path.samestat(os.stat(folder), os.fstat(opened)):
            return opened
    except FileNotFoundError:
        pass
    except OSError:
        os.close(opened)
        raise
    os.close(opened)
    return None
