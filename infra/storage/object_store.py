"""The `ObjectStore` protocol, and the options that reach a storage root.

`stagecoach.infra.storage.stores` opens one.

Worker code. A store is rebuilt from plain data (`store.to_dict()`), so it travels to Spark tasks;
its `repr` and its errors never show a secret.
"""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import secrets

if TYPE_CHECKING:
    import pyarrow as pa

S3_SCHEMES = ("s3", "s3a")
"""Schemes of URLs on S3."""

FsyncPolicy = Literal["never", "commit", "all"]
FileIdentityPolicy = Literal["strict", "portable"]


class ObjectMissingError(StorageError):
    """An object that was asked for by its key does not exist."""

    examined = False


class ObjectChangedError(StorageError):
    """An object was replaced between two requests that must see the same one."""

    retryable = False
    examined = False


class ByteSink(Protocol):
    """Where a stream of bytes goes; visible under its key only after a successful close."""

    def write(self, data: Any, /) -> int:
        """Append `data` (any bytes-like object) and return the number of bytes taken."""
        ...


@dataclass(frozen=True, kw_only=True)
class StorageOptions:
    """How to reach a storage root; the environment and AWS's own files fill what is left out.

    Attributes:
        endpoint_url: S3 endpoint; `None` means `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, the
            profile's, then Amazon's own.
        region: S3 region; `None` means AWS's own configuration.
        access_key: S3 access key; `None` means AWS's own credential chain.
        secret_key: S3 secret key, never shown.
        session_token: S3 session token, never shown.
        path_style: Address buckets by path; `None` means yes exactly when an endpoint is set.
        fsync: Local stores only: `commit` syncs whole-object writes (manifests, pointers),
            `all` syncs streamed files too, `never` neither. A shuffle file lost by a power
            cut is found by its checksum and recomputed, so `commit` is the default.
        part_bytes: Size of one part of a multipart upload, in bytes.
        profile: Profile of AWS's shared files; `None` means `AWS_PROFILE`, then `default`.
        timeout_seconds: How long to wait for a connection, for an answer to begin, or for the next
            256 KiB of it; then the request is tried again.
        retry_seconds: Failures that pass by themselves (time-outs, throttling, a server that is
            away) are tried again for so long, with growing waits; 0 tries once.
        filesystem_options: Arguments by name for the fsspec file system of any other URL than
            `s3://` and local ones (`token`, `account_name`, …), never shown.
        file_identity: How local files of base tables are told from files that took their place:
            `strict` by inode, change time, modification time and size; `portable` by modification
            time and size only, for file systems (some of FUSE) whose inodes or change times differ
            between hosts or mounts.
    """

    endpoint_url: str | None = None
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    path_style: bool | None = None
    fsync: FsyncPolicy = "commit"
    part_bytes: int = 16 << 20
    profile: str | None = None
    timeout_seconds: float = 15.0
    retry_seconds: float = 60.0
    filesystem_options: Mapping[str, Any] | None = field(default=None, repr=False, hash=False)
    file_identity: FileIdentityPolicy = "strict"

    def __post_init__(self) -> None:
        secrets.register(self.secret_key, self.session_token, self.access_key)
        given = self.filesystem_options or {}
        secrets.register(*(v for k, v in given.items() if secrets.is_secret_name(k)))

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.repr}
        fields = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return secrets.redact(f"{type(self).__name__}({fields})")

    @classmethod
    def of(cls, store: ObjectStore) -> StorageOptions:
        """Return how a store is reached."""
        return cls.from_dict(store.to_dict().get("options", {}))

    def to_dict(self) -> dict[str, Any]:
        """Return the options that differ from their defaults as plain data (with secrets)."""
        return {
            f.name: getattr(self, f.name)
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> StorageOptions:
        """Return options from plain data.

        Raises:
            StorageError: An option has an unknown name.
        """
        known = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise StorageError(
                f"unknown storage option {unknown[0]!r}; known options: {', '.join(sorted(known))}"
            )
        return cls(**values)

    def redact(self, text: str) -> str:
        """Return `text` without the secrets of these options and without URL credentials."""
        for secret in (self.secret_key, self.session_token, self.access_key):
            if secret:
                text = text.replace(secret, "***")
        return secrets.redact(text)


def redact_url(text: str) -> str:
    """Return `text` without the credentials of every URL in it: `user:password@`, signatures."""
    return secrets.redact_urls(text)


@runtime_checkable
class ObjectStore(Protocol):
    """Objects by key below one root.

    Keys are relative, with `/` between components (`infra.storage.layout` builds them). Invariants:
    an object is visible whole or not at all; a missing object never reads as empty; nothing but
    `list` enumerates, and only garbage collection calls it. Every failure is a `StorageError`
    that names the URI; a missing object is an `ObjectMissingError`.
    """

    @property
    def is_local(self) -> bool:
        """Whether objects are local files (memory maps are cheap, requests cost nothing)."""
        ...

    def uri(self, key: str) -> str:
        """Return the full address of `key`, without credentials."""
        ...

    def read_bytes(self, key: str, offset: int | None = None, length: int | None = None) -> bytes:
        """Return the object, or `length` bytes from `offset`; fewer only where the object ends."""
        ...

    def open_input(self, key: str) -> pa.NativeFile:
        """Return a random-access Arrow file; local: a memory map, read without a copy."""
        ...

    def size(self, key: str) -> int:
        """Return the size of the object in bytes."""
        ...

    def exists(self, key: str) -> bool:
        """Return whether the object exists."""
        ...

    def write_bytes(self, key: str, data: bytes) -> None:
        """Write the whole object, replacing one that is there."""
        ...

    def put_if_absent(self, key: str, data: bytes, *, looked: bool = False) -> bool:
        """Write the object unless there is one; return whether it was written.

        `False` is certain. `True` is a hint on object stores that ignore `If-None-Match`: two
        racing writers may both get it, the later one wins, and the caller must be right anyway.

        Args:
            key: The object.
            data: Its content.
            looked: Whether the caller has just seen that there is none, so that a store which
                looks first need not do it again.
        """
        ...

    def open_output(self, key: str) -> AbstractContextManager[ByteSink]:
        """Return a context manager with a sink; the object appears when the block ends well."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects; a missing one is not an error."""
        ...

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the keys below the folder `prefix`, sorted. For garbage collection only."""
        ...

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders right below `prefix`, sorted, without going into them.

        For people who look around; nothing that runs a query calls it.
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return `{"url": …, "options": {…}}`, from which `store_from_dict` makes the store."""
        ...


def check_key(key: str) -> str:
    """Return `key` if it stays below the root.

    Raises:
        StorageError: It is empty, absolute, or has an empty, `.` or `..` component.
    """
    if "\0" in key or "\\" in key or any(part in ("", ".", "..") for part in key.split("/")):
        raise StorageError(
            f"storage key {key!r} is not a relative path below the root; "
            "build keys with stagecoach.infra.storage.layout"
        )
    return key


def explain_os_error(action: str, uri: str, error: BaseException) -> StorageError:
    """Return the `StorageError` for a failed `action` on `uri`, saying what to do."""
    number = getattr(error, "errno", None)
    if isinstance(error, FileNotFoundError) or number == errno.ENOENT:
        return ObjectMissingError(f"cannot {action} {uri}: it does not exist")
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error):
        advice = "no space left on the device; free some, or point the storage root elsewhere"
    elif isinstance(error, PermissionError) or number in (errno.EACCES, errno.EPERM, errno.EROFS):
        advice = "permission denied; make it accessible to this user, or use another storage root"
    else:
        said = str(error).strip().partition("\n")[0]  # libhdfs names every place it looked at
        advice = f"{type(error).__name__}: {said}"
    return StorageError(f"cannot {action} {uri}: {advice}")
