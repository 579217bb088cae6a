"""Finds uploads that were begun and never ended, and aborts them.

A worker that is killed while it uploads a file in parts leaves those parts. No listing of objects
shows them, and S3 keeps and charges them until somebody aborts the upload. Other stores have none.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stagecoach.infra.errors import StorageError, StorageRefusedError
from stagecoach.infra.storage.error_hints import explain_failure
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.layout import SHUFFLE_ROOT
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore, StorageOptions
from stagecoach.infra.storage.retries import answer_of

log = logging.getLogger(__name__)

_SCHEMES = ("s3", "s3a")
_NOT_OFFERED = (405, 501)


@dataclass(frozen=True)
class Upload:
    """An upload that has not ended.

    Args:
        key: The object that it was to become.
        upload_id: The server's name for it.
    """

    key: str
    upload_id: str


def find_uploads(store: ObjectStore, *, before: datetime.datetime) -> tuple[Upload, ...]:
    """Return the uploads below a storage root that began before a moment and have not ended.

    A server that has no such list, or does not show it to this user, is one without uploads.

    Raises:
        StorageError: The store failed.
    """
    bucket = _Bucket.of(store)
    if bucket is None:
        return ()
    try:
        return tuple(
            Upload(item["Key"].removeprefix(bucket.prefix), item["UploadId"])
            for item in bucket.uploads()
            if item["Initiated"] < before
        )
    except StorageRefusedError as error:
        log.warning("parts of unfinished uploads stay: %s", error)
        return ()


def abort_uploads(store: ObjectStore, uploads: Sequence[Upload]) -> None:
    """Remove the parts of uploads; one that has ended meanwhile is an object, and stays.

    Raises:
        StorageError: The store failed.
    """
    bucket = _Bucket.of(store)
    if bucket is None:
        return
    for upload in uploads:
        try:
            bucket.abort(upload)
        except ObjectMissingError:
            continue


class _Bucket:
    """The part of a bucket that a storage root is.

    Args:
        store: The storage root.
        name: The bucket.
        prefix: What the keys of the storage root begin with there.
    """

    def __init__(self, store: FsspecStore, name: str, prefix: str) -> None:
        self._store = store
        self._name = name
        self.prefix = prefix

    @classmethod
    def of(cls, store: ObjectStore) -> _Bucket | None:
        """The bucket of a store on S3; None for any other."""
        scheme, _, path = store.uri(SHUFFLE_ROOT).partition("://")
        if scheme not in _SCHEMES or not isinstance(store, FsspecStore):
            return None
        name, _, prefix = path.removesuffix(SHUFFLE_ROOT).partition("/")
        return cls(store, name, prefix)

    def uploads(self) -> Iterator[dict[str, Any]]:
        """What the server says of each upload."""
        place: dict[str, str] = {}
        while True:
            try:
                page = self._call("list_multipart_uploads", Prefix=self.prefix, **place)
            except (_NotOfferedError, ObjectMissingError):  # rclone says so where there is none
                return
            yield from page.get("Uploads", ())
            if not page.get("IsTruncated"):
                return
            place = {
                "KeyMarker": page["NextKeyMarker"],
                "UploadIdMarker": page["NextUploadIdMarker"],
            }

    def abort(self, upload: Upload) -> None:
        """Abort an upload."""
        key = f"{self.prefix}{upload.key}"
        self._call("abort_multipart_upload", Key=key, UploadId=upload.upload_id)

    def _call(self, method: str, **arguments: str) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._store.filesystem.call_s3(
                method, Bucket=self._name, **arguments
            )
        except Exception as error:  # noqa: BLE001 -- whatever it raises
            if answer_of(error)[1] in _NOT_OFFERED:
                raise _NotOfferedError(method) from None
            options = StorageOptions.from_dict(self._store.to_dict()["options"])
            uri = f"s3://{self._name}/{arguments.get('Key', self.prefix)}"
            raise explain_failure(method.replace("_", " "), uri, error, options) from None
        return answer


class _NotOfferedError(StorageError):
    """The server does not know the request."""
