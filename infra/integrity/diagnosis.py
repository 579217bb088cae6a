"""Which part of a Parquet file cannot be decoded: asked after an engine has failed on it.

Worker code. Engines tell that something is wrong with a file, few tell where.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.integrity.errors import DamagedFileError
from stagecoach.infra.integrity.parquet import Damage, FooterError, column_chunks, read_footer


def find_undecodable(
    source: pa.NativeFile,
    metadata: pq.FileMetaData,
    groups: Collection[int],
    columns: Sequence[str],
) -> Damage | None:
    """Return the first column of a row group that pyarrow cannot decode, or None.

    Args:
        source: The file.
        metadata: Its footer.
        groups: Row groups to look at.
        columns: Top-level columns to look at, as the file spells them.
    """
    with pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True) as parquet:
        for group in groups:
            for column in columns:
                try:
                    parquet.read_row_group(group, columns=[column], use_threads=False)
                except (pa.ArrowInvalid, OSError) as error:
                    return Damage(f"it cannot be decoded ({error})", column, group)
    return None


def raise_if_undecodable(
    path: str,
    columns: Collection[str] | None,
    rows: Sequence[tuple[int, int]] | None,
) -> None:
    """Decode some columns of a local file and raise an error if that fails.

    Args:
        path: The file.
        columns: Top-level columns, in any case; None for all.
        rows: Ranges of rows; None for all.

    Raises:
        DamagedFileError: The file is damaged.
        OSError: It cannot be opened.
    """
    with pa.OSFile(path) as source:
        try:
            metadata = read_footer(source, source.size())
        except FooterError as error:
            raise DamagedFileError(path, str(error)) from error
        names = {c.lower() for c in columns} if columns is not None else None
        stored = metadata.schema.to_arrow_schema().names
        chosen = [name for name in stored if names is None or name.lower() in names]
        groups = sorted({chunk.row_group for chunk in column_chunks(metadata, None, rows)})
        damage = find_undecodable(source, metadata, groups, chosen)
        if damage is not None:
            raise DamagedFileError(path, damage.problem, damage.column, damage.row_group)
