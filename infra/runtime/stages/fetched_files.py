"""Copies of remote files that Spark is to read by itself.

Spark has no access to the object store: files of tables go through the tasks, with their retries
and under the condition that they have not changed. A file of which only Spark knows the meaning is
therefore copied to the spill folder for as long as the stage runs. That costs one read of the file
and its size on the local disk, and works where executors are on this machine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.errors import StorageError
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.format_input import FormatInput
from stagecoach.infra.reading.input_files import opened_unchanged
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.worker.spec import InputSpec

_NUM_THREADS = 8
_BLOCK_BYTES = 8 << 20


@contextmanager
def within_reach(
    views: Mapping[str, InputSpec], settings: EngineSettings, store: Mapping[str, Any]
) -> Iterator[Mapping[str, InputSpec]]:
    """Give the inputs of a stage with copies of the remote files that Spark reads by itself.

    Args:
        views: The inputs.
        settings: Where copies go.
        store: The object store as plain data, with the options by which tables are reached.

    Raises:
        InputLostError: A file is gone or has changed.
        StorageError: The storage refused, or executors are on other machines.
    """
    options = StorageOptions.from_dict(dict(store.get("options", {})))
    files = [
        file
        for view in views.values()
        if isinstance(view, FormatInput) and (found := view.spark_files()) is not None
        for file in found.files
    ]
    with local_copies(files, settings, options) as paths:
        yield {name: _moved(view, paths) for name, view in views.items()} if paths else views


@contextmanager
def local_copies(
    files: Iterable[DataFile], settings: EngineSettings, options: StorageOptions
) -> Iterator[Mapping[str, str]]:
    """Copy the remote ones among files and give the paths of the copies by URI.

    Args:
        files: Whole files.
        settings: Where copies go.
        options: How to reach the files.

    Raises:
        InputLostError: A file is gone or has changed.
        StorageError: The storage refused, or executors are on other machines.
    """
    wanted = {file.uri: file for file in files if file.local_path is None}
    if not wanted:
        yield {}
        return
    if settings.master != "local" and not settings.master.startswith("local["):
        uri = next(iter(wanted))
        raise StorageError(
            f"{uri} is to be read by Spark, which is on other machines ({settings.master}) and has "
            "no access to it; see what is read natively in the guide to text files, or convert the "
            "files to Parquet"
        )
    os.makedirs(settings.spill_dir, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="fetched-", dir=settings.spill_dir)
    try:
        paths = {
            uri: os.path.join(folder, _name(number, file))
            for number, (uri, file) in enumerate(wanted.items())
        }
        with ThreadPoolExecutor(_NUM_THREADS) as pool:
            list(pool.map(lambda uri: _copy(wanted[uri], paths[uri], options), wanted))
        yield paths
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name(number: int, file: DataFile) -> str:
    """Where a copy goes: partition folders keep their names, from which Spark takes values."""
    depth = len(file.constants)
    parts = file.uri.split("/")[-1 - depth :]
    return os.path.join(*(parts if depth else (str(number), *parts)))


def _copy(file: DataFile, path: str, options: StorageOptions) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with opened_unchanged(replace(file, rows=None), options) as source, open(path, "wb") as target:
        while block := source.read(_BLOCK_BYTES):
            target.write(block)


def _moved(view: InputSpec, paths: Mapping[str, str]) -> InputSpec:
    if not isinstance(view, FormatInput) or view.spark_files() is None:
        return view
    return view.with_files(lambda file: replace(file, uri=paths.get(file.uri, file.uri)))
