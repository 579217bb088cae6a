"""Reads the rows of a result, and recomputes them if the stored ones are lost or damaged.

A reader of a result has no run around it that would recover. So the head stage runs again here,
over the same snapshot of the tables as before. Rows that were handed out already are left out: that
is right where the output came out equal, byte by byte; where it did not (ties under a `LIMIT`), the
reader is told so rather than given a row twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagecoach.api.errors import ResultChangedError
from stagecoach.infra.errors import ShuffleReadError, StorageError
from stagecoach.infra.runtime.stages.result_rows import result_batches, stored_batches
from stagecoach.infra.shuffle.commit import load_manifest
from stagecoach.infra.shuffle.fetch import DEFAULT_MEMORY_BYTES
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.known_objects import KnownObjects
from stagecoach.planner.errors import StagecoachError

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.shuffle.stored_batch import StoredBatch
    from stagecoach.infra.storage.object_store import ObjectStore
    from stagecoach.planner.types import Field

log = logging.getLogger(__name__)

MAX_ROUNDS = 3
"""How often one call makes the rows again."""


@dataclass
class HeadOutput:
    """What a head stage left in storage.

    Args:
        store: Where it is.
        run_id: The run.
        stage: Name of the stage.
        fingerprint: Where its output is; another one if it runs again and Spark takes over.
        run_again: Runs the stage again for the same run and returns where its output is; None where
            a lost output is not made again.
        known: The commit, by who has just looked at it; None to look it up.
        contents: Objects of that commit by key, by who has them at hand.
    """

    store: ObjectStore
    run_id: str
    stage: str
    fingerprint: str
    run_again: Callable[[], str] | None = None
    known: Manifest | None = None
    contents: Mapping[str, bytes] = field(default_factory=dict)

    def manifest(self) -> Manifest:
        """Return the commit; an output that is lost is made again.

        Raises:
            StorageError: It is gone: gc removed it after the run.
            ManifestError: It is damaged and cannot be made again.
        """
        try:
            return self._stored()
        except (ManifestError, _GoneError) as error:
            self._make_again(error)
        return self._stored()

    def batches(
        self,
        columns: Sequence[Field],
        *,
        files: range | None = None,
        content: str | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, each once, with these names and types.

        Args:
            columns: Names and types.
            files: Positions of the wanted map files; all if left out.
            content: The `content_hash` that the output must have, where other rows of it have been
                given already; any if left out.
            memory_bytes: Bound of the stored bytes that are read ahead.

        Raises:
            ShuffleReadError: They are lost and cannot be made again.
            ResultChangedError: They were lost when some of them had been given, and the output that
                was made again is not equal.
        """
        return self._rows(result_batches, columns, files, content, memory_bytes)

    def stored_batches(
        self,
        columns: Sequence[Field],
        *,
        files: range | None = None,
        content: str | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> Iterator[StoredBatch | pa.RecordBatch]:
        """Yield the rows like `batches`, those that are stored with these types not decoded.

        Args:
            columns: Names and types.
            files: As for `batches`.
            content: As for `batches`.
            memory_bytes: As for `batches`.

        Raises:
            ShuffleReadError: They are lost and cannot be made again.
            ResultChangedError: As for `batches`.
        """
        return self._rows(stored_batches, columns, files, content, memory_bytes)

    def _rows(
        self,
        read: Callable[..., Iterator[Any]],
        columns: Sequence[Field],
        files: range | None,
        content: str | None,
        memory_bytes: int,
    ) -> Iterator[Any]:
        given = rounds = 0
        manifest = self.known or self.manifest()
        if content is not None and manifest.content_hash != content:
            raise ResultChangedError(
                f"the result of {self.stage} was recomputed, and its rows are in another order; "
                "run the query again"
            )
        while True:
            left_out = given
            store = KnownObjects(self.store, self.contents) if self.contents else self.store
            try:
                found = read(store, manifest, columns, files=files, memory_bytes=memory_bytes)
                for batch in found:
                    if left_out >= batch.num_rows:
                        left_out -= batch.num_rows
                        continue
                    rest = batch.slice(left_out)
                    left_out = 0
                    given += rest.num_rows
                    yield rest
            except ShuffleReadError as error:
                rounds += 1
                if rounds > MAX_ROUNDS:
                    raise
                self._make_again(error)
                before, manifest = manifest, self._stored()
                is_bound = given > 0 or content is not None
                if is_bound and manifest.content_hash != before.content_hash:
                    raise ResultChangedError(
                        f"the result of {self.stage} was lost after {given} rows had been read, "
                        "and recomputing it changed the order of its rows; read it from the "
                        "beginning"
                    ) from error
            else:
                return

    def _stored(self) -> Manifest:
        found = None
        if self.fingerprint:
            found = load_manifest(self.store, self.fingerprint, stage=self.stage, expected=True)
        if found is None:
            raise _GoneError(
                f"the output of {self.stage} is gone from storage; run the query again"
            )
        return found

    def _make_again(self, error: StagecoachError) -> None:
        """Run the stage again, over the snapshot of its run.

        Raises:
            StagecoachError: That error, where it cannot; else what the stage fails with.
        """
        # Without the snapshot (gc has removed the run) it would be a result of other files.
        snapshot = layout.run_snapshot(self.run_id)
        if self.run_again is None or not self.store.exists(snapshot):
            raise error
        log.warning("%s runs again: %s", self.stage, error)
        self.fingerprint = self.run_again()
        self.known, self.contents = None, {}


class _GoneError(StorageError):
    """There is no output."""

    retryable = False
