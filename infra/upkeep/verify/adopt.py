"""Checksums for files of tables that were written before files had any.

A file is read and decoded completely first: its footer is compared with the checksum that the
version of the table has of it, its pages with their checksums if it has any, its rows are counted.
Damage that none of these shows is adopted with the file; nothing can tell it any more.

The checksums come with one more version of the table, which names the same files. Outputs of stages
that were computed from the table stay valid, because what identifies a file in their fingerprints
(its name, its size, its footer) is what it was.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.formats.deduplicated.table import ChunkTable, utc_now
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion
from stagecoach.infra.formats.published.log import new_token, table_log
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.integrity import parquet
from stagecoach.infra.integrity.parquet import Damage, FooterError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.upkeep.verify.findings import StoredDamage
from stagecoach.infra.upkeep.verify.objects import open_reader, piece_bytes

_THREADS = 4


@dataclass(frozen=True, kw_only=True)
class Adopted:
    """What came of a table's files without checksums.

    Attributes:
        table: Name of the table.
        version: Number of the version with their checksums; None if there is none to be made.
        files: How many files have got checksums.
        damages: Files that cannot be read as they were written, and have got none.
    """

    table: str
    version: int | None
    files: int
    damages: tuple[StoredDamage, ...] = ()


@dataclass(frozen=True)
class _File:
    """A Parquet file of a table."""

    key: str
    num_rows: int
    num_bytes: int
    footer: str


def adopt_checksums(
    store: ObjectStore,
    tables: Sequence[ChunkTable] = (),
    *,
    table: str | None = None,
) -> list[Adopted]:
    """Give checksums to files of the newest versions of tables that have none.

    Args:
        store: The storage root, with published tables.
        tables: Deduplicated tables.
        table: Name of the only table; None for all.

    Returns:
        One item for each table with such files.

    Raises:
        TableVersionError: The newest version of a table is damaged.
        StorageError: The store failed.
    """

    def is_chosen(name: str) -> bool:
        return table is None or name.lower() == table.lower()

    names = filter(is_chosen, store.folders(layout.RESULTS_ROOT))
    done = [_adopt_published(store, name) for name in names]
    done += [_adopt_deduplicated(item) for item in tables if is_chosen(item.name)]
    return [item for item in done if item is not None]


def _adopt_published(store: ObjectStore, table: str) -> Adopted | None:
    versions = table_log(store, table)
    version = versions.current()
    files = {} if version is None else {f.path: f for f in version.files if not f.checksums}
    if version is None or not files:
        return None
    found, damages = _read_files(
        store,
        {
            path: _File(
                layout.table_file(table, path), file.num_rows, file.num_bytes, file.footer_checksum
            )
            for path, file in files.items()
        },
        StoredDamage(
            uri="",
            problem="",
            remedy="restore the file from a copy, or clear the table "
            f"(stagecoach tables clear {table}) and publish all of it again",
            table=table,
            version=version.number,
        ),
    )
    token = new_token()

    def step(base: TableVersion | None) -> TableVersion | None:
        if base is None or not any(not f.checksums and f.path in found for f in base.files):
            return None
        return replace(
            base,
            number=base.number + 1,
            token=token,
            committed_at=utc_now(),
            mode="adopt",
            run_id="",
            files=tuple(
                f if f.checksums else replace(f, checksums=found.get(f.path, ""))
                for f in base.files
            ),
        )

    made = versions.commit(token, step)[0] if found else None
    newest = made or versions.current()
    live = set() if newest is None else {file.path for file in newest.files}
    number = None if made is None else made.number
    return Adopted(table=table, version=number, files=len(found), damages=_in(live, damages))


def _adopt_deduplicated(table: ChunkTable) -> Adopted | None:
    version = table.log.current()
    chunks = {} if version is None else {c.name: c for c in version.chunks if not c.any_checksums}
    if version is None or not chunks:
        return None
    found, damages = _read_files(
        table.store,
        {
            name: _File(chunk.key, chunk.num_rows, chunk.num_bytes, chunk.checksum)
            for name, chunk in chunks.items()
        },
        StoredDamage(
            uri="",
            problem="",
            remedy="restore the file from a copy; nothing else has its rows",
            table=table.name,
            version=version.number,
        ),
    )
    commit = table.new_commit()

    def step(base: ChunkTableVersion | None) -> ChunkTableVersion | None:
        if base is None or not any(not c.any_checksums and c.name in found for c in base.chunks):
            return None
        made = tuple(
            c if c.any_checksums else replace(c, checksums=found.get(c.name, ""))
            for c in base.chunks
        )
        return commit.after(base, "adopt", chunks=made)

    made = table.log.commit(commit.token, step)[0] if found else None
    newest = made or table.log.current()
    live = set() if newest is None else {chunk.name for chunk in newest.chunks}
    number = None if made is None else made.number
    return Adopted(table=table.name, version=number, files=len(found), damages=_in(live, damages))


def _in(live: Container[str], damages: Mapping[str, StoredDamage]) -> tuple[StoredDamage, ...]:
    # What another version has replaced meanwhile, gc may have removed.
    return tuple(damage for name, damage in damages.items() if name in live)


def _read_files(
    store: ObjectStore, files: Mapping[str, _File], known: StoredDamage
) -> tuple[dict[str, str], dict[str, StoredDamage]]:
    """The checksums of the files that are whole, and what is wrong with the others."""
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


def _read_file(store: ObjectStore, file: _File) -> str | Damage:
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


def _decoding_damage(store: ObjectStore, file: _File) -> Damage | None:
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
