"""Who a client is: a bearer token, or a name with its token as the password.

    Authorization: Bearer TOKEN
    Authorization: Basic base64(NAME:TOKEN)    also in a handshake, which answers with the bearer

The server asks before it does anything of a call.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stagecoach.flight.errors import NotKnownError
from stagecoach.flight.tokens import TokenFile

ANONYMOUS = "anonymous"
AUTHORIZATION = "authorization"

Headers = Mapping[str, Sequence[str | bytes]]


@dataclass(frozen=True)
class User:
    """The client of a call.

    Args:
        name: Its name.
        bearer: What a client that gave a password may send from now on; None for nothing.
    """

    name: str
    bearer: str | None = None


class Users:
    """Finds out who calls, and refuses who is not known.

    Args:
        tokens: Who is known; None where everybody may call.
        user_header: Header in which a proxy says who the user is; None for none.
    """

    def __init__(self, tokens: TokenFile | None, user_header: str | None = None) -> None:
        self._tokens = tokens
        self._user_header = user_header.lower() if user_header else None

    def user(self, headers: Headers) -> User:
        """Return the client of a call.

        Args:
            headers: Values by names in lower case.

        Raises:
            NotKnownError: It has no valid token.
        """
        if self._tokens is None:
            return User(self._proxied(headers) or ANONYMOUS)
        scheme, _, given = one_value(headers, AUTHORIZATION).partition(" ")
        claimed = None
        if scheme.lower() == "basic":
            claimed, given = _basic(given)
        elif scheme.lower() != "bearer":
            given = ""
        name = self._tokens.user(given.strip()) if given else None
        if name is None or claimed not in (None, name):
            raise NotKnownError(
                "this server needs a token: Authorization: Bearer TOKEN, or a name with its token "
                "as the password"
            )
        return User(self._proxied(headers) or name, given if claimed is not None else None)

    def _proxied(self, headers: Headers) -> str | None:
        return one_value(headers, self._user_header)[:100] if self._user_header else None


def one_value(headers: Headers, name: str) -> str:
    """Return the value of a header; empty where it is missing or given more than once."""
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
