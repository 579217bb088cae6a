"""Checksums for files of tables that were written before files had any.

A file is read and decoded completely first: its footer is compared with the checksum that the
version of the table has of it, its pages with their checksums if it has any, its rows are counted.
Damage that none of these shows is adopted with the file; nothing can tell it any more.

The checksums come with one more version of the table, which names the same files. Outputs of stages
that were computed from the table stay valid, because what identifies a file in their fingerprints
(its name, its size, its footer) is what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.integrity import parquet
from stagecoach.infra.integrity.findings import StoredDamage
from stagecoach.infra.integrity.objects import open_reader, piece_bytes
from stagecoach.infra.integrity.parquet import Damage, FooterError
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore

_THREADS = 4


@dataclass(frozen=True)
class StoredFile:
    """A Parquet file of a table, as the version of the table describes it.

    Attributes:
        key: Where it is.
        num_rows: Its rows.
        num_bytes: Its size.
        footer: Checksum of its footer.
    """

    key: str
    num_rows: int
    num_bytes: int
    footer: str


def read_whole_files(
    store: ObjectStore, files: Mapping[str, StoredFile], known: StoredDamage
) -> tuple[dict[str, str], dict[str, StoredDamage]]:
    """Read files completely; return the checksums of whole ones, and what is wrong with the others.

    Args:
        store: Where they are.
        files: The files, by any name.
        known: What is known of each of them but its URI.
    """
    found: dict[str, str] = {}
    damages: dict[str, StoredDamage] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        results = pool.map(lambda file: _read_file(store, file), files.values())
        for name, result in zip(files, results, strict=True):
            if isinstance(result, str):
                found[name] = result
            else:
                damages[name] = replace(known, uri=store.uri(files[name].key)).at(result)
    return found, damages


def _read_file(store: ObjectStore, file: StoredFile) -> str | Damage:
    """The checksums of a file, or what is wrong with it."""
    try:
        with open_reader(store, file.key) as (reader, size):
            if size != file.num_bytes:
                return Damage(f"it has {size} bytes instead of {file.num_bytes}")
            for damage in parquet.find_damage(
                reader, size, footer=file.footer, piece_bytes=piece_bytes(store)
            ):
                return damage
            # Before it is decoded: damage between the two is found by whoever reads it next.
            _, checksums = parquet.compute_checksums(reader, size, piece_bytes(store))
        return _decoding_damage(store, file) or checksums
    except FooterError as error:
        return Damage(str(error))
    except ObjectMissingError:
        return Damage("it is missing")


def _decoding_damage(store: ObjectStore, file: StoredFile) -> Damage | None:
    with (
        store.open_input(file.key) as source,
        pq.ParquetFile(source, page_checksum_verification=True) as whole,
    ):
        names = whole.schema_arrow.names
        num_rows = whole.metadata.num_rows
        for group in range(whole.metadata.num_row_groups):
            for column in names:
                try:
                    batches = whole.iter_batches(
                        row_groups=[group], columns=[column], use_threads=False
                    )
                    decoded = sum(_checked_rows(batch) for batch in batches)
                except (pa.ArrowException, OSError) as error:
                    return Damage(f"it cannot be decoded ({error})", column, group)
                if decoded != whole.metadata.row_group(group).num_rows:
                    return Damage(f"it has {decoded} rows", column, group)
    if num_rows != file.num_rows:
        return Damage(f"it has {num_rows} rows instead of {file.num_rows}")
    return None


def _checked_rows(batch: pa.RecordBatch) -> int:
    batch.validate(full=True)  # texts that are not UTF-8, offsets that lead nowhere
    return int(batch.num_rows)
