"""Checksums of a data file while it is written.

Worker code.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.integrity.checksums import RunningChecksums, pack_chunks
from stagecoach.infra.integrity.parquet import column_chunks, footer_bytes, footer_checksum
from stagecoach.infra.storage.object_store import ByteSink

_MAGIC = b"PAR1"


class TailSink:
    """What pyarrow writes into: remembers checksums, and the end of the file with the footer.

    Attributes:
        checksums: Of what has passed.
        tail: What has been written since `keep_tail`.
    """

    closed = False

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._keeps = False
        self._drops = False
        self.checksums = RunningChecksums()
        self.tail = bytearray()

    @property
    def num_bytes(self) -> int:
        """Bytes so far."""
        return self.checksums.num_bytes

    def write(self, data: Any) -> int:
        """Pass bytes on."""
        view = memoryview(data).cast("B") if not isinstance(data, bytes) else data
        if not self._drops:
            self._sink.write(view)
        self.checksums.add(data)
        if self._keeps:
            self.tail += view
        return len(view)

    def tell(self) -> int:
        """Bytes so far."""
        return self.num_bytes

    def keep_tail(self) -> None:
        """Remember what is written from here on."""
        self._keeps = True

    def parquet_checksums(self) -> tuple[str, str]:
        """Checksums of a Parquet file that has been written: of the footer, of column chunks."""
        end = _MAGIC + bytes(self.tail)  # a whole file to those who read it
        raw = footer_bytes(pa.BufferReader(end), len(end))
        metadata = self.parquet_metadata()
        packed = pack_chunks(
            self.checksums.of_range(chunk.start, chunk.end) for chunk in column_chunks(metadata)
        )
        return footer_checksum(raw), packed

    def parquet_metadata(self) -> pq.FileMetaData:
        """Footer of a Parquet file that has been written."""
        return pq.read_metadata(pa.BufferReader(_MAGIC + bytes(self.tail)))

    def drop(self) -> None:
        """Take no more: the file is given up."""
        self._drops = True

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """The store's own context closes the file."""
