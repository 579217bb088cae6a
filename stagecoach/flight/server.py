"""The gRPC server: reads each call, has the service do it, and tells errors as clients expect.

The service `arrow.flight.protocol.FlightService` by its methods' names, on `grpc` and not on
`pyarrow.flight`, whose server can send nothing but batches that it encodes itself, and has no
options for connections. Each call has a thread; there is a bounded number of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.flight as fl

from stagecoach.flight.actions import Actions
from stagecoach.flight.auth import AUTHORIZATION, Headers, User, Users, one_value
from stagecoach.flight.clients import takes_compressed
from stagecoach.flight.errors import NotAllowedError, status_of
from stagecoach.flight.limits import Limits
from stagecoach.flight.messages.commands import (
    PreparedQuery,
    StatementQuery,
    StatementTicket,
    decode_command,
)
from stagecoach.flight.messages.flight_data import encoded, schema_message
from stagecoach.flight.messages.received import received_rows
from stagecoach.flight.messages.wire import MessageError, message, parse
from stagecoach.flight.service import Service
from stagecoach.flight.tickets import TicketSigner

STATEMENT_HEADER = "stagecoach-statement"
"""Header in which a client may choose the id of its statement."""

_SERVICE = "/arrow.flight.protocol.FlightService/"
_OTHER_CALLS = 32
"""Calls that neither run a statement nor send rows."""
_END_SECONDS = 2.0
_MAX_MESSAGE_BYTES = 16 << 20


class Call:
    """One call of a client.

    Args:
        context: What gRPC knows of it.
        users: Finds out who calls.

    Raises:
        NotKnownError: Nobody knows who calls.
    """

    def __init__(self, context: grpc.ServicerContext, users: Users) -> None:
        self.context = context
        self.headers: Headers = _headers(context)
        self.user: User = users.user(self.headers)

    def is_gone(self) -> bool:
        """Whether the client has gone."""
        return not self.context.is_active()

    def peer(self) -> str:
        """Return the name of the connection."""
        return str(self.context.peer())

    def cancel(self) -> None:
        """End the call."""
        self.context.cancel()


Method = Callable[[Call, Any], Any]


class FlightSqlServer:
    """A Flight SQL server, which answers as soon as it is made.

    Args:
        address: Where it listens, such as `127.0.0.1:31337`.
        service: What it does.
        signer: Reads tickets.
        users: Finds out who calls.
        limits: How much it does at once.
        tls: Certificate and key as PEM; None for none.

    Raises:
        RuntimeError: The address cannot be used.
    """

    def __init__(
        self,
        address: str,
        service: Service,
        signer: TicketSigner,
        users: Users,
        limits: Limits,
        tls: tuple[bytes, bytes] | None = None,
    ) -> None:
        self._service = service
        self._signer = signer
        self._actions = Actions(service, signer)
        self._limits = limits
        calls = limits.streams + limits.statements + _OTHER_CALLS
        self._server = grpc.server(
            ThreadPoolExecutor(calls, "call"),
            handlers=[_Methods(self._methods(), users)],
            options=_options(limits),
            maximum_concurrent_rpcs=calls,
        )
        if tls is None:
            self.port = int(self._server.add_insecure_port(address))
        else:
            certificate, key = tls
            credentials = grpc.ssl_server_credentials([(key, certificate)])
            self.port = int(self._server.add_secure_port(address, credentials))
        self._server.start()

    def shutdown(self, seconds: float) -> None:
        """Take no more calls, wait for those that end by themselves, and end the others.

        Args:
            seconds: How long to wait.
        """
        self._server.stop(seconds).wait(seconds + _END_SECONDS)

    def _methods(self) -> Mapping[str, Any]:
        unary, rows, both = _unary, _streamed, _both_streamed
        return {
            "Handshake": (both, self._handshake),
            "ListFlights": (rows, self._list_flights),
            "GetFlightInfo": (unary, self._get_flight_info),
            "GetSchema": (unary, self._get_schema),
            "DoGet": (rows, self._do_get),
            "DoPut": (both, self._do_put),
            "DoAction": (rows, self._do_action),
            "ListActions": (rows, self._list_actions),
        }

    def _handshake(self, call: Call, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Answer a name and a password with a token to be sent from now on."""
        if call.user.bearer is not None:
            bearer = (AUTHORIZATION, f"Bearer {call.user.bearer}")
            call.context.send_initial_metadata((bearer,))
        yield _bytes(message("HandshakeResponse"))

    def _list_flights(self, call: Call, request: bytes) -> Iterator[bytes]:
        """Return nothing: results are found through statements, tables through commands."""
        return iter(())

    def _get_flight_info(self, call: Call, request: bytes) -> bytes:
        """Run a statement, or say where the answer to a question about the catalog is."""
        descriptor, content = _descriptor(request)
        command = decode_command(content)
        match command:
            case StatementQuery() | PreparedQuery():
                info = self._service.run(
                    call.user.name,
                    command,
                    descriptor,
                    is_gone=call.is_gone,
                    statement_id=one_value(call.headers, STATEMENT_HEADER) or None,
                )
            case StatementTicket():
                raise MessageError("a ticket cannot be asked for; it is for DoGet")
            case _:
                schema = self._service.metadata_schema(command)
                endpoints = [fl.FlightEndpoint(content, [])]
                info = fl.FlightInfo(schema, descriptor, endpoints, -1, -1)
        return bytes(info.serialize())

    def _get_schema(self, call: Call, request: bytes) -> bytes:
        """Return the columns of a statement, which is only planned, or of an answer."""
        command = decode_command(_descriptor(request)[1])
        match command:
            case StatementQuery() | PreparedQuery():
                schema = self._service.schema(call.user.name, command)
            case StatementTicket():
                raise MessageError("a ticket has no schema; ask for that of the statement")
            case _:
                schema = self._service.metadata_schema(command)
        return bytes(fl.SchemaResult(schema).serialize())

    def _do_get(self, call: Call, request: bytes) -> Iterator[bytes]:
        """Send rows of a result, or an answer."""
        command = decode_command(parse("Ticket", request).ticket)
        match command:
            case StatementTicket():
                shown = self._signer.read(command.handle, call.user.name)
                compressed = takes_compressed(call.headers)
                schema, stream = self._service.read(shown, call, compressed=compressed)
                try:
                    yield schema_message(schema)
                    for part in stream:
                        yield part.content
                finally:
                    stream.close()
            case StatementQuery() | PreparedQuery():
                raise NotAllowedError(
                    "rows are read with a ticket; ask for the statement's FlightInfo first"
                )
            case _:
                table = self._service.metadata(command)
                yield schema_message(table.schema)
                most = self._limits.batch_bytes
                for found in encoded(table.to_batches(), table.schema, most, compressed=False):
                    yield found.content

    def _do_put(self, call: Call, requests: Iterator[bytes]) -> Iterator[bytes]:
        """Bind parameters to a prepared statement."""
        first = parse("FlightData", next(requests, b""))
        command = decode_command(_descriptor(first.flight_descriptor)[1])
        if not isinstance(command, PreparedQuery):
            raise NotAllowedError("this server only answers SELECT; it takes no rows")
        self._service.bind(call.user.name, command, received_rows(first, requests))
        result = message("DoPutPreparedStatementResult", prepared_statement_handle=command.handle)
        yield _bytes(message("PutResult", app_metadata=_bytes(result)))

    def _do_action(self, call: Call, request: bytes) -> Iterator[bytes]:
        """Do an action."""
        action = parse("Action", request)
        for body in self._actions.run(call.user.name, action.type, action.body):
            yield _bytes(message("Result", body=body))

    def _list_actions(self, call: Call, request: bytes) -> Iterator[bytes]:
        """Return the actions."""
        for name, meaning in self._actions.names():
            yield _bytes(message("ActionType", type=name, description=meaning))


class _Methods(grpc.GenericRpcHandler):
    """Finds the method of a call; gRPC refuses those that are not here."""

    def __init__(self, methods: Mapping[str, Any], users: Users) -> None:
        self._handlers = {
            f"{_SERVICE}{name}": wrap(method, users) for name, (wrap, method) in methods.items()
        }

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the handler of a call."""
        return self._handlers.get(details.method)


def _unary(method: Method, users: Users) -> grpc.RpcMethodHandler:
    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        with _told(context):
            found: bytes = method(Call(context, users), request)
        return found

    return grpc.unary_unary_rpc_method_handler(answer)


def _streamed(method: Method, users: Users) -> grpc.RpcMethodHandler:
    return grpc.unary_stream_rpc_method_handler(_streaming(method, users))


def _both_streamed(method: Method, users: Users) -> grpc.RpcMethodHandler:
    return grpc.stream_stream_rpc_method_handler(_streaming(method, users))


def _streaming(method: Method, users: Users) -> Callable[..., Iterator[bytes]]:
    def answer(request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
        with _told(context):
            yield from method(Call(context, users), request)

    return answer


@contextmanager
def _told(context: grpc.ServicerContext) -> Iterator[None]:
    """End the call with a status for every error of the block."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- the client gets a status, and the server goes on
        status = status_of(error)
    else:
        return
    context.abort(*status)


def _options(limits: Limits) -> list[tuple[str, int]]:
    """Options of gRPC: sizes, and the end of connections whose client is dead or says nothing."""
    return [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", limits.streams_per_connection + _OTHER_CALLS),
        ("grpc.server_handshake_timeout_ms", 20_000),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 60_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # Clients may ask for a sign of life that often.
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ]


def _headers(context: grpc.ServicerContext) -> Headers:
    found: defaultdict[str, list[str | bytes]] = defaultdict(list)
    for name, value in context.invocation_metadata() or ():
        found[name.lower()].append(value)
    return found


def _descriptor(content: bytes) -> tuple[fl.FlightDescriptor, bytes]:
    """A descriptor, and the command that it must hold."""
    try:
        found = fl.FlightDescriptor.deserialize(content)
    except pa.ArrowException as error:
        raise MessageError("the bytes are not a message FlightDescriptor") from error
    if found.descriptor_type != fl.DescriptorType.CMD:
        raise MessageError("the descriptor has no command; this is a server of Flight SQL")
    return found, found.command


def _bytes(found: Any) -> bytes:
    content: bytes = found.SerializeToString()
    return content
