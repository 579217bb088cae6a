"""Which version of a file it is: a text that changes whenever the file's content may have changed.

A modification time can be set back, as `cp -p` and `rsync -t` do, so size and modification time do
not tell a file from another one that took its place. What nobody can set does:

    local, strict     modification time, change time (ctime) and inode
    local, portable   modification time only, for file systems whose inodes or change times differ
                      from mount to mount
    S3                ETag and the time of the last write
    elsewhere         ETag or generation, if the storage has one, and the time of the last write

The text says itself what it consists of. So whoever compares a file with it needs no setting, and
a text that an earlier version of Stagecoach wrote down (modification time only, ETag only) is still
compared by all that it has.

Worker code.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Mapping
from typing import Any

from stagecoach.infra.storage.object_store import FileIdentityPolicy

_SEPARATOR = ":"
_S3_SEPARATOR = ";"
_NAMES = ("modification time", "change time", "inode")
_TICK_NS = 20_000_000
"""Two writes within one tick of the kernel's clock (1 to 10 ms) leave the same times."""


def local_version(status: os.stat_result, policy: FileIdentityPolicy = "strict") -> str:
    """Return the version of a local file.

    Args:
        status: What the file system says of the file.
        policy: `portable` leaves out what may differ between two mounts of a file system.
    """
    parts = [status.st_mtime_ns]
    if policy == "strict":
        parts += [status.st_ctime_ns, status.st_ino]
    return _SEPARATOR.join(map(str, parts))


def s3_version(details: Mapping[str, Any]) -> str:
    """Return the version of an object of S3, of what a listing or a HEAD request says of it."""
    etag = str(details.get("ETag") or "").strip('"')
    written = _seconds(details.get("LastModified"))
    return etag if written is None else f"{etag}{_S3_SEPARATOR}{written}"


def object_version(details: Mapping[str, Any]) -> str:
    """Return the version of an object elsewhere, of what its file system says of it.

    File systems have no common names: an ETag or a generation if there is one, and the time of the
    last write. Where a file system tells neither, only the size is compared.
    """
    names = ("etag", "ETag", "generation", "md5Hash", "content_md5", "checksum")
    tag = next((str(found).strip('"') for name in names if (found := details.get(name))), "")
    times = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
    moment = next((found for name in times if (found := details.get(name)) is not None), None)
    if isinstance(moment, int | float):
        moment = datetime.datetime.fromtimestamp(moment, datetime.UTC)
    written = _seconds(moment)
    exact = moment.isoformat() if isinstance(moment, datetime.datetime) else str(moment or "")
    return f"{tag or exact}{_S3_SEPARATOR}{'' if written is None else written}"


def s3_etag(version: str) -> str:
    """Return the ETag of a version of an object, without quotes; empty where it has none."""
    return version.partition(_S3_SEPARATOR)[0]


def difference(expected: str, found: str) -> str | None:
    """Return in which respect a file is another one than it was; None where it is the same.

    Args:
        expected: Its version at the time of the snapshot.
        found: Its version now, strict.
    """
    old, new = expected.split(_SEPARATOR), found.split(_SEPARATOR)
    if not all(part.isdigit() for part in old + new):
        return _s3_difference(expected, found)
    known = zip(_NAMES, old, new, strict=False)  # an older or portable text has fewer
    return ", ".join(name for name, before, now in known if before != now) or None


def let_tick_pass(status_times_ns: int) -> None:
    """Wait until a write from now on leaves another change time than one that was seen.

    Without this, a file that is written twice within one tick of the kernel's clock, and listed in
    between, would look unchanged. Only files that were written just now are waited for, 20 ms at
    most.

    Args:
        status_times_ns: The latest change time that was seen.
    """
    age = time.time_ns() - status_times_ns
    if 0 <= age < _TICK_NS:
        time.sleep((_TICK_NS - age) / 1e9)


def _s3_difference(expected: str, found: str) -> str | None:
    (old_tag, _, old_time), (new_tag, _, new_time) = (
        text.partition(_S3_SEPARATOR) for text in (expected, found)
    )
    if old_tag != new_tag:
        return "ETag"
    # A listing may round the fraction of a second that a HEAD request cuts off.
    if old_time and new_time and abs(int(old_time) - int(new_time)) > 1:
        return "time of the last write"
    return None


def _seconds(moment: object) -> int | None:
    """A time in whole seconds since 1970; None where it is none."""
    if isinstance(moment, str):
        try:
            moment = datetime.datetime.fromisoformat(moment)
        except ValueError:
            return None
    return int(moment.timestamp()) if isinstance(moment, datetime.datetime) else None
