"""`FsspecFiles`: reads and lists files of any fsspec file system, above all S3 through s3fs.

Files of tables and stored objects alike are read through it: each request with the same retries,
and errors that hide secrets. Nothing is cached: a size or a listing that is a minute old would make
a lost file look present.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa
from fsspec.spec import AbstractFileSystem

from stagecoach.infra.errors import StorageError, StorageRefusedError
from stagecoach.infra.storage.error_hints import explain_failure
from stagecoach.infra.storage.filesystems import FileSystems
from stagecoach.infra.storage.object_store import (
    S3_SCHEMES,
    ObjectMissingError,
    StorageOptions,
    check_key,
    redact_url,
)
from stagecoach.infra.storage.rereads import RECENT_WRITES
from stagecoach.infra.storage.retries import is_passing, retrying
from stagecoach.infra.storage.sized_file import SizedFile, copy_into

_T = TypeVar("_T")


class FsspecFiles:
    """Files below an fsspec URL, by their keys: paths relative to it."""

    def __init__(self, url: str, options: StorageOptions | None = None) -> None:
        scheme, _, rest = url.partition("://")
        self._url = f"{scheme}://{rest.rstrip('/')}"
        if scheme in S3_SCHEMES and not rest.partition("/")[0]:
            raise StorageRefusedError(
                f"{redact_url(url)} names no bucket; give s3://<bucket>/<prefix>"
            )
        self._options = options or StorageOptions()
        self._filesystems = FileSystems(self._url, self._options)
        self._is_s3 = scheme in S3_SCHEMES

    def __repr__(self) -> str:
        return f"{type(self).__name__}({redact_url(self._url)!r})"

    def uri(self, key: str) -> str:
        """Return the URL of `key`, without credentials."""
        return redact_url(f"{self._url}/{check_key(key)}")

    def read_bytes(self, key: str, offset: int | None = None, length: int | None = None) -> bytes:
        """Return the object or a range of it, in one request."""
        start = offset or 0
        if length == 0:
            return b""
        end = None if length is None else start + length
        path = self._path(key)
        if offset is None and length is None:
            return self._read("read", key, lambda: self.filesystem.cat_file(path))
        try:
            return self._read(
                "read", key, lambda: self.filesystem.cat_file(path, start=start, end=end)
            )
        except StorageError as error:
            if "InvalidRange" not in str(error):
                raise
            # S3 refuses a range that begins behind the end, some servers one that ends there.
            size = self.size(key)
            end = size if end is None else min(size, end)
            if start >= end:
                return b""
            return self._call(
                "read", key, lambda: self.filesystem.cat_file(path, start=start, end=end)
            )

    def open_input(self, key: str) -> pa.NativeFile:
        """Return a random-access file whose every read is a ranged request.

        Several threads may `read_at` it at the same time.
        """
        return self.open_described(key)[0]

    def open_described(self, key: str) -> tuple[pa.NativeFile, dict[str, Any]]:
        """Return what `open_input` does, and what the store says of the object.

        On S3 every read is of the object that this describes, or an `ObjectChangedError`.
        """
        details = self.describe(key)
        return _RangedFile(_Reader(self, key, details)), details

    def open_known(self, key: str, num_bytes: int, etag: str) -> pa.NativeFile:
        """Return what `open_input` does, without a request: S3 only.

        Every read is of the object with that ETag, or an `ObjectChangedError`.
        """
        return _RangedFile(_Reader(self, key, {"size": num_bytes, "ETag": etag}))

    def describe(self, key: str) -> dict[str, Any]:
        """Return what the store says of an object; the names differ from store to store."""
        path = self._path(key)
        found: dict[str, Any] = self._read(
            "read the size of", key, lambda: self.filesystem.info(path)
        )
        return found

    def children(self, prefix: str) -> Sequence[dict[str, Any]]:
        """Return what the store says of everything right below a folder, or of a file itself.

        Raises:
            ObjectMissingError: There is neither.
        """
        start = self._folder(prefix)
        return self._found(prefix, lambda: self.filesystem.ls(start, detail=True))

    def glob(self, pattern: str) -> Sequence[dict[str, Any]]:
        """Return what the store says of the files and folders that match a pattern."""
        path = self._path(pattern)
        return self._found(pattern, lambda: list(self.filesystem.glob(path, detail=True).values()))

    def key_of(self, details: Mapping[str, Any]) -> str:
        """Return the key of what `children` or `glob` describe."""
        return str(details["name"]).rstrip("/").removeprefix(self._filesystems.prefix)

    def read_tail(self, key: str, start: int, end: int, etag: str = "") -> bytes:
        """Return a range of an object, on S3 under the condition that it has the ETag.

        Raises:
            ObjectChangedError: It has another ETag.
        """
        path = self._path(key)
        match = {"if_match": etag} if etag and self._is_s3 else {}
        content: bytes = self._read(
            "read", key, lambda: self.filesystem.cat_file(path, start=start, end=end, **match)
        )
        return content

    def size(self, key: str) -> int:
        """Return the size of the object in bytes."""
        return int(self.describe(key)["size"])

    def exists(self, key: str) -> bool:
        """Return whether the object exists."""
        path = self._path(key)
        # Where nothing is there, `info` lists as well, in case of a folder; S3 has no folders.
        look = self.filesystem.head_object if self._is_s3 else self.filesystem.info
        try:
            self._read("read the size of", key, lambda: look(path))
        except ObjectMissingError:
            return False
        return True

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the keys below the folder `prefix`, sorted."""
        for key, _ in self.list_details(prefix):
            yield key

    def list_details(self, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the keys below the folder `prefix`, sorted, with what the store says of each.

        One listing has all sizes and times; their names differ from store to store. Folders are
        no objects, although s3fs finds those that a server keeps when they are empty.
        """
        try:
            found = self._call("list", prefix, lambda: self._find(self._folder(prefix)))
        except ObjectMissingError:
            return
        for path, details in sorted(found.items()):
            if details.get("type") != "directory":
                yield path.removeprefix(self._filesystems.prefix), details

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders right below `prefix`, sorted."""
        try:
            found = self.children(prefix)
        except ObjectMissingError:
            return []
        paths = (item["name"].rstrip("/") for item in found if item["type"] == "directory")
        return sorted(path.rsplit("/", 1)[-1] for path in paths)

    @property
    def filesystem(self) -> Any:
        """The fsspec file system of this thread; it may be opened, and so fail, just now."""
        return self._filesystems.get()

    def _path(self, key: str) -> str:
        return f"{self._filesystems.prefix}{check_key(key)}"

    def _folder(self, prefix: str) -> str:
        return self._path(prefix) if prefix else self._filesystems.root or self._filesystems.prefix

    def _find(self, folder: str) -> dict[str, dict[str, Any]]:
        """All files below a folder; unlike fsspec, a folder that cannot be listed is an error."""
        filesystem = self.filesystem
        if type(filesystem).find is not AbstractFileSystem.find:
            return dict(filesystem.find(folder, detail=True))
        found: dict[str, dict[str, Any]] = {}
        folders = [folder]
        while folders:
            current = folders.pop()
            with suppress(FileNotFoundError):  # it was removed just now
                for item in filesystem.ls(current, detail=True):
                    if item["type"] != "directory":
                        found[item["name"]] = item
                    elif item["name"].rstrip("/") != current:
                        folders.append(item["name"].rstrip("/"))
        return found

    def _name(self, key: str) -> str:
        """What tells an object from all others of all stores."""
        return f"{self._options.endpoint_url} {self._url}/{key}"

    def _read(self, action: str, key: str, function: Callable[[], _T]) -> _T:
        """Make a request for an object; one that was just written here cannot be missing."""
        return RECENT_WRITES.read(
            self._name(key),
            lambda: self._call(action, key, function),
            ObjectMissingError,
            self._options.retry_seconds,
            lambda: self.uri(key),
        )

    def _call(self, action: str, key: str, function: Callable[[], _T], *, again: bool = True) -> _T:
        """Make a request, with retries if it may be repeated."""
        try:
            return self._again(function, action, key) if again else self._once(function)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it raises
            raise self._explain(action, key, error) from None

    def _again(self, function: Callable[[], _T], action: str, key: str) -> _T:
        """Make a request, with retries that the file system has or ours."""
        if self._is_s3:
            return function()
        return retrying(
            lambda: self._once(function),
            self._options.retry_seconds,
            lambda: f"{action} {self._uri(key)}",
        )

    def _once(self, function: Callable[[], _T]) -> _T:
        try:
            # A size or a listing that it remembers may be that of another time.
            self.filesystem.invalidate_cache()
            return function()
        except Exception as error:
            if is_passing(error):
                self._filesystems.forget()  # its connection may be gone
            raise

    def _found(
        self, prefix: str, look: Callable[[], Sequence[dict[str, Any]]]
    ) -> Sequence[dict[str, Any]]:
        """What a listing finds; a bucket that does not exist is nothing found, and no failure."""

        def found() -> Sequence[dict[str, Any]] | None:
            try:
                return look()
            except FileNotFoundError:
                return None

        listed = self._call("list", prefix, found)
        if listed is None:
            raise ObjectMissingError(f"cannot list {self._uri(prefix)}: it does not exist")
        return listed

    def _uri(self, key: str) -> str:
        return self.uri(key) if key else redact_url(self._url)

    def _explain(self, action: str, key: str, error: BaseException) -> StorageError:
        """Our error for one of the file system; raise it `from None`: that one may have secrets."""
        return explain_failure(action, self._uri(key), error, self._options)


class _Reader(SizedFile):
    """A random-access file whose every read is one ranged request with the store's retries.

    On S3 all of them are of the object that was there when it was opened: a read of another one is
    an `ObjectChangedError`.
    """

    def __init__(self, store: FsspecFiles, key: str, details: dict[str, Any]) -> None:
        super().__init__(int(details["size"]))
        self._store = store
        self._key = key
        etag = details.get("ETag")
        self._match = {"if_match": etag} if etag and store._is_s3 else {}

    def read(self, size: int | None = -1, /) -> bytes:
        start, end = self._advance(size)
        return self.read_at(end - start, start)

    def read_at(self, length: int, start: int) -> bytes:
        """Bytes from `start`; fewer only where the object ends."""
        end = min(start + length, self._size)
        if start >= end:
            return b""
        store, path = self._store, self._store._path(self._key)
        content: bytes = store._call(
            "read",
            self._key,
            lambda: store.filesystem.cat_file(path, start=start, end=end, **self._match),
        )
        return content

    def read_into(self, buffer: memoryview, start: int) -> int:
        """Read bytes from `start` into memory; return how many, fewer only where it ends."""
        buffer = buffer[: max(self._size - start, 0)]
        store, path, match = self._store, self._store._path(self._key), self._match
        if not buffer or not store._is_s3:
            return copy_into(self, buffer, start)
        read = store.filesystem.read_into
        count: int = store._call("read", self._key, lambda: read(path, buffer, start, **match))
        return count


class _RangedFile(pa.PythonFile):
    """An Arrow file over a reader whose `read_at` needs no lock, as Arrow's own would take."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader  # the rest is done before, by Arrow's `__cinit__`

    def read_at(self, nbytes: int, offset: int) -> bytes:
        """Return bytes from `offset`; fewer only where the object ends."""
        return self._reader.read_at(nbytes, offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Read bytes from `offset` into memory; return how many, fewer only where it ends."""
        return self._reader.read_into(buffer, offset)
