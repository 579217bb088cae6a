"""Connections: sessions, as PEP 249 has them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from stagecoach.api.session import DEFAULT_CATALOG
from stagecoach.api.session import connect as open_session
from stagecoach.dbapi import exceptions
from stagecoach.dbapi.cursor import Cursor
from stagecoach.dbapi.exceptions import InterfaceError, told_as_pep_249

if TYPE_CHECKING:
    from stagecoach.api.session import Session


def connect(
    catalog: str | os.PathLike[str] = DEFAULT_CATALOG,
    storage: str | os.PathLike[str] | None = None,
    *,
    settings: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
) -> Connection:
    """Return a connection over the tables of a catalog; nothing is started yet.

    Args:
        catalog: The catalog file.
        storage: Folder or URL of shuffles and results.
        settings: Values of settings, as of `stagecoach.connect`.
        options: Values of planner options, likewise.

    Raises:
        ProgrammingError: The catalog or an option is wrong.
        OperationalError: A setting is wrong.
    """
    with told_as_pep_249():
        return Connection(open_session(catalog, storage, settings=settings, options=options))


class Connection:
    """A connection of PEP 249.

    Args:
        session: Runs the queries; it is closed with the connection.
    """

    Warning: ClassVar = exceptions.Warning
    Error: ClassVar = exceptions.Error
    InterfaceError: ClassVar = exceptions.InterfaceError
    DatabaseError: ClassVar = exceptions.DatabaseError
    DataError: ClassVar = exceptions.DataError
    OperationalError: ClassVar = exceptions.OperationalError
    IntegrityError: ClassVar = exceptions.IntegrityError
    InternalError: ClassVar = exceptions.InternalError
    ProgrammingError: ClassVar = exceptions.ProgrammingError
    NotSupportedError: ClassVar = exceptions.NotSupportedError

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()
        self._is_closed = False

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def session(self) -> Session:
        """The session, which can do more than PEP 249 knows."""
        return self._session

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        self._check_open()
        cursor = Cursor(self, self._session)
        self._cursors.add(cursor)
        return cursor

    def commit(self) -> None:
        """Do nothing: queries only read."""
        self._check_open()

    def rollback(self) -> None:
        """Do nothing: queries only read."""
        self._check_open()

    def close(self) -> None:
        """Cancel what runs, close the cursors and end Spark."""
        if self._is_closed:
            return
        self._is_closed = True
        for cursor in list(self._cursors):
            cursor.cancel()
            cursor.close()
        self._session.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("the connection is closed; open another one")
