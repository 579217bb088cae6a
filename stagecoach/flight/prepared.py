"""Prepared statements: texts that clients name by a handle, with the values they have bound.

Their number is bounded. A client that does not close its statements loses the oldest of them.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stagecoach.flight.errors import NotFoundError

if TYPE_CHECKING:
    from stagecoach.api.parameters import ParameterValue

_HANDLE_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class PreparedStatement:
    """A prepared statement.

    Args:
        user: Whose it is.
        sql: Its text.
        parameters: Names of its parameters, in the order of the text.
        values: What the client has bound.
    """

    user: str
    sql: str
    parameters: tuple[str, ...] = ()
    values: Mapping[str, ParameterValue] = field(default_factory=dict)


class PreparedStatements:
    """The prepared statements of a server.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._statements: OrderedDict[bytes, PreparedStatement] = OrderedDict()

    def __len__(self) -> int:
        return len(self._statements)

    def add(self, statement: PreparedStatement) -> bytes:
        """Keep a statement and return its handle."""
        handle = secrets.token_bytes(_HANDLE_BYTES)
        with self._lock:
            self._statements[handle] = statement
            while len(self._statements) > self._most:
                self._statements.popitem(last=False)
        return handle

    def get(self, handle: bytes, user: str) -> PreparedStatement:
        """Return a statement of a user.

        Raises:
            NotFoundError: The user has no such statement, or not any more.
        """
        with self._lock:
            found = self._statements.get(handle)
            if found is None or found.user != user:
                raise NotFoundError(
                    "there is no such prepared statement; it was closed, or more than "
                    f"{self._most} have been used since; prepare it again"
                )
            self._statements.move_to_end(handle)
            return found

    def bind(self, handle: bytes, user: str, values: Mapping[str, ParameterValue]) -> None:
        """Keep the values of a statement's parameters.

        Raises:
            NotFoundError: The user has no such statement.
        """
        found = self.get(handle, user)
        with self._lock:
            if handle in self._statements:
                self._statements[handle] = replace(found, values=dict(values))

    def close(self, handle: bytes, user: str) -> None:
        """Forget a statement of a user, if there is one."""
        with self._lock:
            found = self._statements.get(handle)
            if found is not None and found.user == user:
                del self._statements[handle]
