"""Names of tables at a version: what `t VERSION AS OF 3` is called in plans and snapshots.

A table at a version is a table of its own to planning and runs, with a name that no table of a
catalog can have: `t@version=3`. Only catalogs look into it. The value is encoded, so that it
survives where names are compared in lower case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_STAGED = re.compile(r"(.+)@(staged(?:-[0-9a-f]+)?)", re.IGNORECASE)
_FORM = re.compile(r"([^@]+)@(version|timestamp)=([a-z0-9_~-]*)", re.IGNORECASE)
_PLAIN = re.compile(rb"[a-z0-9_-]")
_ESCAPED = re.compile(r"~([0-9a-f]{2})")

VersionKind = Literal["version", "timestamp"]


@dataclass(frozen=True)
class TableVersion:
    """Which version of a table is meant.

    Args:
        kind: By what it is told.
        value: Number, branch or tag of a version, or a moment, as the query spells it.
    """

    kind: VersionKind
    value: str

    def __str__(self) -> str:
        return f"{self.kind.upper()} AS OF '{self.value}'"


def versioned_name(table: str, version: TableVersion) -> str:
    """Return the name of a table at a version."""
    encoded = "".join(
        chr(byte) if _PLAIN.fullmatch(bytes([byte])) else f"~{byte:02x}"
        for byte in version.value.encode()
    )
    return f"{table}@{version.kind}={encoded}"


def plain_name(name: str) -> str:
    """Return the name of a table as plans have it; `t@staged` is `t` at the version `staged`.

    >>> plain_name("t@staged")
    't@version=staged'
    """
    found = _STAGED.fullmatch(name)
    return name if found is None else versioned_name(found[1], TableVersion("version", found[2]))


def split_name(name: str) -> tuple[str, TableVersion | None]:
    """Return a table's own name, and the version that a name means; None for the newest.

    >>> split_name(versioned_name("t", TableVersion("version", "Main")))
    ('t', TableVersion(kind='version', value='Main'))
    """
    found = _FORM.fullmatch(name)
    if found is None:
        return name, None
    table, kind, encoded = found.groups()
    raw = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), encoded.lower())
    value = raw.encode("latin-1").decode()
    return table, TableVersion("version" if kind.lower() == "version" else "timestamp", value)
