"""Actions: those of Flight SQL and Flight that the server has, and its own.

CreatePreparedStatement, ClosePreparedStatement, CancelQuery     Flight SQL
CancelFlightInfo, RenewFlightEndpoint                            Flight
stagecoach.progress      body: a statement's id, or nothing for all of the user's; JSON
stagecoach.cancel        body: a statement's id
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from stagecoach.flight.errors import NotAllowedError
from stagecoach.flight.messages.commands import StatementTicket, decode_command
from stagecoach.flight.messages.wire import MessageError, message, pack, parse, unpack
from stagecoach.flight.service import Service
from stagecoach.flight.tickets import ResultTicket, Ticket, TicketSigner

_CANCELLED = 1

Action = Callable[[str, bytes], list[bytes]]


class Actions:
    """The actions of a server.

    Args:
        service: What they act on.
        signer: Reads tickets.
    """

    def __init__(self, service: Service, signer: TicketSigner) -> None:
        self._service = service
        self._signer = signer
        self._known: Mapping[str, tuple[Action, str]] = {
            "CreatePreparedStatement": (self._create, "Prepare a statement."),
            "ClosePreparedStatement": (self._close, "Forget a prepared statement."),
            "CancelQuery": (self._cancel_query, "Cancel a query by its FlightInfo."),
            "CancelFlightInfo": (self._cancel_info, "Cancel a query by its FlightInfo."),
            "RenewFlightEndpoint": (self._renew, "Have an endpoint expire later."),
            "stagecoach.progress": (
                self._progress,
                "Progress of a statement by stage, as JSON. Body: its id, or nothing for all.",
            ),
            "stagecoach.cancel": (self._cancel, "Cancel a statement. Body: its id."),
        }

    def names(self) -> list[tuple[str, str]]:
        """Return names and meanings."""
        return [(name, meaning) for name, (_, meaning) in self._known.items()]

    def run(self, user: str, name: str, body: bytes) -> list[bytes]:
        """Do an action and return its results.

        Raises:
            NotImplementedError: There is no such action.
            StagecoachError: It failed.
        """
        if name not in self._known:
            raise NotImplementedError(f"this server has no action {name[:64]!r}")
        action, _ = self._known[name]
        return action(user, body)

    def _create(self, user: str, body: bytes) -> list[bytes]:
        request = _unpacked("ActionCreatePreparedStatementRequest", body)
        if request.transaction_id:
            raise NotAllowedError("this server has no transactions")
        handle, columns, parameters = self._service.prepare(user, request.query)
        result = message(
            "ActionCreatePreparedStatementResult",
            prepared_statement_handle=handle,
            parameter_schema=_schema_bytes(parameters),
            **({} if columns is None else {"dataset_schema": _schema_bytes(columns)}),
        )
        return [pack(result)]

    def _close(self, user: str, body: bytes) -> list[bytes]:
        request = _unpacked("ActionClosePreparedStatementRequest", body)
        self._service.close_prepared(user, request.prepared_statement_handle)
        return []

    def _cancel_query(self, user: str, body: bytes) -> list[bytes]:
        self._cancel_result(user, _unpacked("ActionCancelQueryRequest", body).info)
        return [pack(message("ActionCancelQueryResult", result=_CANCELLED))]

    def _cancel_info(self, user: str, body: bytes) -> list[bytes]:
        self._cancel_result(user, parse("CancelFlightInfoRequest", body).info)
        result = message("CancelFlightInfoResult", status=_CANCELLED)
        return [bytes(result.SerializeToString())]

    def _renew(self, user: str, body: bytes) -> list[bytes]:
        endpoint = fl.FlightEndpoint.deserialize(parse("RenewFlightEndpointRequest", body).endpoint)
        ticket = self._ticket(user, endpoint)
        renewed = self._service.results.endpoint(self._service.results.renew(ticket))
        return [
            fl.FlightEndpoint(
                renewed.ticket, endpoint.locations, renewed.expiration_time
            ).serialize()
        ]

    def _progress(self, user: str, body: bytes) -> list[bytes]:
        execution = self._service.execution
        wanted = body.decode(errors="replace")
        found = [execution.find(user, wanted)] if wanted else execution.of_user(user)
        return [json.dumps(statement.to_dict()).encode() for statement in found]

    def _cancel(self, user: str, body: bytes) -> list[bytes]:
        cancelled = self._service.execution.cancel(user, body.decode(errors="replace"))
        return [json.dumps({"cancelled": cancelled}).encode()]

    def _cancel_result(self, user: str, info: bytes) -> None:
        for endpoint in fl.FlightInfo.deserialize(info).endpoints:
            ticket = self._ticket(user, endpoint)
            if isinstance(ticket, ResultTicket):
                self._service.results.cancel(ticket)

    def _ticket(self, user: str, endpoint: fl.FlightEndpoint) -> Ticket:
        command = decode_command(endpoint.ticket.ticket)
        if not isinstance(command, StatementTicket):
            raise NotAllowedError("the endpoint is not one of a statement's result")
        return self._signer.read(command.handle, user)


def _unpacked(name: str, body: bytes) -> Any:
    found, content = unpack(body)
    if found != name:
        raise MessageError(f"the body of the action is a {found}, not a {name}")
    return content


def _schema_bytes(schema: pa.Schema) -> bytes:
    content: bytes = schema.serialize().to_pybytes()
    return content
