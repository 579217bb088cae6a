"""Lets the workers of a host read an input once and share it.

Worker code. The worker that comes first reads an input, which is checked as ever, and writes its
batches as one stream of uncompressed Arrow messages into a folder that the host's workers share.
The others wait for it, and all map the file: no request, no decoding, and one copy for the host, in
the system's cache of pages. It needs no checksums of its own: `infra.shared_files` says why.

    worker 1   storage ─▶ checked, decoded ─▶ <name>.part ─▶ <name> ─▶ map
    worker 2   waits ──────────────────────────────────────────┴─────▶ map

No task fails, or waits for long, because of this: what cannot be shared, each reads for itself.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import logging
import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from stagecoach.infra.host.shared_files import Draft, SharedFolder, Unfinished, sweep_shared_files
from stagecoach.infra.shuffle import broadcast_cache
from stagecoach.infra.shuffle.manifest import Manifest

log = logging.getLogger(__name__)

_FORMAT = 1
"""Goes up with what a file holds: workers of several versions may share a folder."""

_LOCAL_BYTES = 8 << 20
"""Least stored bytes of an input in local files that workers share. Of 64 MB (LZ4, 136 MB decoded)
a worker that decoded them took 30 ms of processor time and 146 MB of memory. Shared, the first took
75 ms, each other 10, and all of them together 147 MB. So memory is saved from two workers on, and
time from three or four. With less than this, both are too little for files of its own.

Elsewhere there is no such limit: an input of one map file of 1 kB on S3 takes two requests, with
5.5 ms of processor time; to write it for others takes 1 ms, and to map it 0.1."""

_POLL_SECONDS = 0.005
_PATIENCE_SECONDS = 10.0
"""How long a file that is being written may stay as it is before others read for themselves."""


def pays(manifest: Manifest, num_bytes: int, max_bytes: int, *, is_local: bool) -> bool:
    """Whether workers should share an input.

    Args:
        manifest: Its commit.
        num_bytes: Stored bytes that are read of it.
        max_bytes: Bound of the decoded bytes.
        is_local: Whether it is in files of this machine.
    """
    least = _LOCAL_BYTES if is_local else 1
    # Local files that are not compressed are mapped as they are, so they are shared anyway.
    is_mapped = is_local and manifest.codec == "none"
    return least <= num_bytes <= max_bytes and not is_mapped


@dataclass(frozen=True)
class HostInput:
    """An input that the workers of a host share.

    Args:
        parent: Local folder of the host.
        key: Names its content for good.
        schema: Of its batches.
        max_bytes: Bound of all that is shared in the folder.
    """

    parent: str
    key: Sequence[object]
    schema: pa.Schema
    max_bytes: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return hashlib.sha256(json.dumps([_FORMAT, *self.key]).encode()).hexdigest()

    def batches(self, read: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, from the file if there is one, else those that `read` yields.

        Raises:
            Exception: What `read` raised.
        """
        try:
            found = self._find(SharedFolder(self.parent))
        except OSError as error:
            _say_unshared(self.parent, error.strerror or str(error))
            found = None
        if found is None:
            yield from read()
        elif isinstance(found, mmap.mmap):
            _tidy_at_exit(self.parent)
            yield from _mapped(found)
        else:
            _tidy_at_exit(self.parent)
            try:
                yield from self._write(found, read())
            finally:
                found.close()

    def _find(self, folder: SharedFolder) -> mmap.mmap | Draft | None:
        """A map of the file, a draft of it, or None where this worker should not wait for it."""
        name = self.name
        seen, deadline = -1, 0.0
        while isinstance(found := folder.open(name), Unfinished):
            if found.num_bytes != seen:
                seen, deadline = found.num_bytes, time.monotonic() + _PATIENCE_SECONDS
            elif time.monotonic() > deadline:
                return None
            time.sleep(_POLL_SECONDS)
        return found

    def _write(self, draft: Draft, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches once all are in the file, or as they come where they do not fit."""
        stream = _Stream(draft, self.schema)
        for batch in batches:
            try:
                if draft.folder_bytes + batch.nbytes <= self.max_bytes:
                    stream.add(batch)
                    continue
            except OSError as error:
                _say_unshared(self.parent, error.strerror or str(error))
            yield from self._give_up(draft, stream)
            yield batch
            yield from batches
            return
        try:
            stream.finish()
            mapped = draft.publish()
        except OSError as error:
            _say_unshared(self.parent, error.strerror or str(error))
            yield from self._give_up(draft, stream)
            return
        yield from _mapped(mapped)

    def _give_up(self, draft: Draft, stream: _Stream) -> list[pa.RecordBatch]:
        """The batches that are in the file so far, in memory; others are not to wait for it."""
        batches = stream.take_back()
        try:
            draft.decline()
        except OSError as error:  # so they wait once more: for the next of them
            _say_unshared(self.parent, error.strerror or str(error))
        return batches


class _Stream:
    """Batches on their way into a file."""

    def __init__(self, draft: Draft, schema: pa.Schema) -> None:
        self._draft = draft
        self._writer = pa.ipc.new_stream(pa.PythonFile(draft.writer(), mode="w"), schema)
        self._count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Write one more.

        Raises:
            OSError: The file cannot be written; those before can still be taken back.
        """
        self._writer.write_batch(batch)
        self._count += 1

    def finish(self) -> None:
        """Write the end.

        Raises:
            OSError: The file cannot be written.
        """
        self._writer.close()

    def take_back(self) -> list[pa.RecordBatch]:
        """Return those that were written whole, in memory of their own.

        Raises:
            OSError: They cannot be read.
        """
        if not self._count:
            return []
        with self._draft.reader() as file:
            reader = pa.ipc.open_stream(file)
            return [reader.read_next_batch() for _ in range(self._count)]


def _mapped(file: mmap.mmap) -> Iterator[pa.RecordBatch]:
    """The batches of a file, without a copy; each keeps the map."""
    options = pa.ipc.IpcReadOptions(use_threads=False)
    yield from pa.ipc.open_stream(pa.py_buffer(file), options=options)


@functools.cache
def _tidy_at_exit(parent: str) -> None:
    """Have this process remove what it was the last to use, if it comes to an end by itself.

    Workers of Spark are killed; what they leave, the next process that spills removes.
    """
    atexit.register(_tidy, parent)


def _tidy(parent: str) -> None:
    broadcast_cache.SHARED.clear()
    sweep_shared_files(parent)


@functools.cache
def _say_unshared(parent: str, problem: str) -> None:
    """Say once in a process why inputs are not shared."""
    log.warning(
        "broadcast inputs are not shared by the workers of this host, each reads for itself: "
        "spill_dir %s: %s",
        parent,
        problem,
    )
