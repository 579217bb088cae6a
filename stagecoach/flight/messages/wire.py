"""Message classes of Flight SQL and of Flight's own actions, made from their field numbers.

Source: `format/FlightSql.proto` and `format/Flight.proto` of apache/arrow. The classes are in a
descriptor pool of their own, so generated code of another package in the same process does no harm.
Fields that nobody here reads are left out; protobuf keeps them as unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

SQL = "arrow.flight.protocol.sql"
FLIGHT = "arrow.flight.protocol"
_URL = "type.googleapis.com/"
_FIELD = re.compile(r"(?:(optional|repeated) )?(\w+) (\w+) = (\d+)")

_SQL_MESSAGES: Mapping[str, tuple[str, ...]] = {
    "CommandGetSqlInfo": ("repeated uint32 info = 1",),
    "CommandGetXdbcTypeInfo": ("optional int32 data_type = 1",),
    "CommandGetCatalogs": (),
    "CommandGetDbSchemas": (
        "optional string catalog = 1",
        "optional string db_schema_filter_pattern = 2",
    ),
    "CommandGetTables": (
        "optional string catalog = 1",
        "optional string db_schema_filter_pattern = 2",
        "optional string table_name_filter_pattern = 3",
        "repeated string table_types = 4",
        "bool include_schema = 5",
    ),
    "CommandGetTableTypes": (),
    "CommandGetPrimaryKeys": (),
    "CommandGetExportedKeys": (),
    "CommandGetImportedKeys": (),
    "CommandGetCrossReference": (),
    "CommandStatementQuery": ("string query = 1", "optional bytes transaction_id = 2"),
    "CommandPreparedStatementQuery": ("bytes prepared_statement_handle = 1",),
    "CommandStatementUpdate": ("string query = 1",),
    "CommandPreparedStatementUpdate": ("bytes prepared_statement_handle = 1",),
    "CommandStatementIngest": ("string table = 2",),
    "CommandStatementSubstraitPlan": (),
    "TicketStatementQuery": ("bytes statement_handle = 1",),
    "ActionCreatePreparedStatementRequest": (
        "string query = 1",
        "optional bytes transaction_id = 2",
    ),
    "ActionCreatePreparedStatementResult": (
        "bytes prepared_statement_handle = 1",
        "bytes dataset_schema = 2",
        "bytes parameter_schema = 3",
        "optional bool is_update = 4",
    ),
    "ActionClosePreparedStatementRequest": ("bytes prepared_statement_handle = 1",),
    "ActionCancelQueryRequest": ("bytes info = 1",),
    "ActionCancelQueryResult": ("int32 result = 1",),
    "DoPutPreparedStatementResult": ("optional bytes prepared_statement_handle = 1",),
}
# An enum is an int32 on the wire, and a message that is passed on as it is has the form of bytes.
_FLIGHT_MESSAGES: Mapping[str, tuple[str, ...]] = {
    "CancelFlightInfoRequest": ("bytes info = 1",),
    "CancelFlightInfoResult": ("int32 status = 1",),
    "RenewFlightEndpointRequest": ("bytes endpoint = 1",),
    "FlightDescriptor": ("int32 type = 1", "bytes cmd = 2"),
    "Ticket": ("bytes ticket = 1",),
    "Action": ("string type = 1", "bytes body = 2"),
    "ActionType": ("string type = 1", "string description = 2"),
    "Result": ("bytes body = 1",),
    "HandshakeResponse": ("uint64 protocol_version = 1",),
    "PutResult": ("bytes app_metadata = 1",),
    # Of what a client sends; what it gets is made by `flight_data`.
    "FlightData": (
        "bytes flight_descriptor = 1",
        "bytes data_header = 2",
        "bytes app_metadata = 3",
        "bytes data_body = 1000",
    ),
}
_TYPES = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
}


class MessageError(ValueError):
    """Bytes are not a message of Flight SQL that the server knows."""


def _file(package: str, messages: Mapping[str, tuple[str, ...]]) -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"stagecoach/{package}.proto", package=package, syntax="proto3"
    )
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields:
            match = _FIELD.fullmatch(text)
            assert match is not None, text
            rule, kind, field_name, number = match.groups()
            field = message.field.add(name=field_name, number=int(number), type=_TYPES[kind])
            is_repeated = rule == "repeated"
            field.label = field.LABEL_REPEATED if is_repeated else field.LABEL_OPTIONAL
            if rule == "optional":  # has presence, which proto3 writes as a oneof of one field
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field_name}")
    return file


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    found: dict[str, Any] = {}
    for package, messages in ((SQL, _SQL_MESSAGES), (FLIGHT, _FLIGHT_MESSAGES)):
        pool.Add(_file(package, messages))
        for name in messages:
            descriptor = pool.FindMessageTypeByName(f"{package}.{name}")
            found[name] = message_factory.GetMessageClass(descriptor)
    return found


_CLASSES = _classes()


def message(name: str, **fields: object) -> Any:
    """Return a new message of that name."""
    return _CLASSES[name](**fields)


def parse(name: str, content: bytes) -> Any:
    """Return the message of that name with this content.

    Raises:
        MessageError: The content is not such a message.
    """
    try:
        return _CLASSES[name].FromString(content)
    except DecodeError as error:
        raise MessageError(f"the bytes are not a message {name}") from error


def pack(found: Any) -> bytes:
    """Return a message of Flight SQL wrapped in an `Any`, as commands and results are sent."""
    name = _URL + found.DESCRIPTOR.full_name
    content: bytes = any_pb2.Any(type_url=name, value=found.SerializeToString()).SerializeToString()
    return content


def unpack(content: bytes) -> tuple[str, Any]:
    """Return the name and the message that an `Any` holds.

    Raises:
        MessageError: The content is not an `Any`, or not of a message of Flight SQL that is known.
    """
    try:
        wrapped = any_pb2.Any.FromString(content)
    except DecodeError as error:
        raise MessageError("the bytes are not a command of Flight SQL") from error
    package, _, name = wrapped.type_url.removeprefix(_URL).rpartition(".")
    if package != SQL or name not in _SQL_MESSAGES:
        shown = wrapped.type_url[:100] or "an empty type"
        raise MessageError(f"{shown} is not a message of Flight SQL that this server knows")
    return name, parse(name, wrapped.value)
