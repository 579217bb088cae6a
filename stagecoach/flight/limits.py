"""What a server takes on at most."""

from __future__ import annotations

from dataclasses import dataclass

_PLANNING = 16
"""Statements that are planned or looked up, and neither run nor wait."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of a server.

    Args:
        running: Statements that are computed at once; those whose result is there are not counted.
        waiting: Statements that wait to be computed; further ones are refused.
        timeout_seconds: How long a statement may take, waiting included; 0 for as long as it takes.
        streams: Streams of rows that are open at once.
        streams_per_connection: Of which so many for one connection.
        stall_seconds: A connection is closed whose client reads nothing of a stream for so long.
        ticket_seconds: How long a ticket can be used.
        prepared: Prepared statements that are kept; the longest unused ones are forgotten.
        endpoints: Endpoints of a result.
        endpoint_bytes: A result has one endpoint for so many stored bytes.
        read_bytes: Stored bytes that a stream reads ahead.
        batch_bytes: Size of a record batch that is sent, unless a single row is larger.
    """

    running: int = 4
    waiting: int = 64
    timeout_seconds: float = 0.0
    streams: int = 64
    streams_per_connection: int = 32
    stall_seconds: float = 300.0
    ticket_seconds: float = 3600.0
    prepared: int = 1000
    endpoints: int = 16
    endpoint_bytes: int = 32 << 20
    read_bytes: int = 32 << 20
    batch_bytes: int = 8 << 20

    @property
    def statements(self) -> int:
        """Statements that are open at once, those included that are planned."""
        return self.running + self.waiting + _PLANNING
