"""Whether an engine failed on a damaged file: asked after DuckDB has raised an error.

Worker code. Damage that the checks before reading cannot find (a user's file whose pages have no
checksums) shows as an error of DuckDB's own. That is neither a mistake in the query, which Spark
could be asked about, nor something that a retry could mend.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa

from stagecoach.infra.errors import QueryError, StorageError
from stagecoach.infra.integrity.diagnosis import raise_if_undecodable
from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.reading.format_input import EngineInput
from stagecoach.infra.reading.inputs import ParquetInput
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.planner.errors import StagecoachError

_CLASSES = (
    duckdb.InvalidInputException,
    duckdb.IOException,
    duckdb.SerializationException,
    duckdb.InternalException,
    duckdb.FatalException,
)
"""DuckDB's errors that may come from a file. Those of the reader itself are of no class at all."""

_WORDS = re.compile(
    r"likely corrupted|^Error: Out of buffer|decompress(ion)? (failure|failed)|Failed to decompress"
    r"|TProtocolException",
    re.IGNORECASE,
)
"""What DuckDB says of pages that it cannot read."""


_STREAMED = re.compile(r"^(Invalid|Invalid Input|IO|Serialization|INTERNAL|FATAL) Error")
"""How the texts of those classes begin once rows are given: Arrow's stream passes on the text."""


def raise_if_damaged(error: QueryError, inputs: Sequence[EngineInput]) -> None:
    """Raise a more exact error if a file that was read cannot be decoded.

    Args:
        error: What the engine's error was made of.
        inputs: What the fragment reads.

    Raises:
        DamagedFileError: A file is damaged.
    """
    cause = error.__cause__
    if not (isinstance(cause, _CLASSES) or type(cause) is duckdb.Error or _is_streamed(cause)):
        return
    scans = [leaf for leaf in inputs if isinstance(leaf, ParquetInput)]
    paths = []
    for leaf in scans:
        columns = [column.source for column in leaf.columns]
        for _, parts in itertools.groupby(leaf.files, key=lambda file: file.uri):
            files = list(parts)
            if (path := files[0].local_path) is None:
                paths.append(files[0].uri)
                _raise_if_remote_undecodable(replace(leaf, files=tuple(files)), cause)
                continue
            paths.append(path)
            rows = [(file.row_start, file.row_end) for file in files]
            try:
                raise_if_undecodable(path, columns, rows)
            except DamagedFileError as damage:
                raise damage from cause
            except (OSError, StorageError):
                continue  # it is gone, say: the error as it is tells more
    if paths and _WORDS.search(f"{type(cause).__name__}: {cause}"):
        named = next((path for path in paths if path in str(cause)), paths[0])
        where = named if len(set(paths)) == 1 or named in str(cause) else f"{named} or another"
        raise DamagedFileError(where, f"DuckDB cannot read it ({cause})") from cause


def _raise_if_remote_undecodable(leaf: ParquetInput, cause: BaseException | None) -> None:
    """Read a remote file once more, as it names what is damaged.

    Raises:
        DamagedFileError: It is damaged.
    """
    try:
        for _ in read_parquet_batches(leaf):
            pass
    except DamagedFileError as damage:
        raise damage from cause
    except StagecoachError:
        return  # it is gone, say: the error as it is tells more


def _is_streamed(cause: BaseException | None) -> bool:
    return isinstance(cause, OSError | pa.ArrowException) and bool(_STREAMED.match(str(cause)))
