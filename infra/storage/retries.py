"""Decides which failures of a store pass by themselves, and how long to wait.

Worker code. Passing: time-outs, connections that are refused, reset or cut short, throttling (503
`SlowDown`, 429) and the server's own errors (5xx). Everything else fails at once: access denied, a
bucket that does not exist, credentials that are missing or wrong, a host name that nobody knows.
"""

from __future__ import annotations

import errno
import http.client
import logging
import random
import socket
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

FIRST_WAIT_SECONDS = 0.1
MAX_WAIT_SECONDS = 5.0

_PASSING_CODES = frozenset(
    (
        "InternalError",
        "OperationAborted",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "TooManyRequestsException",
    )
)
_PASSING_ERRNOS = frozenset(
    (
        errno.EAGAIN,
        errno.EBUSY,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.EREMOTEIO,
        errno.ETIMEDOUT,
    )
)
# By name: neither botocore nor aiohttp need be installed, and a class of theirs that is renamed
# must cost a retry, not the import of this module.
_PASSING_CLASSES = frozenset(
    (
        "BadHttpMessage",  # of aiohttp: the rest of an earlier body, say, taken for an answer
        "ClientConnectionError",
        "ClientPayloadError",
        "EOFError",  # of SSH: the server ended the connection
        "FSTimeoutError",
        "HTTPClientError",
        "IncompleteReadError",
        "ResponseParserError",
        "ServerTimeoutError",
    )
)
_FINAL_CLASSES = frozenset(("SSLError", "ClientSSLError", "ClientConnectorDNSError"))


class ShortBodyError(ConnectionError):
    """A response has fewer bytes than the object has in the range that was asked for."""


class NoAnswerError(ConnectionError):
    """No answer to a request came before the deadline; has the name of the request."""


class SlowAnswerError(ConnectionError):
    """An answer came, but too slowly to wait for; has the name of the request."""


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    for cause in causes(error):
        if isinstance(cause, socket.gaierror) or _FINAL_CLASSES & _class_names(cause):
            return False
    return any(_passes(cause) for cause in causes(error))


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised for, outermost first."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def answer_of(error: BaseException) -> tuple[str, int]:
    """S3's code (or "") and the HTTP status with which a server refused a request; 0 for none."""
    for cause in causes(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            code = str(response.get("Error", {}).get("Code", ""))
            return code, int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        # aiohttp has it in the error, requests and httpx in its response.
        status = getattr(cause, "status", None) or getattr(response, "status_code", None)
        if isinstance(status, int):
            return "", status
    return "", 0


def is_precondition_failure(error: BaseException) -> bool:
    """Whether S3 answered 412 (a condition of the request fails) or 409 (a racing write)."""
    response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    code = str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""
    return code in ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")


def wait_seconds(attempt: int) -> float:
    """How long to wait after the try with this number, from 0: doubled each time, with jitter."""
    bound = min(FIRST_WAIT_SECONDS * 2.0**attempt, MAX_WAIT_SECONDS)
    return bound * random.uniform(0.5, 1.0)


def retrying(function: Callable[[], _T], bound_seconds: float, what: Callable[[], str]) -> _T:
    """Call a function that has no retries of its own until it succeeds or the bound is reached.

    Args:
        function: A request that may be made twice.
        bound_seconds: No try begins later than that after the first.
        what: Names the request for the log, without secrets.
    """
    deadline = time.monotonic() + bound_seconds
    attempt = 0
    while True:
        try:
            return function()
        except Exception as error:
            wait = wait_seconds(attempt)
            if not is_passing(error) or time.monotonic() + wait > deadline:
                raise
            attempt += 1
            logger.info("try %d of %s failed (%s)", attempt, what(), type(error).__name__)
            time.sleep(wait)


def _passes(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError | http.client.HTTPException):
        return True
    code, status = answer_of(error)
    if status or code:
        return status >= 500 or status in (408, 429) or code in _PASSING_CODES
    if isinstance(error, OSError) and error.errno in _PASSING_ERRNOS:
        return True
    return bool(_PASSING_CLASSES & _class_names(error))


def _class_names(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}
