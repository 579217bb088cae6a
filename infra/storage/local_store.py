"""`LocalStore`: an object store over a local (or shared POSIX) folder.

Each object is a file below the root. It is written to a hidden temporary file beside its target and
moved there in one step, so that a reader never sees half a file.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from stagecoach.infra.storage.object_store import (
    ByteSink,
    StorageOptions,
    check_key,
    explain_os_error,
)

_TEMPORARY_PREFIX = ".tmp-"
_CREATE_TRIES = 5


class LocalStore:
    """Objects as files below `root`; see `ObjectStore` for the contract."""

    def __init__(self, root: str, options: StorageOptions | None = None) -> None:
        self._root = Path(os.path.abspath(os.path.expanduser(root)))
        self._options = options or StorageOptions()

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    @property
    def is_local(self) -> bool:
        """Always true."""
        return True

    def uri(self, key: str) -> str:
        """Return the absolute path of `key`."""
        return str(self._path(key))

    def read_bytes(self, key: str, offset: int | None = None, length: int | None = None) -> bytes:
        """Return the file or a range of it."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                if offset:
                    file.seek(offset)
                return file.read(-1 if length is None else length)
        except OSError as error:
            raise explain_os_error("read", str(path), error) from error

    def open_input(self, key: str) -> pa.NativeFile:
        """Return a memory map of the file."""
        path = self._path(key)
        try:
            # An empty file cannot be mapped.
            if os.stat(path).st_size == 0:
                return pa.BufferReader(b"")
            return pa.memory_map(str(path), "r")
        except OSError as error:
            raise explain_os_error("read", str(path), error) from error

    def size(self, key: str) -> int:
        """Return the size of the file in bytes."""
        path = self._path(key)
        try:
            return os.stat(path).st_size
        except OSError as error:
            raise explain_os_error("read the size of", str(path), error) from error

    def exists(self, key: str) -> bool:
        """Return whether there is a file."""
        return self._path(key).is_file()

    def write_bytes(self, key: str, data: bytes) -> None:
        """Write the file, replacing one that is there."""
        path = self._path(key)
        with self._temporary(path) as file:
            _Sink(file, str(path)).write(data)
            self._finish(file, path, sync=self._options.fsync != "never")

    def put_if_absent(self, key: str, data: bytes, *, looked: bool = False) -> bool:
        """Write the file unless there is one; the check and the move are one atomic `link`."""
        path = self._path(key)
        if path.exists():
            return False
        with self._temporary(path) as file:
            _Sink(file, str(path)).write(data)
            sync = self._options.fsync != "never"
            return self._finish(file, path, sync=sync, exclusive=True)

    @contextmanager
    def open_output(self, key: str) -> Iterator[ByteSink]:
        """Yield a sink; the file appears when the block ends without an exception."""
        path = self._path(key)
        with self._temporary(path) as file:
            yield _Sink(file, str(path))
            self._finish(file, path, sync=self._options.fsync == "all")

    def delete(self, keys: Sequence[str]) -> None:
        """Remove the files, and the folders that this leaves empty."""
        for key in keys:
            path = self._path(key)
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise explain_os_error("delete", str(path), error) from error
            for parent in path.parents:
                if parent == self._root or self._root not in parent.parents:
                    break
                try:
                    parent.rmdir()
                except OSError:
                    break  # not empty, or gone already

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the keys below `prefix`, sorted; left-over temporary files included."""
        start = self._path(prefix) if prefix else self._root
        keys = [
            Path(folder, name).relative_to(self._root).as_posix()
            for folder, _, files in os.walk(start)
            for name in files
        ]
        yield from sorted(keys)

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders right below `prefix`, sorted."""
        try:
            with os.scandir(self._path(prefix) if prefix else self._root) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise explain_os_error("list", self.uri(prefix), error) from error

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `store_from_dict`."""
        return {"url": str(self._root), "options": self._options.to_dict()}

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    @contextmanager
    def _temporary(self, path: Path) -> Iterator[IO[bytes]]:
        """Yield an open temporary file beside `path`; its name is gone when the block ends."""
        temporary = path.with_name(f"{_TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        file = self._create(temporary, path)
        try:
            yield file
            _close(file, path)
        finally:
            # What is still buffered cannot be written either where the disk is full.
            with suppress(OSError):
                file.close()
            temporary.unlink(missing_ok=True)

    @staticmethod
    def _create(temporary: Path, path: Path) -> IO[bytes]:
        for remaining in reversed(range(_CREATE_TRIES)):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                return open(temporary, "xb")
            except (FileNotFoundError, FileExistsError) as error:
                # `delete` in another process removed the empty folder in between: after it was
                # made, or when `mkdir` had found it and looked whether it is one.
                if not remaining:
                    raise explain_os_error("write", str(path), error) from error
            except OSError as error:
                raise explain_os_error("write", str(path), error) from error
        raise AssertionError("unreachable")

    def _finish(self, file: IO[bytes], path: Path, *, sync: bool, exclusive: bool = False) -> bool:
        """Give the temporary `file` its name; with `exclusive`, only if the name is free."""
        try:
            file.flush()
            if sync:
                os.fsync(file.fileno())
            if exclusive:
                os.link(file.name, path)
            else:
                os.replace(file.name, path)
            if sync:
                self._sync_folder(path.parent)
        except OSError as error:
            if exclusive and isinstance(error, FileExistsError):
                return False
            raise explain_os_error("write", str(path), error) from error
        return True

    @staticmethod
    def _sync_folder(folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _close(file: IO[bytes], path: Path) -> None:
    try:
        file.close()
    except OSError as error:
        raise explain_os_error("write", str(path), error) from error


class _Sink:
    """A file whose write errors name the final path rather than the temporary one."""

    def __init__(self, file: IO[bytes], uri: str) -> None:
        self._file = file
        self._uri = uri

    def write(self, data: Any, /) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            raise explain_os_error("write", self._uri, error) from error
