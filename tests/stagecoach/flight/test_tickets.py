"""Tickets are the server's own, one user's, and for a while."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagecoach.flight.errors import NotFoundError
from stagecoach.flight.tickets import ResultTicket, TextTicket, TicketError, TicketSigner

SIGNER = TicketSigner(b"k" * 32)
TICKET = ResultTicket(
    user="alice",
    statement="s",
    run_id="r",
    query="query",
    stage_id=3,
    fingerprint="f" * 64,
    content="c" * 64,
    first=0,
    end=2,
    expires=1000.0,
)


@pytest.mark.parametrize(
    "ticket",
    [TICKET, TextTicket(user="alice", sql="Ñ", expires=1000.0, values={"1": ["int", "2"]})],
)
def test_round_trip(ticket: ResultTicket | TextTicket) -> None:
    assert SIGNER.read(SIGNER.sign(ticket), "alice", now=999.0) == ticket


def test_every_changed_byte_is_noticed() -> None:
    signed = SIGNER.sign(TICKET)
    for position in range(len(signed)):
        changed = bytearray(signed)
        changed[position] ^= 1
        with pytest.raises(TicketError, match="not one of this server's"):
            SIGNER.read(bytes(changed), "alice", now=0.0)
    for length in (0, 1, 32, 33, len(signed) - 1):
        with pytest.raises(TicketError):
            SIGNER.read(signed[:length], "alice", now=0.0)


def test_another_key_is_another_server() -> None:
    other = TicketSigner(b"o" * 32)
    with pytest.raises(TicketError, match="--ticket-key"):
        SIGNER.read(other.sign(TICKET), "alice", now=0.0)


def test_another_user_is_refused() -> None:
    with pytest.raises(TicketError, match="another user's"):
        SIGNER.read(SIGNER.sign(TICKET), "bob", now=0.0)
    bobs = SIGNER.sign(replace(TICKET, user="bob"))
    assert SIGNER.read(bobs, "bob", now=0.0).user == "bob"


def test_expired() -> None:
    with pytest.raises(NotFoundError, match="expired; run the statement again"):
        SIGNER.read(SIGNER.sign(TICKET), "alice", now=1000.5)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 32 bytes"):
        TicketSigner(b"short")
