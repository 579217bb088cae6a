"""Errors of the server, and the form in which clients get all errors.

A gRPC status carries its text in a header, whose size clients bound to 8 KB, so long texts are cut.
What is no fault of the client's is logged with its traceback and told without it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.flight as fl

from stagecoach.flight.messages.wire import MessageError
from stagecoach.infra.storage import secrets
from stagecoach.planner.errors import StagecoachError

log = logging.getLogger(__name__)

_MAX_TEXT = 2_000


class ServeError(StagecoachError):
    """A request to the Flight server cannot be answered."""


class BusyError(ServeError):
    """The server has as much to do as it may have; later it can answer."""

    retryable = True


class StatementTimeoutError(ServeError):
    """A statement took longer than it may."""


class StatementCancelledError(ServeError):
    """A statement was cancelled."""


class NotFoundError(ServeError):
    """A handle, ticket or statement is not known, or not any more."""


class NotAllowedError(ServeError):
    """A client may not do this."""


@contextmanager
def told_to_clients() -> Iterator[None]:
    """Turn every error of the block into one of Flight with a status of gRPC."""
    try:
        yield
    except (fl.FlightError, NotImplementedError):
        raise
    except Exception as error:  # noqa: BLE001 -- the client gets a status, and the server goes on
        raise flight_error(error) from None


def flight_error(error: BaseException) -> Exception:
    """Return what a client is told of an error."""
    text = _text(error)
    match error:
        case BusyError():
            return fl.FlightUnavailableError(text)
        case StatementTimeoutError():
            return fl.FlightTimedOutError(text)
        case StatementCancelledError() | KeyboardInterrupt():
            return fl.FlightCancelledError(text)
        case NotAllowedError():
            return fl.FlightUnauthorizedError(text)
        case StagecoachError() | MessageError() | pa.ArrowInvalid():
            # Not as ArrowInvalid, which has a better status: pyarrow adds a traceback to its text.
            return fl.FlightServerError(text)
    log.error("a request failed inside of the server", exc_info=error)
    return fl.FlightInternalError(
        f"internal error ({type(error).__name__}); the server's log says more"
    )


def _text(error: BaseException) -> str:
    line = getattr(error, "line", None)
    column = getattr(error, "column", None)
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    if line is not None:
        message = f"line {line}:{column or 1}: {message}"
    text = secrets.redact(message)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
