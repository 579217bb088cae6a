"""Who a client is: a bearer token, or a name with its token as the password.

    Authorization: Bearer TOKEN
    Authorization: Basic base64(NAME:TOKEN)    also in a handshake, which answers with the bearer

Every call is checked by a middleware, so no method of the server can be reached without. The
handshake of Flight itself has nothing to do then.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.flight as fl

from stagecoach.flight.tokens import TokenFile

MIDDLEWARE = "stagecoach-user"
ANONYMOUS = "anonymous"
_HEADER = "authorization"

Headers = Mapping[str, Sequence[Any]]


class User(fl.ServerMiddleware):
    """The client of one call.

    Args:
        name: Its name.
        bearer: What a client that gave a password may send from now on; None for nothing.
        headers: Further headers of the call.
    """

    def __init__(self, name: str, bearer: str | None, headers: Headers) -> None:
        self.name = name
        self.headers = headers
        self._bearer = bearer

    def sending_headers(self) -> dict[str, str]:
        """Return the headers of the answer."""
        return {} if self._bearer is None else {_HEADER: f"Bearer {self._bearer}"}


class UserFactory(fl.ServerMiddlewareFactory):
    """Finds out who calls, and refuses who is not known.

    Args:
        tokens: Who is known; None where everybody may call.
        user_header: Header in which a proxy says who the user is; None for none.
    """

    def __init__(self, tokens: TokenFile | None, user_header: str | None = None) -> None:
        self._tokens = tokens
        self._user_header = user_header.lower() if user_header else None

    def start_call(self, info: fl.CallInfo, headers: Headers) -> User:
        """Return the client of a call.

        Raises:
            fl.FlightUnauthenticatedError: It has no valid token.
        """
        named = {name.lower(): values for name, values in headers.items()}
        if self._tokens is None:
            return User(self._proxied(named) or ANONYMOUS, None, named)
        scheme, _, given = _one(named, _HEADER).partition(" ")
        claimed = None
        if scheme.lower() == "basic":
            claimed, given = _basic(given)
        elif scheme.lower() != "bearer":
            given = ""
        name = self._tokens.user(given.strip()) if given else None
        if name is None or claimed not in (None, name):
            raise fl.FlightUnauthenticatedError(
                "this server needs a token: Authorization: Bearer TOKEN, or a name with its token "
                "as the password"
            )
        bearer = given if claimed is not None else None
        return User(self._proxied(named) or name, bearer, named)

    def _proxied(self, named: Headers) -> str | None:
        return _one(named, self._user_header)[:100] if self._user_header else None


class Handshake(fl.ServerAuthHandler):
    """Flight's own handshake, which leaves everything to the middleware."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        """Say nothing: the middleware has checked the call and answers with the bearer."""

    def is_valid(self, token: bytes) -> bytes:
        """Return no name: the middleware knows it."""
        return b""


def user_of(context: fl.ServerCallContext) -> User:
    """Return the client of a call."""
    found = context.get_middleware(MIDDLEWARE)
    assert isinstance(found, User)
    return found


def _one(headers: Headers, name: str) -> str:
    values = headers.get(name, ())
    if len(values) != 1:
        return ""
    value = values[0]
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _basic(given: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(given + "=" * (-len(given) % 4), validate=False).decode()
    except (binascii.Error, ValueError):
        return "", ""
    name, _, password = text.partition(":")
    return name, password
