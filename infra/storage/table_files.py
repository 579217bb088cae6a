"""Which files make up a table: listing, identity and the last bytes of each, in any storage.

A location is a file, a folder or a glob. The rules for what counts as a data file are Spark's
(`HadoopFSUtils.shouldFilterOutPathName`): direct children of the folder whose names start with
neither `_` nor `.`, or, where there are folders such as `day=1`, the files at any depth below
these. A URI is canonical: a plain absolute path with symbolic links resolved for a local file (what
DuckDB and pyarrow take), a URL for any other.

Files that are not local are reached through `FsspecFiles`, as results are: whichever scheme holds
results holds tables, too, with the same retries and messages.

Worker code.
"""

from __future__ import annotations

import glob
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.file_identity import (
    let_tick_pass,
    local_version,
    object_version,
    s3_etag,
    s3_version,
)
from stagecoach.infra.storage.object_store import (
    S3_SCHEMES,
    FileIdentityPolicy,
    ObjectMissingError,
    ObjectStore,
    StorageOptions,
    redact_url,
)
from stagecoach.planner.errors import CatalogError

if TYPE_CHECKING:
    from stagecoach.infra.storage.fsspec_files import FsspecFiles

log = logging.getLogger(__name__)


class NoFilesError(CatalogError):
    """A location does not exist or has no data file (yet)."""


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """A file as a listing shows it: all that storage knows, and the key of the cache of footers.

    Attributes:
        uri: Canonical absolute URI.
        num_bytes: Size in bytes.
        version: Which version of the file it is; see `stagecoach.infra.storage.file_identity`.
        folders: Names of the partition folders that it lies in, from the table's location down.
    """

    uri: str
    num_bytes: int
    version: str
    folders: tuple[str, ...] = ()


def is_remote(location: str) -> bool:
    """Return whether the location is a URL of anything but the local file system."""
    return "://" in location and not location.startswith(("file://", "local://"))


def canonical_uri(store: ObjectStore, key: str) -> str:
    """Return the canonical URI of an object, as snapshots of runs have it."""
    uri = store.uri(key)
    if store.is_local:
        return os.path.realpath(uri)
    return f"s3://{uri.removeprefix('s3a://')}" if uri.startswith("s3a://") else uri


def canonical_location(location: str, base: Path) -> str:
    """Return `location` as an absolute path or a URL.

    Args:
        location: What the catalog file says.
        base: Folder that a relative path starts from.

    Raises:
        CatalogError: The location has credentials or `**` in it, or names no bucket.
    """
    if "**" in location:
        raise CatalogError(f"location {location!r} has '**'; Spark lists one level, so use '*'")
    if is_remote(location):
        scheme, _, path = location.partition("://")
        path = path.strip("/")
        if "::" in scheme:
            raise CatalogError(
                f"location {redact_url(location)!r} is a chained URL, whose cache or archive would "
                "hide what other processes write; give the inner URL"
            )
        scheme = "s3" if scheme in S3_SCHEMES else scheme
        in_host = scheme == "s3" and "@" in path.partition("/")[0]
        if in_host or redact_url(location) != location:
            raise CatalogError(
                f"location {redact_url(location)!r} has credentials in it, which everybody would "
                "see; put them into the storage options or the environment"
            )
        if not path:
            raise CatalogError(
                f"location {location!r} names no bucket or folder; use {scheme}://<bucket>/<folder>"
            )
        return f"{scheme}://{path}"
    for scheme in ("file://", "local://"):
        if location.startswith(scheme):
            location = unquote(location.removeprefix(scheme))
    return os.path.abspath(base / Path(location).expanduser())


def list_files(location: str, options: StorageOptions | None = None) -> tuple[FileEntry, ...]:
    """Return the data files at a canonical location, sorted by URI.

    Raises:
        NoFilesError: There is nothing there, or no data file.
        CatalogError: A pattern matches partitions.
        StorageError: The storage refused the listing.
    """
    policy = (options or StorageOptions()).file_identity
    if is_remote(location):
        found = _list_remote(location, options)
    else:
        found = _list_local(location, policy)
    files = sorted(found, key=lambda entry: entry.uri)
    if not files:
        raise NoFilesError(
            f"{location} has no data file (names that start with '_' or '.' and files in "
            "subfolders do not count); write the table first or correct the location"
        )
    return tuple(files)


def stat_file(uri: str, options: StorageOptions | None = None) -> FileEntry:
    """Return the file's present identity, a local one's with all that is known of it.

    Raises:
        FileNotFoundError: There is no such file.
        StorageError: The storage refused.
    """
    if is_remote(uri):
        store, key = _located(uri, options)
        with _missing_named(uri):
            return _remote_entry(uri, store.describe(key))
    try:
        return _local_entry(uri, os.stat(uri))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(uri) from None
    except OSError as error:
        raise StorageError(f"cannot look at {uri}: {error}") from error


def open_file(uri: str, options: StorageOptions | None = None) -> tuple[pa.NativeFile, FileEntry]:
    """Open a file for reading and return it with its identity.

    Every read of a file on S3 is of the object with that identity, or an `ObjectChangedError`. Any
    other file may be overwritten meanwhile; look again when it was read.

    Raises:
        FileNotFoundError: There is no such file.
        StorageError: The storage refused.
    """
    if is_remote(uri):
        store, key = _located(uri, options)
        with _missing_named(uri):
            source, details = store.open_described(key)
        return source, _remote_entry(uri, details)
    path = unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri
    try:
        return pa.OSFile(path, "r"), _local_entry(path, os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(uri) from None
    except OSError as error:
        raise StorageError(f"cannot read {uri}: {error}") from error


def open_known(
    uri: str, num_bytes: int, version: str, options: StorageOptions | None = None
) -> pa.NativeFile | None:
    """Open a file whose size and version are known, without a request.

    Every read is of that version, or an `ObjectChangedError`, or an `ObjectMissingError`.

    Returns:
        The file; None where its storage does not read on condition, or has not named the version.

    Raises:
        StorageError: The storage refused.
    """
    etag = s3_etag(version) if is_conditional(uri) else ""
    if not etag or not num_bytes:
        return None
    store, key = _located(uri, options)
    return store.open_known(key, num_bytes, etag)


def read_tail(
    entry: FileEntry, num_bytes: int, options: StorageOptions | None = None
) -> tuple[FileEntry, bytes]:
    """Return the last bytes of a file, and its identity at the time they were read.

    Raises:
        FileNotFoundError: The file is gone.
        ObjectChangedError: It is on S3, and another one by now.
        StorageError: The storage refused.
    """
    if is_remote(entry.uri):
        store, key = _located(entry.uri, options)
        with _missing_named(entry.uri):
            if not is_conditional(entry.uri):
                found = _remote_entry(entry.uri, store.describe(key), entry.folders)
                entry = found
            start = max(0, entry.num_bytes - num_bytes)
            if start == entry.num_bytes:
                return entry, b""
            etag = s3_etag(entry.version) if is_conditional(entry.uri) else ""
            return entry, store.read_tail(key, start, entry.num_bytes, etag)
    try:
        with open(entry.uri, "rb") as file:
            policy = (options or StorageOptions()).file_identity
            status = os.fstat(file.fileno())
            let_tick_pass(status.st_ctime_ns)
            current = _local_entry(entry.uri, status, entry.folders, policy)
            file.seek(max(0, current.num_bytes - num_bytes))
            return current, file.read(num_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"cannot read {entry.uri}: {error}") from error


def _list_local(location: str, policy: FileIdentityPolicy) -> list[FileEntry]:
    try:
        if os.path.isdir(location):
            return _list_local_folder(location, policy)
        if os.path.exists(location):
            return _local_entries([(location, os.stat(location))], (), policy)
        matches = glob.glob(location) if glob.has_magic(location) else []
        if not matches:
            raise NoFilesError(f"{location} does not exist; write the table or correct the path")
        _refuse_hive(location, (m for m in matches if os.path.isdir(m)))
        entries = []
        for match in matches:
            if _is_hidden(os.path.basename(match)):
                continue
            if os.path.isdir(match):
                entries += _list_local_folder(match, policy)
            else:
                entries += _local_entries([(match, os.stat(match))], (), policy)
        return entries
    except OSError as error:
        raise CatalogError(f"cannot list {location}: {error}") from error


def _list_local_folder(
    folder: str, policy: FileIdentityPolicy, above: tuple[str, ...] = ()
) -> list[FileEntry]:
    with os.scandir(folder) as children:
        visible = [child for child in children if not _is_hidden(child.name)]
    folders = [child.name for child in visible if child.is_dir()]
    files = [(child.path, child.stat()) for child in visible if not child.is_dir()]
    entries = _local_entries(files, above, policy)
    for name in _partition_folders(folder, folders, above):
        entries += _list_local_folder(os.path.join(folder, name), policy, (*above, name))
    return entries


def _local_entries(
    files: Sequence[tuple[str, os.stat_result]],
    folders: tuple[str, ...],
    policy: FileIdentityPolicy,
) -> list[FileEntry]:
    let_tick_pass(max((status.st_ctime_ns for _, status in files), default=0))
    return [_local_entry(path, status, folders, policy) for path, status in files]


def _local_entry(
    path: str,
    status: os.stat_result,
    folders: tuple[str, ...] = (),
    policy: FileIdentityPolicy = "strict",
) -> FileEntry:
    if not stat.S_ISREG(status.st_mode):
        raise CatalogError(f"{path} is not a regular file; remove it or correct the location")
    return FileEntry(
        uri=os.path.realpath(path),
        num_bytes=status.st_size,
        version=local_version(status, policy),
        folders=folders,
    )


def _list_remote(location: str, options: StorageOptions | None) -> list[FileEntry]:
    store, key = _located(location, options)
    try:
        if not glob.has_magic(key):
            return _list_remote_folder(store, location, key)
        matches = store.glob(key)
        folders = [store.key_of(match) for match in matches if match["type"] == "directory"]
        _refuse_hive(location, folders)
        root = _root(location)
        entries = [
            _remote_entry(f"{root}/{store.key_of(match)}", match)
            for match in matches
            if match["type"] != "directory" and not _is_hidden(_last(store.key_of(match)))
        ]
        for folder in folders:
            if not _is_hidden(_last(folder)):
                entries += _list_remote_folder(store, f"{root}/{folder}", folder)
        return entries
    except ObjectMissingError:
        raise NoFilesError(
            f"{location} does not exist; write the table or correct the location"
        ) from None


def _list_remote_folder(
    store: FsspecFiles, location: str, folder: str, above: tuple[str, ...] = ()
) -> list[FileEntry]:
    entries, folders, root = [], [], _root(location)
    for child in store.children(folder):
        key = store.key_of(child)
        is_folder = child["type"] == "directory"
        if key == folder and not is_folder and not str(child["name"]).endswith("/"):
            return [_remote_entry(location, child)]  # the location is a file
        if key == folder or _is_hidden(_last(key)):
            continue  # the folder's own marker object
        if is_folder:
            folders.append(_last(key))
        elif not str(child["name"]).endswith("/"):
            entries.append(_remote_entry(f"{root}/{key}", child, above))
    for name in _partition_folders(location, folders, above):
        path = f"{folder}/{name}" if folder else name
        entries += _list_remote_folder(store, f"{root}/{path}", path, (*above, name))
    return entries


def _remote_entry(uri: str, details: Mapping[str, Any], folders: tuple[str, ...] = ()) -> FileEntry:
    return FileEntry(
        uri=uri,
        num_bytes=int(details["size"]),
        version=s3_version(details) if is_conditional(uri) else object_version(details),
        folders=folders,
    )


def is_conditional(uri: str) -> bool:
    """Return whether each read of a file is of the version that is expected, or fails."""
    return uri.startswith("s3://")


def _root(uri: str) -> str:
    """The part of a URL that names the storage: scheme and host, bucket or first folder."""
    scheme, _, path = uri.partition("://")
    return f"{scheme}://{path.partition('/')[0]}"


def _located(uri: str, options: StorageOptions | None) -> tuple[FsspecFiles, str]:
    """The store of a URL, and its key there; file systems are shared between equal stores."""
    from stagecoach.infra.storage.fsspec_files import FsspecFiles  # fsspec takes time to load

    root = _root(uri)
    return FsspecFiles(root, options), uri.removeprefix(root).strip("/")


@contextmanager
def _missing_named(uri: str) -> Iterator[None]:
    try:
        yield
    except ObjectMissingError:
        raise FileNotFoundError(uri) from None


def _last(key: str) -> str:
    return key.rsplit("/", 1)[-1]


def _is_hidden(name: str) -> bool:
    hidden = name.startswith("_") and "=" not in name
    return hidden or name.startswith(".") or name.endswith("._COPYING_")


def _refuse_hive(location: str, folders: Iterable[str]) -> None:
    for folder in sorted(folders):
        name = folder.rstrip("/").rsplit("/", 1)[-1]
        if "=" in name:
            raise CatalogError(
                f"{location} is a pattern that matches the partition folder {name!r}; give the "
                "folder above it, so that its columns are known, or one partition"
            )


def _partition_folders(folder: str, folders: list[str], above: tuple[str, ...]) -> list[str]:
    """Subfolders whose files belong to the table; Spark reads no others of a plain folder."""
    if above or any("=" in name for name in folders):
        return sorted(folders)
    if folders:
        log.warning("%s: %d subfolders are not read, as in Spark", folder, len(folders))
    return []
