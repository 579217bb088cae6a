"""Errors of the server, and the form in which clients get all errors.

A gRPC status carries its text in a header, whose size clients bound to 8 KB, so long texts are cut.
What is no fault of the client's is logged with its traceback and told without it.
"""

from __future__ import annotations

import logging

import grpc
import pyarrow as pa

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


class NotKnownError(ServeError):
    """Nobody knows who the client is."""


Status = tuple[grpc.StatusCode, str]
"""What gRPC tells of a call that failed."""


def status_of(error: BaseException) -> Status:
    """Return what a client is told of an error."""
    text = _text(error)
    match error:
        case StatementTimeoutError():
            return grpc.StatusCode.DEADLINE_EXCEEDED, text
        case StatementCancelledError() | KeyboardInterrupt():
            return grpc.StatusCode.CANCELLED, text
        case NotAllowedError():
            return grpc.StatusCode.PERMISSION_DENIED, text
        case NotKnownError():
            return grpc.StatusCode.UNAUTHENTICATED, text
        case NotFoundError():
            return grpc.StatusCode.NOT_FOUND, text
        case NotImplementedError():
            return grpc.StatusCode.UNIMPLEMENTED, text
        case StagecoachError() if error.retryable:
            return grpc.StatusCode.UNAVAILABLE, text
        case StagecoachError() | MessageError() | pa.ArrowInvalid():
            return grpc.StatusCode.INVALID_ARGUMENT, text
    log.error("a request failed inside of the server", exc_info=error)
    what = f"internal error ({type(error).__name__}); the server's log says more"
    return grpc.StatusCode.INTERNAL, what


def _text(error: BaseException) -> str:
    line = getattr(error, "line", None)
    column = getattr(error, "column", None)
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    if line is not None:
        message = f"line {line}:{column or 1}: {message}"
    text = secrets.redact(message)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
