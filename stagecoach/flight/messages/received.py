"""Rows that a client sends: the parameters of a prepared statement.

Everything in them is the client's claim, so sizes are looked at before anything is decompressed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import chain
from typing import Any

import pyarrow as pa

from stagecoach.flight.messages.flight_data import ipc_message
from stagecoach.flight.messages.wire import MessageError, parse
from stagecoach.infra.shuffle.stored_batch import StoredBatch

MAX_BYTES = 1 << 20


def received_rows(first: Any, further: Iterable[bytes]) -> pa.Table:
    """Return the rows of a stream of messages `FlightData`.

    Args:
        first: The first message, parsed.
        further: The others.

    Raises:
        MessageError: They are more than `MAX_BYTES`, or no rows.
    """
    found: list[bytes] = []
    size = 0
    for part in chain([first], (parse("FlightData", content) for content in further)):
        if not part.data_header:
            continue
        content = ipc_message(part.data_header, part.data_body)
        size += _size(content)
        if size > MAX_BYTES:
            raise MessageError(f"the parameters have more than {MAX_BYTES:,} bytes; bind one row")
        found.append(content)
    try:
        with pa.ipc.open_stream(b"".join(found)) as reader:
            rows = reader.read_all()
        # Places in buffers are a claim, too.
        rows.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise MessageError(f"the parameters are not Arrow rows: {error}") from error
    return rows


def _size(content: bytes) -> int:
    """The bytes of a message, those of its rows uncompressed."""
    try:
        message = pa.ipc.read_message(content)
        if message.type != "record batch":
            return len(content)
        return max(len(content), StoredBatch(message, pa.schema([])).nbytes)
    except (pa.ArrowException, OSError, EOFError, struct.error) as error:
        raise MessageError("the parameters are not messages of Arrow") from error
