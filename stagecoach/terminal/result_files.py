"""Writes a result as one file: Parquet, CSV, JSON lines or Arrow IPC.

A file appears whole or not at all.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from stagecoach.infra.errors import StorageError
from stagecoach.infra.host.umask import umask
from stagecoach.planner.errors import OptionError
from stagecoach.terminal.output import render_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.planner.types import Field

FileFormat = Literal["parquet", "csv", "json", "arrow"]
FILE_FORMATS: tuple[FileFormat, ...] = ("parquet", "csv", "json", "arrow")

_ENDS: dict[str, FileFormat] = {
    "": "parquet",
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
}


def format_of(path: Path) -> FileFormat:
    """Return the format of a file by its ending; Parquet if it has none.

    Raises:
        OptionError: The file ending is not known.
    """
    found = _ENDS.get(path.suffix.lower())
    if found is None:
        known = ", ".join(filter(None, _ENDS))
        raise OptionError(f"{path}: '{path.suffix}' is not a known file ending; use one of {known}")
    return found


def is_replaceable(path: Path) -> bool:
    """Whether a result may take the place of what is at a path: nothing, or a regular file."""
    return not path.exists() or path.is_file()


def write_result(
    path: Path,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    file_format: FileFormat | None = None,
    columns: Sequence[Field] | None = None,
    time_zone: str = "UTC",
) -> int:
    """Write one file and return its rows.

    Args:
        path: The file; its folder is made if it is missing.
        schema: Columns of the result.
        batches: Its rows.
        file_format: By default what the file's name stands for.
        columns: The Spark types of its columns, by which CSV and JSON show intervals.
        time_zone: Zone in which CSV and JSON show timestamps.

    Raises:
        OptionError: The file ending is not known.
        StorageError: The file cannot be written.
    """
    chosen = format_of(path) if file_format is None else file_format
    counted = _Counted(batches)
    with _appearing(path) as file:
        if chosen == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(file, schema, write_page_checksum=True) as writer:
                for batch in counted:
                    writer.write_batch(batch)
        elif chosen == "arrow":
            import pyarrow as pa

            with pa.ipc.new_file(file, schema) as writer:
                for batch in counted:
                    writer.write_batch(batch)
        else:
            for line in render_rows(schema, counted, chosen, columns=columns, time_zone=time_zone):
                file.write(line.encode() + b"\n")
    return counted.num_rows


class _Counted:
    """Batches, with the number of rows that were taken."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.num_rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.num_rows += batch.num_rows
            yield batch


@contextmanager
def _appearing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which is there under its name when the block has ended without an error.

    The mode of an older file stays.
    """
    temporary = None
    try:
        if not is_replaceable(path):
            raise StorageError(
                f"cannot write {path}: it is not a regular file; choose another name"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))  # a link stays, and leads to the new file
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            yield file
        # mkstemp makes files that only their owner can read.
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~umask()
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another folder"
        ) from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
