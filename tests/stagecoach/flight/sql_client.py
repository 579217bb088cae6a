"""A client of Flight SQL on `pyarrow.flight`, which writes its messages by itself."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.flight as fl


def field(number: int, content: bytes) -> bytes:
    """A field of a message that holds bytes or text."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def command(name: str, *fields: bytes) -> bytes:
    """A message of Flight SQL in an `Any`, as the specification has it."""
    url = f"type.googleapis.com/arrow.flight.protocol.sql.{name}"
    return field(1, url.encode()) + field(2, b"".join(fields))


def statement(sql: str) -> bytes:
    return command("CommandStatementQuery", field(1, sql.encode()))


class SqlClient:
    """Runs statements at a server.

    Args:
        uri: The server.
        token: Of the user.
    """

    def __init__(self, uri: str, token: str | None = None, **options: object) -> None:
        self.flight = fl.FlightClient(uri, **options)
        self._token = token

    def __enter__(self) -> SqlClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.flight.close()

    def options(self, *headers: tuple[str, str]) -> fl.FlightCallOptions:
        found = list(headers)
        if self._token is not None:
            found.append(("authorization", f"Bearer {self._token}"))
        return fl.FlightCallOptions(headers=[(k.encode(), v.encode()) for k, v in found])

    def info(self, content: bytes | str, *headers: tuple[str, str]) -> fl.FlightInfo:
        """What the server says of a statement, or of a command."""
        body = statement(content) if isinstance(content, str) else content
        return self.flight.get_flight_info(
            fl.FlightDescriptor.for_command(body), self.options(*headers)
        )

    def reader(self, endpoint: fl.FlightEndpoint) -> fl.FlightStreamReader:
        return self.flight.do_get(endpoint.ticket, self.options())

    def read(self, endpoint: fl.FlightEndpoint) -> pa.Table:
        return self.reader(endpoint).read_all()

    def query(self, content: bytes | str) -> pa.Table:
        """All rows, in the order of the endpoints."""
        info = self.info(content)
        return pa.concat_tables([self.read(endpoint) for endpoint in info.endpoints])

    def action(self, name: str, body: bytes = b"") -> list[bytes]:
        results = self.flight.do_action(fl.Action(name, body), self.options())
        return [result.body.to_pybytes() for result in results]
