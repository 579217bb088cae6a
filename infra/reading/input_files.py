"""Whether table files are still those of the run's snapshot: looked at before and after a read.

DuckDB opens a file anew for each scan of it, so a file that is replaced between two scans of one
fragment would give rows of two versions. Each task therefore looks at its files before it reads
them and again before its output becomes visible. A file on S3 is read with its ETag as a condition,
so each request sees the version that was meant or fails.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from stagecoach.infra.errors import InputLostError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.storage.file_identity import difference
from stagecoach.infra.storage.object_store import (
    ObjectChangedError,
    ObjectMissingError,
    StorageOptions,
)
from stagecoach.infra.storage.table_files import (
    FileEntry,
    is_conditional,
    open_file,
    open_known,
    stat_file,
)

if TYPE_CHECKING:
    import pyarrow as pa


def check_file(file: DataFile, options: StorageOptions | None = None) -> None:
    """Look whether a file is still the one of the run's snapshot, by size and version.

    Raises:
        InputLostError: It is gone or has changed.
        StorageError: The storage refused.
    """
    try:
        found = stat_file(file.uri, options)
    except FileNotFoundError:
        raise _lost(file, "there is no such file") from None
    _compare(file, found)


def check_still_same(files: Iterable[DataFile], options: StorageOptions | None = None) -> None:
    """Look at each file among these once, but for those whose every read is conditional.

    Raises:
        InputLostError: One is gone or has changed.
        StorageError: The storage refused.
    """
    seen = {f.uri: f for f in files if f.version and not is_conditional(f.uri)}
    for file in seen.values():
        check_file(file, options)


@contextmanager
def opened_unchanged(
    file: DataFile, options: StorageOptions | None = None
) -> Iterator[pa.NativeFile]:
    """Open a file of the run's snapshot for reading inside the block.

    Raises:
        InputLostError: It is gone or has changed, before or while it is read.
        StorageError: The storage refused.
    """
    with _opened(file, options) as source, losses_named(file, options):
        yield source


@contextmanager
def losses_named(file: DataFile, options: StorageOptions | None = None) -> Iterator[None]:
    """Turn what reading a file raises in the block into what is wrong with the run's snapshot.

    Raises:
        InputLostError: The file is gone or has changed.
        StorageError: The storage refused.
    """
    try:
        yield
    except ObjectMissingError:
        raise _lost(file, "there is no such file") from None
    except ObjectChangedError:
        check_file(file, options)  # says in which respect
        raise _lost(file, "it was replaced while it was read") from None
    except (OSError, EOFError) as error:  # what Arrow raises where bytes make no sense
        raise _lost(file, f"it is damaged ({error})") from error


def _opened(file: DataFile, options: StorageOptions | None) -> pa.NativeFile:
    if (known := open_known(file.uri, file.num_bytes, file.version, options)) is not None:
        return known
    try:
        source, found = open_file(file.uri, options)
    except FileNotFoundError:
        raise _lost(file, "there is no such file") from None
    with ExitStack() as closing:
        closing.enter_context(source)
        _compare(file, found)
        closing.pop_all()
    return source


def _compare(file: DataFile, found: FileEntry) -> None:
    if file.num_bytes and found.num_bytes != file.num_bytes:
        raise _lost(file, f"it has {found.num_bytes} bytes instead of {file.num_bytes}")
    changed = difference(file.version, found.version) if file.version else None
    if changed is not None:
        raise _lost(file, f"it has changed since ({changed})")


def _lost(file: DataFile, problem: str) -> InputLostError:
    # Files that are never written twice have no version.
    return InputLostError(file.uri, problem, not file.version)
