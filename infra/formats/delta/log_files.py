"""The files of a Delta log, and what deltalake does not tell of them: deletion vectors, and times.

    00000000000000000010.checkpoint.parquet     all live files of version 10, also in several
    00000000000000000011.json                   parts, or with further files in _sidecars
    00000000000000000012.json                   what each later commit adds and removes

A data file is live with the deletion vector of its last `add`: an update of the vector removes the
file with its old vector and adds it with the new one, in one commit.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.storage.object_store import ObjectMissingError, StorageOptions
from stagecoach.infra.storage.table_files import is_remote, open_file
from stagecoach.planner.errors import CatalogError

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<id>[0-9a-f-]{36}))?"
    r"\.(?:parquet|json)"
)


@dataclass(frozen=True)
class LogFile:
    """A file of a log.

    Args:
        name: Its name.
        uri: Its canonical URI.
        modified_ms: When it was written, in milliseconds since 1970.
    """

    name: str
    uri: str
    modified_ms: int


@dataclass(frozen=True)
class Vector:
    """A deletion vector as `add` and `remove` describe it.

    Args:
        kind: `i` for one that stands in the log, `u` for a file of the table, `p` for any file.
        place: The vector, the file's id, or its URI.
        offset: Where in the file it begins.
        size: Its bytes.
        cardinality: How many rows it deletes.
    """

    kind: str
    place: str
    offset: int | None
    size: int
    cardinality: int

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> Vector | None:
        """Return the vector of an action; None for none."""
        found = action.get("deletionVector")
        if not found or not found.get("storageType"):
            return None
        return cls(
            found["storageType"],
            found["pathOrInlineDv"],
            found.get("offset"),
            found["sizeInBytes"],
            found["cardinality"],
        )


def list_log(location: str, options: StorageOptions) -> tuple[LogFile, ...]:
    """Return the files of a table's log, sorted by name.

    Raises:
        CatalogError: There is no log.
        StorageError: The storage refused.
    """
    folder = f"{location}/_delta_log"
    found = _remote(folder, options) if is_remote(folder) else _local(folder)
    return tuple(sorted(found, key=lambda file: file.name))


def commits(files: Sequence[LogFile]) -> dict[int, LogFile]:
    """Return the commits of a log by their versions, ascending."""
    matches = ((_COMMIT.fullmatch(file.name), file) for file in files)
    return {int(match[1]): file for match, file in matches if match is not None}


def oldest_version(files: Sequence[LogFile]) -> int:
    """Return the oldest version that a log still tells whole."""
    return 0 if 0 in commits(files) else min(_checkpoints(files), default=0)


def live_vectors(
    files: Sequence[LogFile], version: int, options: StorageOptions
) -> dict[str, Vector | None]:
    """Return the live data files of a version with their deletion vectors, by their paths.

    Args:
        files: The files of the log.
        version: The version.
        options: How to reach storage.

    Raises:
        CatalogError: The log is not complete.
        StorageError: The storage refused.
    """
    start, checkpoint = _checkpoint(files, version)
    live: dict[tuple[str, Vector | None], None] = {}
    for file in checkpoint:
        for action in _checkpoint_adds(file, options):
            live[action["path"], Vector.of(action)] = None
    known = commits(files)
    for number in range(start + 1, version + 1):
        if number not in known:
            raise CatalogError(
                f"the Delta log has no commit {number}, which version {version} needs; read a "
                "version that the log still has"
            )
        actions = read_actions(known[number], options)
        for action in actions:
            if (removed := action.get("remove")) is not None:
                live.pop((removed["path"], Vector.of(removed)), None)
        for action in actions:
            if (added := action.get("add")) is not None:
                live[added["path"], Vector.of(added)] = None
    found = dict(live.keys())
    if len(found) < len(live):
        raise CatalogError("the Delta log has a data file twice, with different deletion vectors")
    return found


def read_actions(file: LogFile, options: StorageOptions) -> list[dict[str, Any]]:
    """Return the actions of a commit, or of a checkpoint in JSON."""
    try:
        # Not `splitlines`: JSON may hold U+0085, U+2028 and U+2029 unescaped.
        lines = _content(file.uri, options).split("\n")
        return [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise CatalogError(f"{file.uri} is damaged: {error}") from error


def _checkpoint(files: Sequence[LogFile], version: int) -> tuple[int, list[LogFile]]:
    """The newest complete checkpoint that is not above a version; -1 and no files without one."""
    complete = {number: kept for number, kept in _checkpoints(files).items() if number <= version}
    newest = max(complete, default=-1)
    return newest, complete.get(newest, [])


def _checkpoints(files: Sequence[LogFile]) -> dict[int, list[LogFile]]:
    """The complete checkpoints by their versions."""
    complete: dict[int, list[LogFile]] = {}
    parts: dict[tuple[int, int], list[LogFile]] = {}
    for file in files:
        match = _CHECKPOINT.fullmatch(file.name)
        if match is None:
            continue
        number = int(match[1])
        if match["part"] is None:
            complete[number] = [file]
            continue
        of_number = parts.setdefault((number, int(match["parts"])), [])
        of_number.append(file)
        if len(of_number) == int(match["parts"]):
            complete.setdefault(number, of_number)
    return complete


def _checkpoint_adds(file: LogFile, options: StorageOptions) -> Iterator[Mapping[str, Any]]:
    """The `add` actions of a checkpoint file and of its sidecars."""
    if file.name.endswith(".json"):
        actions = read_actions(file, options)
    else:
        actions = _parquet_actions(file.uri, options)
    folder = file.uri.rpartition("/")[0]
    for action in actions:
        if action.get("add"):
            yield action["add"]
        elif action.get("sidecar"):
            path = action["sidecar"]["path"]
            uri = canonical_path(path) if ":" in path else f"{folder}/_sidecars/{path}"
            yield from (a["add"] for a in _parquet_actions(uri, options) if a.get("add"))


def _parquet_actions(uri: str, options: StorageOptions) -> list[dict[str, Any]]:
    source, _ = _opened(uri, options)
    with source:
        file = pq.ParquetFile(source)
        wanted = ["add.path", "add.deletionVector", "sidecar.path"]
        rows: list[dict[str, Any]] = file.read(columns=wanted).to_pylist()
    return rows


def _content(uri: str, options: StorageOptions) -> str:
    source, _ = _opened(uri, options)
    with source:
        return bytes(source.read()).decode()


def _opened(uri: str, options: StorageOptions) -> tuple[Any, Any]:
    try:
        return open_file(uri, options)
    except FileNotFoundError:
        raise CatalogError(
            f"{uri}, a file of the Delta log, is gone; plan the query again"
        ) from None


def _local(folder: str) -> Iterator[LogFile]:
    try:
        with os.scandir(folder) as children:
            for child in children:
                modified = child.stat().st_mtime_ns // 1_000_000
                yield LogFile(child.name, child.path, modified)
    except FileNotFoundError:
        raise CatalogError(f"{folder} does not exist") from None
    except OSError as error:
        raise StorageError(f"cannot list {folder}: {error}") from error


def _remote(folder: str, options: StorageOptions) -> Iterator[LogFile]:
    from stagecoach.infra.storage.fsspec_files import FsspecFiles

    store = FsspecFiles(folder, options)
    try:
        children = store.children("")
    except ObjectMissingError:
        raise CatalogError(f"{folder} does not exist") from None
    for child in children:
        name = str(child["name"]).rstrip("/").rpartition("/")[2]
        modified = child.get("LastModified")
        moment = modified.timestamp() if isinstance(modified, datetime) else 0.0
        yield LogFile(name, f"{folder}/{name}", int(moment * 1000))
