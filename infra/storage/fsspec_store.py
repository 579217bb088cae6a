"""`FsspecStore`: an object store over any fsspec file system, above all S3 through s3fs."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from fsspec.spec import AbstractBufferedFile

from stagecoach.infra.storage.fsspec_files import FsspecFiles
from stagecoach.infra.storage.object_store import ByteSink, ObjectMissingError, StorageOptions
from stagecoach.infra.storage.rereads import RECENT_WRITES
from stagecoach.infra.storage.retries import is_passing, is_precondition_failure, retrying

logger = logging.getLogger(__name__)

_MAX_DELETES = 1000  # of one request to S3


class FsspecStore(FsspecFiles):
    """Objects below an fsspec URL; see `ObjectStore` for the contract."""

    def __reduce__(self) -> tuple[type[FsspecStore], tuple[str, StorageOptions]]:
        return FsspecStore, (self._url, self._options)

    @property
    def is_local(self) -> bool:
        """Always false."""
        return False

    def write_bytes(self, key: str, data: bytes) -> None:
        """Write the whole object, replacing one that is there."""
        path = self._path(key)
        if not self._filesystems.has_folders:
            self._call("write", key, lambda: self.filesystem.pipe_file(path, data))
            RECENT_WRITES.add(self._name(key))
            return
        self._make_folder(key, path)
        target = _temporary(path)
        try:
            self._call("write", key, lambda: self.filesystem.pipe_file(target, data))
            self._call("write", key, lambda: _move(self.filesystem, target, path))
        except BaseException:
            self._remove_quietly(key, target)
            raise
        RECENT_WRITES.add(self._name(key))

    def put_if_absent(self, key: str, data: bytes, *, looked: bool = False) -> bool:
        """Write the object unless there is one, with `If-None-Match` where it is honoured."""
        if not looked and self.exists(key):
            return False
        path = self._path(key)
        if self._filesystems.has_folders:  # no write there depends on what is there
            self.write_bytes(key, data)
            return True
        try:
            self._again(lambda: self.filesystem.pipe_file(path, data, mode="create"), "write", key)
        except Exception as error:  # noqa: BLE001 -- whatever it raises
            if not isinstance(error, FileExistsError) and not is_precondition_failure(error):
                raise self._explain("write", key, error) from None
            RECENT_WRITES.add(self._name(key))  # the server says that it is there
            # A request that was sent twice, because no answer came the first time, is refused
            # because of itself.
            try:
                return self.read_bytes(key) == data
            except ObjectMissingError:
                return False
        RECENT_WRITES.add(self._name(key))
        return True

    def refuses_to_replace(self, key: str, data: bytes) -> bool | None:
        """Whether the server refuses a conditional write of an object that is there.

        Nothing that runs a query calls it.

        Args:
            key: An object that is there.
            data: What it is replaced by, where the server ignores the condition.

        Returns:
            None where the file system has no conditional writes.
        """
        if not self._is_s3:
            return None
        path = self._path(key)
        try:
            self._again(lambda: self.filesystem.pipe_file(path, data, mode="create"), "write", key)
        except Exception as error:  # noqa: BLE001 -- whatever it raises
            if not isinstance(error, FileExistsError) and not is_precondition_failure(error):
                raise self._explain("write", key, error) from None
            return True
        return False

    @contextmanager
    def open_output(self, key: str) -> Iterator[ByteSink]:
        """Yield a sink that uploads in parts; the object appears when the block ends well."""
        path = self._path(key)
        # S3 shows an object only when `close` completes its upload. Other file systems may write
        # in place, so they get a temporary name.
        is_atomic = self._is_s3
        target = path if is_atomic else _temporary(path)
        self._make_folder(key, path)
        size = self._options.part_bytes
        file = self._call("write", key, lambda: self.filesystem.open(target, "wb", block_size=size))
        try:
            yield _Sink(self, key, file)
            self._complete(key, file)
            if not is_atomic:
                self._call("write", key, lambda: _move(self.filesystem, target, path))
            RECENT_WRITES.add(self._name(key))
        except BaseException:
            self._discard(key, file)
            if not is_atomic:
                self._remove_quietly(key, target)
            raise

    def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects, in bulk where the store can."""
        if not keys:
            return
        for key in keys:
            RECENT_WRITES.discard(self._name(key))
        if self._is_s3:
            for start in range(0, len(keys), _MAX_DELETES):
                self._delete_batch(keys[start : start + _MAX_DELETES])
            return
        for key in keys:
            with suppress(ObjectMissingError):
                self._call("delete", key, partial(self._remove, self._path(key)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `store_from_dict` (with the options' secrets)."""
        return {"url": self._url, "options": self._options.to_dict()}

    def _make_folder(self, key: str, path: str) -> None:
        """Make the folder of an object, where the file system has folders."""
        folder = path.rpartition("/")[0]
        if self._filesystems.has_folders and folder:
            self._call("write", key, lambda: _make_folder(self.filesystem, folder))

    def _remove(self, path: str) -> None:
        try:
            self.filesystem.rm_file(path)
        except Exception:
            # Not every file system has an error of its own for a file that is missing.
            with suppress(FileNotFoundError):
                self.filesystem.info(path)
                raise

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
        bucket = self._filesystems.root.partition("/")[0]
        names = [self._path(key).partition("/")[2] for key in keys]
        by_name = dict(zip(names, keys, strict=True))

        def request() -> None:
            objects = [{"Key": name} for name in by_name]
            delete = {"Objects": objects, "Quiet": True}
            answer = self.filesystem.call_s3("delete_objects", Bucket=bucket, Delete=delete)
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
        self._quietly(key, lambda: self._remove(path))

    def _quietly(self, key: str, clean_up: Callable[[], Any]) -> None:
        try:
            with suppress(FileNotFoundError):  # nothing of it got there
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


class _DeleteRefusedError(OSError):
    """One object of a bulk delete was not removed; looks as botocore's errors do."""

    def __init__(self, entry: dict[str, Any]) -> None:
        super().__init__(f"{entry.get('Code')}: {entry.get('Message')}")
        self.response = {"Error": {"Code": entry.get("Code"), "Message": entry.get("Message")}}


def _make_folder(filesystem: Any, folder: str) -> None:
    # Each failure may be that of another writer who made one of the folders just now.
    for remaining in reversed(range(folder.count("/") + 2)):
        try:
            filesystem.makedirs(folder, exist_ok=True)
        except Exception as error:
            if is_passing(error) or not remaining:
                raise
            filesystem.invalidate_cache()
        else:
            return


def _temporary(path: str) -> str:
    return f"{path}.tmp-{uuid.uuid4().hex}"


def _move(filesystem: Any, source: str, target: str) -> None:
    """Give a file with a name of its own another one, whose file it replaces."""
    try:
        filesystem.mv(source, target)
    except Exception:
        if filesystem.exists(source) or not filesystem.exists(target):
            raise
        return  # a try before this one moved it, and its answer was lost
    if filesystem.exists(source):  # WebHDFS replaces nothing, and says so where nobody looks
        filesystem.rm_file(target)
        filesystem.mv(source, target)
