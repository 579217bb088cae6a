"""Tickets: what a client shows to read rows of a result.

A ticket names a run, the fingerprint and content of its result, and a range of map files; never a
path. It is signed, so a client can neither change it nor make one, it belongs to a user, and it
expires. Servers that share a key and a storage root accept each other's tickets.

    version (1 byte) | HMAC-SHA256 (32 bytes) | JSON
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from stagecoach.flight.errors import NotAllowedError, NotFoundError

MIN_KEY_BYTES = 32
_VERSION = b"\x01"
_DIGEST_BYTES = 32
_PURPOSE = b"stagecoach flight ticket\x00"


class TicketError(NotAllowedError):
    """A ticket is not one of this server's, or not one of this user's."""


@dataclass(frozen=True, kw_only=True)
class ResultTicket:
    """The right to read some files of a result.

    Args:
        user: Whose it is.
        statement: The statement that it is a result of.
        run_id: The run.
        query: Name of the query in the run.
        stage_id: The head stage.
        fingerprint: Its output.
        content: Hash of the rows in place: another one is not what the ticket was made for.
        first: The first file.
        end: The file after the last.
        expires: Seconds since 1970.
    """

    user: str
    statement: str
    run_id: str
    query: str
    stage_id: int
    fingerprint: str
    content: str
    first: int
    end: int
    expires: float


@dataclass(frozen=True, kw_only=True)
class TextTicket:
    """The right to read the answer to an EXPLAIN statement.

    Args:
        user: Whose it is.
        sql: The statement.
        expires: Seconds since 1970.
        values: Types and texts of its parameters, by name.
    """

    user: str
    sql: str
    expires: float
    values: Mapping[str, Sequence[str | None]] = field(default_factory=dict)


Ticket = ResultTicket | TextTicket
_KINDS: dict[str, type[ResultTicket] | type[TextTicket]] = {
    "result": ResultTicket,
    "text": TextTicket,
}


class TicketSigner:
    """Signs tickets and reads them.

    Args:
        key: The key, which servers of one storage root may share.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < MIN_KEY_BYTES:
            raise ValueError(f"the key of tickets has fewer than {MIN_KEY_BYTES} bytes")
        self._key = key

    def sign(self, ticket: Ticket) -> bytes:
        """Return the text of a ticket."""
        kind = next(name for name, made in _KINDS.items() if isinstance(ticket, made))
        content = json.dumps({"kind": kind, **asdict(ticket)}, separators=(",", ":")).encode()
        return _VERSION + self._digest(content) + content

    def read(self, given: bytes, user: str, now: float | None = None) -> Ticket:
        """Return the ticket that a client shows.

        Args:
            given: What it shows.
            user: Who it is.
            now: Seconds since 1970; the present by default.

        Raises:
            TicketError: It was not signed with this key, or is another user's.
            NotFoundError: It has expired.
        """
        digest, content = given[1 : 1 + _DIGEST_BYTES], given[1 + _DIGEST_BYTES :]
        if given[:1] != _VERSION or not hmac.compare_digest(digest, self._digest(content)):
            raise TicketError(
                "the ticket is not one of this server's; servers of one storage root need the same "
                "--ticket-key"
            )
        values = json.loads(content)
        ticket = _KINDS[values.pop("kind")](**values)
        if ticket.user != user:
            raise TicketError("the ticket is another user's")
        if ticket.expires < (time.time() if now is None else now):
            raise NotFoundError("the ticket has expired; run the statement again")
        return ticket

    def _digest(self, content: bytes) -> bytes:
        return hmac.new(self._key, _PURPOSE + content, hashlib.sha256).digest()
