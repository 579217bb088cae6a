"""The gRPC server: reads each call, has the service do it, and tells errors as clients expect.

`pyarrow.flight` carries the calls, each in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.flight as fl

from stagecoach.flight.actions import Actions
from stagecoach.flight.auth import MIDDLEWARE, Handshake, UserFactory, user_of
from stagecoach.flight.errors import NotAllowedError, told_to_clients
from stagecoach.flight.messages.commands import (
    PreparedQuery,
    StatementQuery,
    StatementTicket,
    decode_command,
)
from stagecoach.flight.messages.wire import MessageError, message
from stagecoach.flight.service import Service
from stagecoach.flight.tickets import TicketSigner

if TYPE_CHECKING:
    from stagecoach.flight.auth import User

STATEMENT_HEADER = "stagecoach-statement"
"""Header in which a client may choose the id of its statement."""


class FlightSqlServer(fl.FlightServerBase):
    """A Flight SQL server, which answers as soon as it is made.

    Args:
        location: Where it listens, such as `grpc://127.0.0.1:31337`.
        service: What it does.
        signer: Reads tickets.
        users: Finds out who calls.
        tls: Certificate and key as PEM; None for none.
    """

    def __init__(
        self,
        location: str,
        service: Service,
        signer: TicketSigner,
        users: UserFactory,
        tls: tuple[bytes, bytes] | None = None,
    ) -> None:
        self._service = service
        self._signer = signer
        self._actions = Actions(service, signer)
        super().__init__(
            location,
            auth_handler=Handshake(),
            tls_certificates=[tls] if tls else None,
            middleware={MIDDLEWARE: users},
        )

    def get_flight_info(
        self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor
    ) -> fl.FlightInfo:
        """Run a statement, or say where the answer to a question about the catalog is."""
        with told_to_clients():
            content = _command_of(descriptor)
            command = decode_command(content)
            match command:
                case StatementQuery() | PreparedQuery():
                    user = user_of(context)
                    return self._service.run(
                        user.name,
                        command,
                        descriptor,
                        is_gone=context.is_cancelled,
                        statement_id=_chosen_id(user),
                    )
                case StatementTicket():
                    raise MessageError("a ticket cannot be asked for; it is for DoGet")
            schema = self._service.metadata_schema(command)
            return fl.FlightInfo(schema, descriptor, [fl.FlightEndpoint(content, [])], -1, -1)

    def get_schema(
        self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor
    ) -> fl.SchemaResult:
        """Return the columns of a statement, which is only planned, or of an answer."""
        with told_to_clients():
            command = decode_command(_command_of(descriptor))
            match command:
                case StatementQuery() | PreparedQuery():
                    schema = self._service.schema(user_of(context).name, command)
                    return fl.SchemaResult(schema)
                case StatementTicket():
                    raise MessageError("a ticket has no schema; ask for that of the statement")
            return fl.SchemaResult(self._service.metadata_schema(command))

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        """Send rows of a result, or an answer."""
        with told_to_clients():
            command = decode_command(ticket.ticket)
            match command:
                case StatementTicket():
                    shown = self._signer.read(command.handle, user_of(context).name)
                    schema, stream = self._service.read(shown, context.peer())
                    return fl.GeneratorStream(schema, stream)
                case StatementQuery() | PreparedQuery():
                    raise NotAllowedError(
                        "rows are read with a ticket; ask for the statement's FlightInfo first"
                    )
            return fl.RecordBatchStream(self._service.metadata(command))

    def do_put(
        self,
        context: fl.ServerCallContext,
        descriptor: fl.FlightDescriptor,
        reader: fl.MetadataRecordBatchReader,
        writer: fl.FlightMetadataWriter,
    ) -> None:
        """Bind parameters to a prepared statement."""
        with told_to_clients():
            command = decode_command(_command_of(descriptor))
            if not isinstance(command, PreparedQuery):
                raise NotAllowedError("this server only answers SELECT; it takes no rows")
            batches = (chunk.data for chunk in reader if chunk.data is not None)
            self._service.bind(user_of(context).name, command, batches)
            result = message(
                "DoPutPreparedStatementResult", prepared_statement_handle=command.handle
            )
            writer.write(pa.py_buffer(result.SerializeToString()))

    def do_action(self, context: fl.ServerCallContext, action: fl.Action) -> Iterator[bytes]:
        """Do an action."""
        with told_to_clients():
            return iter(
                self._actions.run(user_of(context).name, action.type, action.body.to_pybytes())
            )

    def list_actions(self, context: fl.ServerCallContext) -> list[tuple[str, str]]:
        """Return the actions."""
        return self._actions.names()

    def list_flights(
        self, context: fl.ServerCallContext, criteria: bytes
    ) -> Iterator[fl.FlightInfo]:
        """Return nothing: results are found through statements, tables through commands."""
        return iter(())


def _command_of(descriptor: fl.FlightDescriptor) -> bytes:
    if descriptor.descriptor_type != fl.DescriptorType.CMD:
        raise MessageError("the descriptor has no command; this is a server of Flight SQL")
    content: bytes = descriptor.command
    return content


def _chosen_id(user: User) -> str | None:
    values = user.headers.get(STATEMENT_HEADER, ())
    return str(values[0]) if len(values) == 1 else None
