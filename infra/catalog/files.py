"""Which files make up a table: listing, identity and the last bytes of each, local or on S3.

In: a location (file, folder or glob). Out: `FileEntry` values, sorted by URI. The rules for what
counts as a data file are Spark's (`HadoopFSUtils.shouldFilterOutPathName`): direct children of the
folder whose names start with neither `_` nor `.`, or, where there are folders such as `day=1`, the
files at any depth below these (see `partitions`). A URI is canonical: a plain absolute path with
symbolic links resolved for a local file (what DuckDB and pyarrow take), `s3://bucket/key` on S3.

Worker code.
"""

from __future__ import annotations

import glob
import logging
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from infra.catalog.file_identity import let_tick_pass, local_version, s3_etag, s3_version
from infra.errors import StorageError
from infra.storage.fsspec_store import FsspecStore
from infra.storage.object_store import (
    FileIdentityPolicy,
    ObjectChangedError,
    ObjectMissingError,
    StorageOptions,
    redact_url,
)
from planner.errors import CatalogError

log = logging.getLogger(__name__)

_S3_SCHEMES = ("s3://", "s3a://")


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """A file as a listing shows it.

    Attributes:
        uri: Canonical absolute URI.
        num_bytes: Size in bytes.
        version: Which version of the file it is; see `infra.catalog.file_identity`.
        folders: Names of the partition folders that it lies in, from the table's location down.
    """

    uri: str
    num_bytes: int
    version: str
    folders: tuple[str, ...] = ()


def is_s3(location: str) -> bool:
    """Return whether the location is on S3."""
    return location.startswith(_S3_SCHEMES)


def canonical_location(location: str, base: Path) -> str:
    """Return `location` as an absolute path or an `s3://` URL.

    Args:
        location: What the catalog file says.
        base: Folder that a relative path starts from.

    Raises:
        CatalogError: The location has another scheme, names no bucket, or has `**` in it.
    """
    if "**" in location:
        raise CatalogError(f"location {location!r} has '**'; Spark lists one level, so use '*'")
    if is_s3(location):
        path = location.split("://", 1)[1].strip("/")
        if "@" in path.partition("/")[0]:
            raise CatalogError(
                f"location {redact_url(location)!r} has credentials in it, which everybody would "
                "see; put them into the storage options or the environment"
            )
        if not path:
            raise CatalogError(f"location {location!r} names no bucket; use s3://<bucket>/<folder>")
        return f"s3://{path}"
    if location.startswith("file://"):
        location = unquote(location.removeprefix("file://"))
    elif "://" in location:
        scheme = location.split("://", 1)[0]
        raise CatalogError(
            f"location {redact_url(location)!r} has the scheme {scheme!r}; "
            "use a local path or an s3:// URL"
        )
    return os.path.abspath(base / Path(location).expanduser())


def list_files(location: str, options: StorageOptions | None = None) -> tuple[FileEntry, ...]:
    """Return the data files at a canonical location, sorted by URI.

    Raises:
        CatalogError: There is nothing there, no data file, or a pattern matches partitions.
        StorageError: S3 refused the listing.
    """
    policy = (options or StorageOptions()).file_identity
    found = _list_s3(location, options) if is_s3(location) else _list_local(location, policy)
    files = sorted(found, key=lambda entry: entry.uri)
    if not files:
        raise CatalogError(
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
    if not is_s3(uri):
        try:
            return _local_entry(uri, os.stat(uri))
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(uri) from None
        except OSError as error:
            raise StorageError(f"cannot look at {uri}: {error}") from error
    filesystem = _s3(uri, options)
    try:
        return _s3_entry(filesystem.info(uri))
    except FileNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001 -- whatever it raises
        raise _s3_error("look at", uri, options, error) from None


def open_file(uri: str, options: StorageOptions | None = None) -> tuple[pa.NativeFile, FileEntry]:
    """Open a file for reading and return it with its identity.

    Every read of a file on S3 is of the object with that identity, or an `ObjectChangedError`. A
    local file may be overwritten in place; look again when it was read.

    Raises:
        FileNotFoundError: There is no such file.
        StorageError: The storage refused.
    """
    if is_s3(uri):
        folder, _, name = uri.rpartition("/")
        try:
            source, details = FsspecStore(folder, options).open_described(name)
        except ObjectMissingError:
            raise FileNotFoundError(uri) from None
        return source, _s3_entry(details)
    path = unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri
    try:
        return pa.OSFile(path, "r"), _local_entry(path, os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(uri) from None
    except OSError as error:
        raise StorageError(f"cannot read {uri}: {error}") from error


def read_tail(
    entry: FileEntry, num_bytes: int, options: StorageOptions | None = None
) -> tuple[FileEntry, bytes]:
    """Return the last bytes of a file, and its identity at the time they were read.

    Raises:
        FileNotFoundError: The file is gone.
        ObjectChangedError: It is on S3, and another one by now.
        StorageError: The storage refused.
    """
    if is_s3(entry.uri):
        start = max(0, entry.num_bytes - num_bytes)
        if start == entry.num_bytes:
            return entry, b""
        try:
            tail = _s3(entry.uri, options).cat_file(
                entry.uri, start=start, end=entry.num_bytes, if_match=s3_etag(entry.version) or None
            )
        except (FileNotFoundError, ObjectChangedError):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it raises
            raise _s3_error("read", entry.uri, options, error) from None
        return entry, tail
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
            raise CatalogError(f"{location} does not exist; write the table or correct the path")
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


def _list_s3(location: str, options: StorageOptions | None) -> list[FileEntry]:
    filesystem = _s3(location, options)
    filesystem.invalidate_cache()
    try:
        if not glob.has_magic(location):
            return _list_s3_folder(filesystem, location)
        matches = filesystem.glob(location, detail=True).values()
        folders = [match["name"] for match in matches if match["type"] == "directory"]
        _refuse_hive(location, folders)
        entries = [
            _s3_entry(match)
            for match in matches
            if match["type"] == "file" and not _is_hidden(match["name"].rsplit("/", 1)[-1])
        ]
        for folder in folders:
            if not _is_hidden(folder.rstrip("/").rsplit("/", 1)[-1]):
                entries += _list_s3_folder(filesystem, folder)
        return entries
    except CatalogError:
        raise
    except FileNotFoundError:
        raise CatalogError(
            f"{location} does not exist; write the table or correct the location"
        ) from None
    except Exception as error:  # noqa: BLE001 -- whatever it raises
        raise _s3_error("list", location, options, error) from None


def _list_s3_folder(filesystem: Any, folder: str, above: tuple[str, ...] = ()) -> list[FileEntry]:
    path = folder.removeprefix("s3://").rstrip("/")
    entries, folders = [], []
    for child in filesystem.ls(path, detail=True):
        name = child["name"].rstrip("/")
        if child["name"] == path and child["type"] == "file":
            return [_s3_entry(child)]  # the location is a file
        if name == path or _is_hidden(name.rsplit("/", 1)[-1]):
            continue  # the folder's own marker object
        if child["type"] == "directory":
            folders.append(name.rsplit("/", 1)[-1])
        elif not child["name"].endswith("/"):
            entries.append(_s3_entry(child, above))
    for name in _partition_folders(folder, folders, above):
        entries += _list_s3_folder(filesystem, f"{path}/{name}", (*above, name))
    return entries


def _s3_entry(child: dict[str, Any], folders: tuple[str, ...] = ()) -> FileEntry:
    return FileEntry(
        uri=f"s3://{child['name']}",
        num_bytes=int(child["size"]),
        version=s3_version(child),
        folders=folders,
    )


def _s3(location: str, options: StorageOptions | None) -> Any:
    """The file system of the storage options; s3fs shares one instance for equal arguments."""
    return FsspecStore(location, options).filesystem


def _s3_error(
    action: str, location: str, options: StorageOptions | None, error: Exception
) -> StorageError:
    text = (options or StorageOptions()).redact(f"{type(error).__name__}: {error}")
    return StorageError(
        f"cannot {action} {location}: {text}; check the endpoint, the credentials and the bucket"
    )


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
