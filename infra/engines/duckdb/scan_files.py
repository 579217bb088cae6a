"""A file system of DuckDB's in which the remote files of running fragments have names.

Worker code. DuckDB's own Parquet reader then reads remote files as it reads local ones: the same
types, filters and row groups. It calls a handle from several threads of its own.
"""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractFileSystem

from stagecoach.infra.reading.inputs import ParquetInput
from stagecoach.infra.reading.remote_files import RemoteFiles
from stagecoach.infra.reading.windowed_file import WindowedFile

if TYPE_CHECKING:
    import duckdb

PROTOCOL = "stagecoach-scan"
FOLDER = f"{PROTOCOL}://files"
"""Where all names are: DuckDB is allowed a folder, not a scheme."""

_NEVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class FragmentFiles:
    """The remote files of one fragment, by name; `close` forgets them.

    Args:
        filesystem: That of the fragment's database.
        memory_bytes: Bound of what is fetched of them and not yet decoded.
        errors: Where the errors of reads go, which DuckDB passes on as texts.
    """

    def __init__(
        self, filesystem: ScanFileSystem, memory_bytes: int, errors: list[BaseException]
    ) -> None:
        self._filesystem = filesystem
        self._files = RemoteFiles(memory_bytes)
        self._errors = errors
        self._token = uuid.uuid4().hex
        filesystem.fragments[self._token] = self

    def add(self, leaf: ParquetInput) -> Mapping[str, str]:
        """Begin to open the files of a scan; return what DuckDB opens, by URI."""
        return {
            uri: f"{FOLDER}/{self._token}/{number}.parquet"
            for uri, number in self._files.add(leaf).items()
        }

    def open(self, number: int) -> _Handle:
        """Open a file.

        Raises:
            StagecoachError: It cannot be read.
        """
        with _noted(self._errors):
            return _Handle(self._files.open(number), self._errors)

    def close(self) -> None:
        """Close the files."""
        del self._filesystem.fragments[self._token]
        self._files.close()


class ScanFileSystem(AbstractFileSystem):
    """What DuckDB asks of a file system, for files that are read only."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.fragments: dict[str, FragmentFiles] = {}

    @classmethod
    def register(cls, connection: duckdb.DuckDBPyConnection) -> ScanFileSystem:
        """Return a new one that a database knows."""
        found = cls()
        connection.register_filesystem(found)
        return found

    def open(self, path: str, mode: str = "rb", **options: Any) -> _Handle:
        """Open a file of a fragment."""
        fragment = self.fragments.get(_token(path))
        if fragment is None:
            raise FileNotFoundError(path)
        return fragment.open(int(path.rpartition("/")[2].removesuffix(".parquet")))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Size and kind of a file."""
        return {"name": path, "size": self.open(path).size, "type": "file"}

    def exists(self, path: str, **options: Any) -> bool:
        """Whether a running fragment has the file."""
        return _token(path) in self.fragments

    def isfile(self, path: str) -> bool:
        """Return what `exists` does: this file system has no folders."""
        return self.exists(path)

    def glob(self, path: str, **options: Any) -> list[str]:
        """Return the path itself: names are not patterns."""
        return [path]

    def modified(self, path: str) -> datetime.datetime:
        """Some time: a name is never given twice."""
        return _NEVER


@contextmanager
def _noted(errors: list[BaseException]) -> Iterator[None]:
    """Keep what is raised in the block: DuckDB passes on its text only, of an interrupt, too."""
    try:
        yield
    except BaseException as error:
        errors.append(error)
        raise


def _token(path: str) -> str:
    return path.rpartition("/")[0].rpartition("/")[2]


class _Handle:
    """An open file; each thread has a position of its own."""

    def __init__(self, file: WindowedFile, errors: list[BaseException]) -> None:
        self.size = file.num_bytes
        self.closed = False
        self._file = file
        self._errors = errors
        self._of_thread = threading.local()

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set where the next read of this thread begins."""
        start = {0: 0, 1: self.tell(), 2: self.size}[whence]
        self._of_thread.position = start + offset
        return start + offset

    def tell(self) -> int:
        """Where the next read of this thread begins."""
        return getattr(self._of_thread, "position", 0)

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        start = self.tell()
        left = max(self.size - start, 0)
        nbytes = left if size < 0 else min(size, left)
        with _noted(self._errors):
            found = self._file.read_at(nbytes, start)
        self._of_thread.position = start + nbytes
        return bytes(found)

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """The fragment closes its files."""
