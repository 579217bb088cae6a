"""What clients ask for, as values with types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stagecoach.flight.messages.wire import MessageError, unpack

_MAX_SQL = 4 << 20


@dataclass(frozen=True)
class StatementQuery:
    """Run a text.

    Args:
        sql: The text.
    """

    sql: str


@dataclass(frozen=True)
class PreparedQuery:
    """Run a prepared statement, or bind its parameters.

    Args:
        handle: Names it.
    """

    handle: bytes


@dataclass(frozen=True)
class StatementTicket:
    """Read rows of a result.

    Args:
        handle: What the server has signed.
    """

    handle: bytes


@dataclass(frozen=True)
class GetCatalogs:
    """List catalogs."""


@dataclass(frozen=True)
class GetSchemas:
    """List schemas.

    Args:
        catalog: Of this catalog; None for all.
        pattern: A pattern of `LIKE`; None for all.
    """

    catalog: str | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class GetTables:
    """List tables.

    Args:
        catalog: Of this catalog; None for all.
        schema_pattern: A pattern of `LIKE`; None for all.
        table_pattern: A pattern of `LIKE`; None for all.
        types: Of these types; empty for all.
        include_schema: Whether columns are wanted.
    """

    catalog: str | None = None
    schema_pattern: str | None = None
    table_pattern: str | None = None
    types: tuple[str, ...] = ()
    include_schema: bool = False


@dataclass(frozen=True)
class GetTableTypes:
    """List the types of tables."""


@dataclass(frozen=True)
class GetSqlInfo:
    """Say what the server can do.

    Args:
        codes: Of these properties; empty for all.
    """

    codes: tuple[int, ...] = ()


@dataclass(frozen=True)
class GetTypeInfo:
    """List the types of columns.

    Args:
        data_type: Those with this number of ODBC; None for all.
    """

    data_type: int | None = None


@dataclass(frozen=True)
class GetKeys:
    """List keys of tables; there are none.

    Args:
        primary: Whether primary keys are asked for, or else foreign ones.
    """

    primary: bool


MetadataCommand = (
    GetCatalogs | GetSchemas | GetTables | GetTableTypes | GetSqlInfo | GetTypeInfo | GetKeys
)
Command = StatementQuery | PreparedQuery | StatementTicket | MetadataCommand

_WRITES = (
    "CommandStatementUpdate",
    "CommandPreparedStatementUpdate",
    "CommandStatementIngest",
)


class WriteRefusedError(MessageError):
    """A client asks for something that changes data."""


def decode_command(content: bytes) -> Command:
    """Return what a descriptor or a ticket asks for.

    Raises:
        WriteRefusedError: It would change data.
        MessageError: It is nothing that the server knows.
    """
    name, found = unpack(content)
    if name in _WRITES:
        raise WriteRefusedError("this server only answers SELECT; it changes no tables")
    match name:
        case "CommandStatementQuery":
            return StatementQuery(checked_sql(found.query))
        case "CommandPreparedStatementQuery":
            return PreparedQuery(found.prepared_statement_handle)
        case "TicketStatementQuery":
            return StatementTicket(found.statement_handle)
        case "CommandGetCatalogs":
            return GetCatalogs()
        case "CommandGetDbSchemas":
            pattern = _optional(found, "db_schema_filter_pattern")
            return GetSchemas(_optional(found, "catalog"), pattern)
        case "CommandGetTables":
            return GetTables(
                catalog=_optional(found, "catalog"),
                schema_pattern=_optional(found, "db_schema_filter_pattern"),
                table_pattern=_optional(found, "table_name_filter_pattern"),
                types=tuple(found.table_types),
                include_schema=found.include_schema,
            )
        case "CommandGetTableTypes":
            return GetTableTypes()
        case "CommandGetSqlInfo":
            return GetSqlInfo(tuple(found.info))
        case "CommandGetXdbcTypeInfo":
            return GetTypeInfo(_optional(found, "data_type"))
        case "CommandGetPrimaryKeys":
            return GetKeys(primary=True)
        case "CommandGetExportedKeys" | "CommandGetImportedKeys" | "CommandGetCrossReference":
            return GetKeys(primary=False)
    raise MessageError(f"{name} is not something that this server does")


def checked_sql(sql: str) -> str:
    """Return a text unless it is too long.

    Raises:
        MessageError: It is.
    """
    if len(sql) > _MAX_SQL:
        raise MessageError(
            f"the SQL has {len(sql):,} characters; this server takes {_MAX_SQL:,} at most"
        )
    return sql


def _optional(found: Any, name: str) -> Any:
    return getattr(found, name) if found.HasField(name) else None
