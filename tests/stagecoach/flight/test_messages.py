"""Messages beside bytes that are written by hand from the specification."""

from __future__ import annotations

import random

import pytest

from stagecoach.flight.messages.commands import (
    GetSqlInfo,
    GetTables,
    GetTypeInfo,
    PreparedQuery,
    StatementQuery,
    StatementTicket,
    WriteRefusedError,
    decode_command,
)
from stagecoach.flight.messages.wire import MessageError, message, pack, parse, unpack
from tests.stagecoach.flight.sql_client import command, field, statement

CASES = [
    (statement("SELECT 1"), StatementQuery("SELECT 1")),
    (command("CommandPreparedStatementQuery", field(1, b"\x00h")), PreparedQuery(b"\x00h")),
    (command("TicketStatementQuery", field(1, b"t")), StatementTicket(b"t")),
    (command("CommandGetTables"), GetTables()),
    (
        command(
            "CommandGetTables",
            field(1, b""),
            field(2, b"s%"),
            field(3, b"t_"),
            field(4, b"TABLE"),
            field(4, b"VIEW"),
            b"\x28\x01",  # field 5, a varint
        ),
        GetTables("", "s%", "t_", ("TABLE", "VIEW"), include_schema=True),
    ),
    (command("CommandGetSqlInfo", b"\x0a\x03\x00\xf4\x03"), GetSqlInfo((0, 500))),  # packed
    (command("CommandGetSqlInfo", b"\x08\x07"), GetSqlInfo((7,))),  # not packed
    (command("CommandGetXdbcTypeInfo", b"\x08\x00"), GetTypeInfo(0)),
    (command("CommandGetXdbcTypeInfo"), GetTypeInfo(None)),
]


@pytest.mark.parametrize(("content", "expected"), CASES)
def test_commands(content: bytes, expected: object) -> None:
    assert decode_command(content) == expected


def test_a_result_has_the_field_numbers_of_the_specification() -> None:
    made = message(
        "ActionCreatePreparedStatementResult",
        prepared_statement_handle=b"h",
        dataset_schema=b"d",
        parameter_schema=b"p",
    )
    assert made.SerializeToString() == field(1, b"h") + field(2, b"d") + field(3, b"p")
    assert unpack(pack(made)) == ("ActionCreatePreparedStatementResult", made)
    assert parse("CancelFlightInfoRequest", field(1, b"i")).info == b"i"
    assert message("CancelFlightInfoResult", status=1).SerializeToString() == b"\x08\x01"


@pytest.mark.parametrize(
    "name",
    ["CommandStatementUpdate", "CommandPreparedStatementUpdate", "CommandStatementIngest"],
)
def test_writing_is_refused(name: str) -> None:
    with pytest.raises(WriteRefusedError, match="only answers SELECT"):
        decode_command(command(name))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "an empty type is not a message"),
        (b"\xff\xff\xff", "not a command of Flight SQL"),
        (command("Nothing"), "sql.Nothing is not a message"),
        (field(1, b"type.googleapis.com/google.protobuf.Empty"), "google.protobuf.Empty is not"),
        (command("CommandStatementQuery", b"\x0a\xff"), "not a message CommandStatementQuery"),
        (command("CommandStatementQuery", field(1, b"\xff")), "CommandStatementQuery"),
        (command("CommandStatementSubstraitPlan"), "not something that this server does"),
        (statement("S" * (5 << 20)), "has 5,242,880 characters"),
    ],
)
def test_other_bytes_are_refused(content: bytes, text: str) -> None:
    with pytest.raises(MessageError, match=text):
        decode_command(content)


def test_random_bytes_do_no_harm() -> None:
    chance = random.Random(7)
    whole = statement("SELECT 1")
    for _ in range(2000):
        content = bytearray(whole if chance.random() < 0.5 else chance.randbytes(40))
        content[chance.randrange(len(content))] = chance.randrange(256)
        try:
            decode_command(bytes(content))
        except MessageError:
            continue
