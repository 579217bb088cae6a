"""The exceptions of PEP 249, and which of them stands for an error of Stagecoach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from stagecoach.api.errors import QueryCancelledError, SessionClosedError
from stagecoach.infra import errors as infra
from stagecoach.planner import errors as planner
from stagecoach.planner.errors import StagecoachError


class Warning(Exception):
    """Something to note; never raised."""


class Error(StagecoachError):
    """Root of the errors; `__cause__` is the error of Stagecoach, with its place in the SQL."""


class InterfaceError(Error):
    """The interface is used wrongly, such as a cursor that is closed."""


class DatabaseError(Error):
    """A query failed."""


class DataError(DatabaseError):
    """The data made it fail, such as a division by zero."""


class OperationalError(DatabaseError):
    """Storage, Spark or an executor made it fail, or it was cancelled."""


class IntegrityError(DatabaseError):
    """Never raised: queries only read."""


class InternalError(DatabaseError):
    """A bug in Stagecoach."""


class ProgrammingError(DatabaseError):
    """The SQL, a parameter, an option or the catalog is wrong."""


class NotSupportedError(DatabaseError):
    """The SQL or a method is not supported."""


_SQLSTATE = re.compile(r"SQLSTATE: (\w\w)\w{3}")
_BY_STATE = {"22": DataError, "42": ProgrammingError}
# The first that fits.
_BY_KIND: tuple[tuple[type[StagecoachError], type[Error]], ...] = (
    (SessionClosedError, InterfaceError),
    (planner.ForbiddenSqlError, NotSupportedError),
    (planner.UnsupportedSqlError, NotSupportedError),
    (planner.SqlError, ProgrammingError),
    (planner.ParameterError, ProgrammingError),
    (planner.OptionError, ProgrammingError),
    (planner.CatalogError, ProgrammingError),
    (planner.InternalPlanError, InternalError),
    (planner.PlanningTimeoutError, OperationalError),
    (QueryCancelledError, OperationalError),
    (infra.ConfigError, OperationalError),
    (infra.StorageError, OperationalError),
    (infra.ShuffleReadError, OperationalError),
    (infra.TaskFailedError, OperationalError),
    (infra.InputLostError, OperationalError),
)


@contextmanager
def told_as_pep_249() -> Iterator[None]:
    """Raise the errors of the block as those of PEP 249, caused by the first ones."""
    try:
        yield
    except Error:
        raise
    except StagecoachError as error:
        raise _class_of(error)(str(error)) from error


def _class_of(error: StagecoachError) -> type[Error]:
    if isinstance(error, infra.QueryFailedError):
        state = _SQLSTATE.search(str(error))
        return _BY_STATE.get(state[1], DatabaseError) if state else DatabaseError
    if type(error).__name__ == "FrontMatterError":
        return ProgrammingError
    return next((told for kind, told in _BY_KIND if isinstance(error, kind)), DatabaseError)
