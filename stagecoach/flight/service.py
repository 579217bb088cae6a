"""What the server does, call by call, without the library that carries the calls.

plan and run     GetFlightInfo of a text or a prepared statement
read             DoGet of a ticket
prepare, bind    actions and DoPut
look around      catalogs, schemas, tables, types, properties
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.flight as fl

from stagecoach.flight.errors import NotFoundError
from stagecoach.flight.execution import Execution
from stagecoach.flight.gate import Gate
from stagecoach.flight.limits import Limits
from stagecoach.flight.messages.commands import (
    MetadataCommand,
    PreparedQuery,
    StatementQuery,
    checked_sql,
)
from stagecoach.flight.messages.flight_data import FlightMessage, Rows, encoded
from stagecoach.flight.metadata import metadata_schema, metadata_table
from stagecoach.flight.parameters import bound_values, parameter_schema, stored_values
from stagecoach.flight.prepared import PreparedStatement, PreparedStatements
from stagecoach.flight.results import Results
from stagecoach.flight.sessions import Sessions
from stagecoach.flight.streams import Caller, Stream, Streams
from stagecoach.flight.tickets import ResultTicket, TextTicket, Ticket

if TYPE_CHECKING:
    from stagecoach.api.parameters import ParameterValue
    from stagecoach.flight.holds import Holds

Query = StatementQuery | PreparedQuery

_PLANNING = 8
"""Plannings for EXPLAIN, for columns and for prepared statements that go on at once."""


class Service:
    """The calls of Flight SQL.

    Args:
        sessions: Plan statements and know the tables.
        execution: Runs statements.
        results: Hands out results.
        streams: Those that are open.
        holds: Keeps what is read safe from gc.
        limits: Bounds.
    """

    def __init__(
        self,
        *,
        sessions: Sessions,
        execution: Execution,
        results: Results,
        streams: Streams,
        holds: Holds,
        limits: Limits,
    ) -> None:
        self.execution = execution
        self.results = results
        self.streams = streams
        self._sessions = sessions
        self._holds = holds
        self._limits = limits
        self._prepared = PreparedStatements(limits.prepared)
        self._planning = Gate(_PLANNING, limits.waiting)

    # ------------------------------------------------------------------------ statements

    def run(
        self,
        user: str,
        query: Query,
        descriptor: fl.FlightDescriptor,
        *,
        is_gone: Callable[[], bool],
        statement_id: str | None = None,
    ) -> fl.FlightInfo:
        """Run a query and return where its result can be read.

        Raises:
            StagecoachError: It failed, or there are too many.
        """
        sql, values = self._text_of(user, query)
        if (text := self._explained(sql, values)) is not None:
            ticket = self.results.new_text(user, sql, values)
            endpoint = self.results.endpoint(ticket)
            return fl.FlightInfo(text.schema, descriptor, [endpoint], text.num_rows, -1, True)
        statement = self.execution.execute(
            user, sql, values, is_gone=is_gone, statement_id=statement_id
        )
        return self.results.info(statement, descriptor)

    def schema(self, user: str, query: Query) -> pa.Schema:
        """Return the columns of a query, which is only planned.

        Raises:
            StagecoachError: It cannot be planned.
        """
        sql, values = self._text_of(user, query)
        return self._schema_of(sql, values)

    def prepare(self, user: str, sql: str) -> tuple[bytes, pa.Schema | None, pa.Schema]:
        """Prepare a statement; return its handle, its columns and its parameters.

        The columns are None where they may depend on the types of parameters.

        Raises:
            StagecoachError: It cannot be planned.
        """
        from stagecoach.api.query_parameters import used_parameters
        from stagecoach.assets.project.front_matter import parse_front_matter

        declared = parse_front_matter(checked_sql(sql)).parameter_types
        names = tuple(used_parameters(self._sessions.current().expand(sql).text) or ())
        columns = None if names else self._schema_of(sql, {})
        statement = PreparedStatement(user=user, sql=sql, parameters=names)
        return self._prepared.add(statement), columns, parameter_schema(names, declared)

    def bind(self, user: str, query: PreparedQuery, values: pa.Table) -> None:
        """Bind values to a prepared statement.

        Args:
            user: Whose it is.
            query: The statement.
            values: A row of parameters, or none.

        Raises:
            ParameterError: They do not fit it.
        """
        statement = self._prepared.get(query.handle, user)
        rows = values.combine_chunks().to_batches()
        if rows:
            found = bound_values(statement.parameters, rows[0])
            self._prepared.bind(query.handle, user, found)

    def close_prepared(self, user: str, handle: bytes) -> None:
        """Forget a prepared statement."""
        self._prepared.close(handle, user)

    # ------------------------------------------------------------------------ rows

    def read(
        self, ticket: Ticket, caller: Caller, *, compressed: bool
    ) -> tuple[pa.Schema, Stream[FlightMessage]]:
        """Return the rows that a ticket is for.

        Args:
            ticket: The ticket.
            caller: The client.
            compressed: Whether it reads compressed messages.

        Raises:
            BusyError: Too many streams are open.
            StagecoachError: The result is gone.
        """
        match ticket:
            case TextTicket():
                text = self._explained(ticket.sql, stored_values(ticket.values))
                if text is None:
                    raise NotFoundError("the ticket is not for an EXPLAIN statement")
                batches = text.to_batches()
                return text.schema, self.streams.open(
                    caller, lambda: self._encoded(batches, text.schema, compressed=compressed)
                )
            case ResultTicket():
                return self._read_result(ticket, caller, compressed=compressed)

    def metadata_schema(self, command: MetadataCommand) -> pa.Schema:
        """Return the columns of the answer to a command."""
        return metadata_schema(command)

    def metadata(self, command: MetadataCommand) -> pa.Table:
        """Return the answer to a command.

        Raises:
            StagecoachError: The catalog cannot be read.
        """
        return metadata_table(command, self._sessions.current())

    def _read_result(
        self, ticket: ResultTicket, caller: Caller, *, compressed: bool
    ) -> tuple[pa.Schema, Stream[FlightMessage]]:
        # Held first and looked at then: gc may be at work.
        self._holds.open_stream(ticket.run_id)
        try:
            schema = self.results.schema(ticket)
        except BaseException:
            self._holds.close_stream(ticket.run_id)
            raise
        return schema, self.streams.open(
            caller,
            lambda: self._encoded(self.results.batches(ticket), schema, compressed=compressed),
            lambda: self._holds.close_stream(ticket.run_id),
        )

    def _encoded(
        self, rows: Iterable[Rows], schema: pa.Schema, *, compressed: bool
    ) -> Iterator[FlightMessage]:
        return encoded(rows, schema, self._limits.batch_bytes, compressed=compressed)

    def _text_of(self, user: str, query: Query) -> tuple[str, Mapping[str, ParameterValue]]:
        match query:
            case StatementQuery():
                return query.sql, {}
            case PreparedQuery():
                statement = self._prepared.get(query.handle, user)
                return statement.sql, statement.values

    def _schema_of(self, sql: str, values: Mapping[str, ParameterValue]) -> pa.Schema:
        from stagecoach.planner.types import arrow_schema

        if (text := self._explained(sql, values)) is not None:
            return text.schema
        with self._planning.passed():
            return arrow_schema(self._sessions.current().plan(sql, values).graph.result)

    def _explained(self, sql: str, values: Mapping[str, ParameterValue]) -> pa.Table | None:
        """The answer to an EXPLAIN statement; None for any other text."""
        with self._planning.passed():
            found = self._sessions.current().explained(sql, values)
        return None if found is None else found.to_arrow()
