"""Paths of published tables below the storage root.

    results/<table>/files/[<col>=<value>/…]<name>.parquet   rows, immutable
    results/<table>/versions/<number>.json                  a version: the files that are live
    results/<table>/current.json                            a hint which version is the newest

Worker code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import layout

RESULTS_ROOT = "results"
TABLE_FILES = "files"
_DATA_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}\.parquet")
_FOLDER = re.compile(r"[^/\\\x00-\x1f]+")


def table_prefix(table: str) -> str:
    """Return the folder of a published table."""
    return f"{RESULTS_ROOT}/{layout.check_component('table', table)}"


def table_files(table: str) -> str:
    """Return the folder of a published table's data files, its partition folders among them."""
    return f"{table_prefix(table)}/{TABLE_FILES}"


def table_file(table: str, path: str) -> str:
    """Return the key of a data file.

    Args:
        table: The table.
        path: Path below the table's folder, as `table_file_path` made it.

    Raises:
        StorageError: The path leads elsewhere.
    """
    folder, *rest = path.split("/")
    *folders, name = rest or [""]
    for part in folders:
        if "=" not in part or not _FOLDER.fullmatch(part):
            raise _not_a_data_file(path)
    if folder != TABLE_FILES or not _DATA_FILE.fullmatch(name):
        raise _not_a_data_file(path)
    return f"{table_prefix(table)}/{path}"


def table_file_path(folders: Sequence[str], name: str) -> str:
    """Return the path of a data file below its table's folder.

    Args:
        folders: Names of its partition folders, as `partition_folder` makes them.
        name: Its name, `<token>-….parquet`.
    """
    return "/".join([TABLE_FILES, *folders, name])


def table_versions(table: str) -> str:
    """Return the folder of a published table's versions."""
    return layout.log_versions(table_prefix(table))


def table_version(table: str, number: int) -> str:
    """Return the key of one version of a published table, numbered from 1."""
    return layout.log_version(table_prefix(table), number)


def table_current(table: str) -> str:
    """Return the key of the hint which version of a published table is the newest."""
    return layout.log_current(table_prefix(table))


def _not_a_data_file(path: str) -> StorageError:
    return StorageError(f"{path!r} is not the path of a data file; see table_file_path")
