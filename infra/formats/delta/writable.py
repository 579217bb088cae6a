"""What a Delta table asks of its writers, and whether results can be written so.

deltalake commits whatever files it is given, so what a table promises of its rows is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.publishing import PublishError

if TYPE_CHECKING:
    from deltalake import DeltaTable

SUPPORTED_FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
    }
)
"""Features that a table may have; whether it uses them is looked at one by one."""
_NEWEST_PROTOCOL = 7
_IN_COLUMNS = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
}


def check_writable(
    name: str, table: DeltaTable, schema: Mapping[str, Any], *, removes: bool
) -> None:
    """Look whether results can be written to a table.

    Args:
        name: Name of the table, for messages.
        table: It.
        schema: Its schema, as the log has it.
        removes: Whether files are removed, too.

    Raises:
        PublishError: The table uses a writer feature that is not supported.
    """
    protocol, configuration = table.protocol(), table.metadata().configuration
    if protocol.min_writer_version > _NEWEST_PROTOCOL:
        raise PublishError(
            f"table '{name}' is of writer version {protocol.min_writer_version} of the Delta "
            f"protocol; versions up to {_NEWEST_PROTOCOL} are written: publish to another table"
        )
    unknown = sorted(set(protocol.writer_features or ()) - SUPPORTED_FEATURES)
    used = [*unknown, *_used(configuration, schema["fields"], removes=removes)]
    if used:
        names = ", ".join(f"'{feature}'" for feature in dict.fromkeys(used))
        raise PublishError(
            f"table '{name}' uses the Delta writer feature {names}, which is not supported when "
            "results are published; drop it from the table, or publish to another table"
        )
    if removes and _is_true(configuration, "delta.appendOnly"):
        raise PublishError(
            f"table '{name}' only takes more rows (delta.appendOnly); use mode append, or publish "
            "to another table"
        )


def _used(
    configuration: Mapping[str, str], fields: Sequence[Mapping[str, Any]], *, removes: bool
) -> list[str]:
    """Features that a table uses and that are not supported, whatever its protocol lists."""
    found = []
    if any(key.startswith("delta.constraints.") for key in configuration):
        found.append("checkConstraints")
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        found.append("columnMapping")
    if removes and _is_true(configuration, "delta.enableChangeDataFeed"):
        found.append("changeDataFeed")
    if _is_true(configuration, "delta.enableRowTracking"):
        found.append("rowTracking")
    if _is_true(configuration, "delta.enableInCommitTimestamps"):
        found.append("inCommitTimestamp")
    found += [
        feature for key, feature in _IN_COLUMNS.items() if any(_has(field, key) for field in fields)
    ]
    return found


def _has(field: Mapping[str, Any], key: str) -> bool:
    """Whether the metadata of a field or of a member has a key."""
    if key in field.get("metadata", {}):
        return True
    kind = field["type"]
    return isinstance(kind, dict) and any(_has(f, key) for f in kind.get("fields", ()))


def _is_true(configuration: Mapping[str, str], key: str) -> bool:
    return str(configuration.get(key, "")).lower() == "true"
