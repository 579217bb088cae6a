"""Reading stored objects for a check: files of tables in pieces, small texts whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stagecoach.infra.integrity import arrow, parquet
from stagecoach.infra.integrity.findings import Outcome, StoredDamage
from stagecoach.infra.integrity.local import LocalReader
from stagecoach.infra.integrity.parquet import LOCAL_PIECE_BYTES, REMOTE_PIECE_BYTES, Damage, Reader
from stagecoach.infra.storage import checked_json
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.storage.rereads import reread


class ForeignVersionError(Exception):
    """An object was written by another version of Stagecoach, so it cannot be judged."""


@contextmanager
def open_reader(store: ObjectStore, key: str) -> Iterator[tuple[Reader, int]]:
    """Yield an object to be read in pieces, and its size.

    Raises:
        ObjectMissingError: There is no such object.
        StorageError: It cannot be read.
    """
    if store.is_local:
        try:
            with LocalReader(store.uri(key)) as reader:
                yield reader, reader.status.st_size
        except FileNotFoundError as error:
            raise ObjectMissingError(f"{store.uri(key)} was not found") from error
        return
    with store.open_input(key) as file:
        yield file, file.size()


def piece_bytes(store: ObjectStore) -> int:
    """How much of an object to read at once."""
    return LOCAL_PIECE_BYTES if store.is_local else REMOTE_PIECE_BYTES


def check_parquet(
    store: ObjectStore, key: str, known: StoredDamage, num_bytes: int, footer: str, checksums: str
) -> Outcome:
    """Check a Parquet file of a table by its checksums, or by those of its pages."""
    with open_reader(store, key) as (reader, size):
        if size != num_bytes:
            return _of_other_size(known, size, num_bytes)
        found = parquet.find_damage(
            reader, num_bytes, footer=footer, checksums=checksums, piece_bytes=piece_bytes(store)
        )
        damages = tuple(known.at(damage) for damage in found)
    return Outcome(damages=damages, num_bytes=num_bytes, has_checksums=bool(checksums))


def check_arrow(
    store: ObjectStore,
    key: str,
    known: StoredDamage,
    num_bytes: int,
    checksum: str,
    segments: str,
) -> Outcome:
    """Check an Arrow file of a table."""
    with open_reader(store, key) as (reader, size):
        if size != num_bytes:
            return _of_other_size(known, size, num_bytes)
        found = arrow.find_damage(
            reader,
            num_bytes,
            checksum=checksum,
            segments=segments,
            piece_bytes=piece_bytes(store),
        )
        damages = tuple(known.at(damage) for damage in found)
    return Outcome(damages=damages, num_bytes=num_bytes, has_checksums=bool(checksum or segments))


def _of_other_size(known: StoredDamage, size: int, expected: int) -> Outcome:
    return Outcome(damages=[known.at(Damage(f"it has {size} bytes instead of {expected}"))])


def check_text(
    store: ObjectStore,
    key: str,
    known: StoredDamage,
    parse: Callable[[bytes], object],
    is_sealed: Callable[[bytes], bool] = checked_json.is_sealed,
) -> Outcome:
    """Check a small object.

    Args:
        store: Where it is.
        key: Its key.
        known: What is known of it.
        parse: Raises `ValueError` or a `StagecoachError` if it is damaged, `ForeignVersionError`
            if another version of Stagecoach wrote it.
        is_sealed: Whether the text has a checksum of its own.
    """
    text = b""

    def read() -> None:
        nonlocal text
        text = store.read_bytes(key)
        parse(text)

    try:
        reread(store, key, read, DAMAGE)
    except ObjectMissingError:
        raise
    except ForeignVersionError:
        return Outcome(num_bytes=len(text), has_checksums=False, is_foreign=True)
    except DAMAGE as error:
        return Outcome(damages=[known.at(Damage(f"it cannot be read ({error})"))])
    return Outcome(num_bytes=len(text), has_checksums=is_sealed(text))


DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError)
"""What parsers of small texts raise where a text is not what was written."""
