"""The zip file of our packages for executors that cannot import them.

There is one file for each version of the code, in the user's cache folder: processes that are
killed leave nothing behind, and a later one ships the same file. Executors run what is in it, so it
must be this user's: the folder and the file are refused where others could have written them.
"""

from __future__ import annotations

import functools
import logging
import os
import tempfile
import zipfile
from pathlib import Path

from stagecoach.infra.errors import ConfigError
from stagecoach.infra.spark.connect_conf import code_digest, code_files
from stagecoach.infra.spark.java import cache_folders, is_private

_FIRST_DATE = (1980, 1, 1, 0, 0, 0)

log = logging.getLogger(__name__)


@functools.cache
def code_zip() -> Path:
    """Return a zip file of the packages that executors import, named by its content.

    Raises:
        ConfigError: No folder for it can be written.
    """
    folders = list(cache_folders())
    for folder in folders:
        try:
            if (found := _zip_in(folder)) is not None:
                return found
        except OSError as error:
            log.debug("no archive of the code in %s: %s", folder, error)
    raise ConfigError(
        "the code for Spark's executors cannot be stored; none of these folders can be written by "
        f"this user alone: {', '.join(map(str, folders))}; set XDG_CACHE_HOME to one that can"
    )


def _zip_in(folder: Path) -> Path | None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(folder):
        log.warning("%s can be written by other users; not used", folder)
        return None
    target = folder / f"stagecoach_code_{code_digest()[:16]}.zip"
    if _is_ours(target):
        return target
    handle, building = tempfile.mkstemp(prefix=".code-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, content in code_files():
                # The same bytes for the same code: Spark compares what it is sent twice.
                entry = zipfile.ZipInfo(name, date_time=_FIRST_DATE)
                archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
        os.replace(building, target)
    except BaseException:
        os.unlink(building)
        raise
    return target


def _is_ours(path: Path) -> bool:
    """Whether a file is there that this user has written, whole: it was moved there in one step."""
    if path.is_symlink() or not path.is_file():
        return False
    found = path.lstat()
    return found.st_uid == os.getuid() and not found.st_mode & 0o022 and zipfile.is_zipfile(path)
