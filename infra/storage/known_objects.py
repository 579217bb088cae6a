"""A store some of whose objects are at hand, so that reading these asks nobody.

A run knows the manifests and indexes that it has written itself. On a store that is 30 ms away,
reading them back is most of what a small stage waits for.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from stagecoach.infra.storage.object_store import ByteSink, ObjectStore

if TYPE_CHECKING:
    import pyarrow as pa


class KnownObjects:
    """Another store, whose known objects `read_bytes` returns from memory; see `ObjectStore`.

    Everything else, `exists` and `size` of known objects included, is asked of the store itself.

    Args:
        store: The store.
        contents: Objects by key. They must be such as are never replaced by others.
    """

    def __init__(self, store: ObjectStore, contents: Mapping[str, bytes]) -> None:
        self._store = store
        self._contents = contents

    @property
    def is_local(self) -> bool:
        """As of the store itself."""
        return self._store.is_local

    def uri(self, key: str) -> str:
        """Return the full address of `key`, without credentials."""
        return self._store.uri(key)

    def read_bytes(self, key: str, offset: int | None = None, length: int | None = None) -> bytes:
        """Return the object, or `length` bytes from `offset`."""
        content = self._contents.get(key)
        if content is None:
            return self._store.read_bytes(key, offset, length)
        start = offset or 0
        return content[start : None if length is None else start + length]

    def open_input(self, key: str) -> pa.NativeFile:
        """Return a random-access Arrow file."""
        return self._store.open_input(key)

    def size(self, key: str) -> int:
        """Return the size of the object in bytes."""
        return self._store.size(key)

    def exists(self, key: str) -> bool:
        """Return whether the object exists."""
        return self._store.exists(key)

    def write_bytes(self, key: str, data: bytes) -> None:
        """Write the whole object, replacing one that is there."""
        self._store.write_bytes(key, data)

    def put_if_absent(self, key: str, data: bytes, *, looked: bool = False) -> bool:
        """Write the object unless there is one; return whether it was written."""
        return self._store.put_if_absent(key, data, looked=looked)

    def open_output(self, key: str) -> AbstractContextManager[ByteSink]:
        """Return a context manager with a sink; the object appears when the block ends well."""
        return self._store.open_output(key)

    def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects."""
        self._store.delete(keys)

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the keys below the folder `prefix`, sorted."""
        return self._store.list(prefix)

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders right below `prefix`, sorted."""
        return self._store.folders(prefix)

    def to_dict(self) -> dict[str, Any]:
        """Return what the store itself is made from."""
        return self._store.to_dict()
