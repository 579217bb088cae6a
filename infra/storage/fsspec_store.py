"""`FsspecStore`: an object store over any fsspec file system, above all S3 through s3fs.

In: keys and bytes. Out: objects below the root URL. Nothing is cached: a size or a listing that is
a minute old would make a lost file look present.
"""

from __future__ import annotations

import io
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import fsspec
import pyarrow as pa
from fsspec.spec import AbstractBufferedFile

from infra.errors import StorageError
from infra.storage.explain import explain_failure
from infra.storage.object_store import (
    ByteSink,
    ObjectMissingError,
    StorageOptions,
    check_key,
    redact_url,
)
from infra.storage.retries import retrying

logger = logging.getLogger(__name__)

_S3_SCHEMES = ("s3", "s3a")
_MAX_DELETES = 1000  # of one request to S3
_T = TypeVar("_T")


class FsspecStore:
    """Objects below an fsspec URL; see `ObjectStore` for the contract."""

    def __init__(self, url: str, options: StorageOptions | None = None) -> None:
        self._url = url.rstrip("/")
        self._options = options or StorageOptions()
        self._scheme = url.split("://", 1)[0]
        try:
            filesystem_class = fsspec.get_filesystem_class(self._scheme)
        except (ImportError, ValueError) as error:
            raise StorageError(
                f"cannot open storage root {redact_url(url)}: no file system for scheme "
                f"{self._scheme!r} ({error}); use a local folder, or s3:// with s3fs installed"
            ) from error
        self._root = filesystem_class._strip_protocol(self._url).rstrip("/")
        if self._scheme in _S3_SCHEMES and not self._root:
            raise StorageError("storage root s3:// names no bucket; give s3://<bucket>/<prefix>")
        if self._scheme in _S3_SCHEMES:
            from infra.storage.s3 import s3_filesystem

            self._fs: Any = s3_filesystem(self._options)
        else:
            self._fs = filesystem_class()

    def __repr__(self) -> str:
        return f"FsspecStore({redact_url(self._url)!r})"

    def __reduce__(self) -> tuple[type[FsspecStore], tuple[str, StorageOptions]]:
        return FsspecStore, (self._url, self._options)

    @property
    def is_local(self) -> bool:
        """Always false."""
        return False

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
            return self._call("read", key, lambda: self._fs.cat_file(path))
        try:
            return self._call("read", key, lambda: self._fs.cat_file(path, start=start, end=end))
        except StorageError as error:
            if "InvalidRange" not in str(error):
                raise
            # S3 refuses a range that begins behind the end, some servers one that ends there.
            size = self.size(key)
            end = size if end is None else min(size, end)
            if start >= end:
                return b""
            return self._call("read", key, lambda: self._fs.cat_file(path, start=start, end=end))

    def open_input(self, key: str) -> pa.NativeFile:
        """Return a random-access file whose every read is a ranged request."""
        path = self._path(key)
        details = self._call("read the size of", key, lambda: self._fs.info(path))
        return pa.PythonFile(_Reader(self, key, details), mode="r")

    def size(self, key: str) -> int:
        """Return the size of the object in bytes."""
        path = self._path(key)
        return int(self._call("read the size of", key, lambda: self._fs.info(path))["size"])

    def exists(self, key: str) -> bool:
        """Return whether the object exists."""
        try:
            self.size(key)
        except ObjectMissingError:
            return False
        return True

    def write_bytes(self, key: str, data: bytes) -> None:
        """Write the whole object, replacing one that is there."""
        path = self._path(key)
        self._call("write", key, lambda: self._fs.pipe_file(path, data))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write the object unless there is one, with `If-None-Match` where it is honoured."""
        if self.exists(key):
            return False
        path = self._path(key)
        try:
            self._fs.pipe_file(path, data, mode="create")
        except Exception as error:  # noqa: BLE001 -- whatever it raises
            if not isinstance(error, FileExistsError) and not _is_precondition_failure(error):
                raise self._explain("write", key, error) from None
            # A request that was sent twice, because no answer came the first time, is refused
            # because of itself.
            try:
                return self.read_bytes(key) == data
            except ObjectMissingError:
                return False
        return True

    @contextmanager
    def open_output(self, key: str) -> Iterator[ByteSink]:
        """Yield a sink that uploads in parts; the object appears when the block ends well."""
        path = self._path(key)
        # S3 shows an object only when `close` completes its upload. Other file systems may write
        # in place, so they get a temporary name.
        is_atomic = self._scheme in _S3_SCHEMES
        target = path if is_atomic else f"{path}.tmp-{uuid.uuid4().hex}"
        block_size = self._options.part_bytes
        file = self._call("write", key, lambda: self._fs.open(target, "wb", block_size=block_size))
        try:
            yield _Sink(self, key, file)
            self._complete(key, file)
            if not is_atomic:
                self._call("write", key, lambda: self._fs.mv(target, path))
        except BaseException:
            self._discard(key, file)
            if not is_atomic:
                self._remove_quietly(key, target)
            raise

    def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects, in bulk where the store can."""
        if not keys:
            return
        paths = [self._path(key) for key in keys]
        if self._scheme in _S3_SCHEMES:
            for start in range(0, len(keys), _MAX_DELETES):
                self._delete_batch(keys[start : start + _MAX_DELETES])
            return
        for key, path in zip(keys, paths, strict=True):
            try:
                self._call("delete", key, partial(self._fs.rm_file, path))
            except ObjectMissingError:
                continue

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the keys below the folder `prefix`, sorted."""
        for key, _ in self.list_details(prefix):
            yield key

    def list_details(self, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the keys below the folder `prefix`, sorted, with what the store says of each.

        One listing has all sizes and times; their names differ from store to store.
        """
        start = self._path(prefix) if prefix else self._root
        self._fs.invalidate_cache()
        try:
            found = self._call("list", prefix, lambda: self._fs.find(start, detail=True))
        except ObjectMissingError:
            return
        for path, details in sorted(found.items()):
            yield path[len(self._root) + 1 :], details

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders right below `prefix`, sorted."""
        start = self._path(prefix) if prefix else self._root
        self._fs.invalidate_cache()
        try:
            found = self._call("list", prefix, lambda: self._fs.ls(start, detail=True))
        except ObjectMissingError:
            return []
        paths = (item["name"].rstrip("/") for item in found if item["type"] == "directory")
        return sorted(path.rsplit("/", 1)[-1] for path in paths)

    @property
    def filesystem(self) -> Any:
        """The fsspec file system, for readers of files that are no part of a storage root."""
        return self._fs

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `store_from_dict` (with the options' secrets)."""
        return {"url": self._url, "options": self._options.to_dict()}

    def _path(self, key: str) -> str:
        return f"{self._root}/{check_key(key)}"

    def _call(self, action: str, key: str, function: Callable[[], _T], *, again: bool = True) -> _T:
        """Make a request, with retries that the file system has or (if it may be repeated) ours."""
        try:
            if self._scheme in _S3_SCHEMES or not again:
                return function()
            bound = self._options.retry_seconds
            return retrying(function, bound, lambda: f"{action} {self._uri(key)}")
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it raises
            raise self._explain(action, key, error) from None

    def _uri(self, key: str) -> str:
        return self.uri(key) if key else redact_url(self._url)

    def _explain(self, action: str, key: str, error: BaseException) -> StorageError:
        """Our error for one of the file system; raise it `from None`: that one may have secrets."""
        return explain_failure(action, self._uri(key), error, self._options)

    def _complete(self, key: str, file: Any) -> None:
        """End an upload; one whose first answer was lost has ended already."""
        num_bytes = file.tell()
        try:
            self._call("write", key, file.close, again=False)
        except ObjectMissingError:  # `NoSuchUpload`
            try:
                found = self.size(key)
            except ObjectMissingError:
                found = -1
            if found != num_bytes:
                raise

    def _delete_batch(self, keys: Sequence[str]) -> None:
        """Remove objects in one request; s3fs would not say which of them could not be removed."""
        bucket = self._root.partition("/")[0]
        names = [self._path(key).partition("/")[2] for key in keys]
        by_name = dict(zip(names, keys, strict=True))

        def request() -> None:
            objects = [{"Key": name} for name in by_name]
            delete = {"Objects": objects, "Quiet": True}
            answer = self._fs.call_s3("delete_objects", Bucket=bucket, Delete=delete)
            refused = {e.get("Key", ""): e for e in answer.get("Errors", ())}
            for name in list(by_name):
                if name not in refused or refused[name].get("Code") == "NoSuchKey":
                    del by_name[name]
            for name, entry in refused.items():
                if name in by_name:
                    raise _DeleteRefusedError(entry)

        first = keys[0]
        try:
            retrying(request, self._options.retry_seconds, lambda: f"delete {self.uri(first)}")
        except Exception as error:  # noqa: BLE001 -- whatever it raises
            left = next(iter(by_name.values()), first)
            raise self._explain("delete", left, error) from None

    def _discard(self, key: str, file: Any) -> None:
        """Drop what was uploaded so far, so that nothing becomes visible."""
        if isinstance(file, AbstractBufferedFile):
            file.closed = True  # or the garbage collector would close, and so complete, it
        discard = getattr(file, "discard", None)
        if discard is not None:
            self._quietly(key, discard)

    def _remove_quietly(self, key: str, path: str) -> None:
        if self._fs.exists(path):
            self._quietly(key, lambda: self._fs.rm_file(path))

    def _quietly(self, key: str, clean_up: Callable[[], Any]) -> None:
        try:
            clean_up()
        except Exception as error:  # noqa: BLE001 -- the error that brought us here is raised
            logger.warning(
                "parts of the failed upload of %s remain until the bucket's lifecycle removes "
                "them: %s",
                self.uri(key),
                self._options.redact(str(error)),
            )


class _Sink:
    """A multipart upload whose errors name the object."""

    def __init__(self, store: FsspecStore, key: str, file: Any) -> None:
        self._store = store
        self._key = key
        self._file = file

    def write(self, data: Any, /) -> int:
        return self._store._call("write", self._key, lambda: self._file.write(data), again=False)


class _Reader(io.RawIOBase):
    """A random-access file whose every read is one ranged request with the store's retries.

    On S3 all of them are of the object that was there when it was opened.
    """

    def __init__(self, store: FsspecStore, key: str, details: dict[str, Any]) -> None:
        self._store = store
        self._key = key
        self._size = int(details["size"])
        etag = details.get("ETag")
        self._match = {"if_match": etag} if etag and store._scheme in _S3_SCHEMES else {}
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        start = self._position
        left = max(self._size - start, 0)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        store, path = self._store, self._store._path(self._key)
        content: bytes = store._call(
            "read",
            self._key,
            lambda: store._fs.cat_file(path, start=start, end=start + length, **self._match),
        )
        self._position += len(content)
        return content


class _DeleteRefusedError(OSError):
    """One object of a bulk delete was not removed; looks as botocore's errors do."""

    def __init__(self, entry: dict[str, Any]) -> None:
        super().__init__(f"{entry.get('Code')}: {entry.get('Message')}")
        self.response = {"Error": {"Code": entry.get("Code"), "Message": entry.get("Message")}}


def _is_precondition_failure(error: BaseException) -> bool:
    """Return whether S3 answered 412 (there is an object) or 409 (a racing write)."""
    response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    code = str((response or {}).get("Error", {}).get("Code", ""))
    return code in ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
