"""The shared token of the web servers.

A program sends the token itself, as `Authorization: Bearer`. A browser gets a cookie at its login.
The cookie is derived from the token, so no session is stored, every server with the same token
accepts it, and a new token ends all logins.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from stagecoach.planner.errors import StagecoachError

MIN_LENGTH = 16
"""A shorter token could be guessed: the servers do not count failed attempts."""


class TokenError(StagecoachError):
    """The shared token cannot be used."""


@dataclass(frozen=True)
class SharedToken:
    """A token that is never part of a representation or message.

    Args:
        text: What users and programs send.

    Raises:
        TokenError: It is too short, or has characters that no header may have.
    """

    text: str = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.text) < MIN_LENGTH:
            raise TokenError(
                f"the token is shorter than {MIN_LENGTH} characters; "
                "make one with: openssl rand -hex 24"
            )
        if not all("!" <= character <= "~" for character in self.text):
            raise TokenError("the token may only have printable ASCII characters, and no spaces")

    @property
    def cookie_name(self) -> str:
        """A name for each token: browsers share cookies between the ports of a host."""
        return f"stagecoach-{self._derived('name')[:12]}"

    @property
    def cookie_value(self) -> str:
        """Proof that the browser had the token; the token cannot be computed from it."""
        return self._derived("login")

    def is_token(self, given: str) -> bool:
        """Whether a text is the token, compared in constant time."""
        return _equal(given, self.text)

    def is_cookie(self, given: str) -> bool:
        """Whether a text is the value of the cookie, compared in constant time."""
        return _equal(given, self.cookie_value)

    def _derived(self, purpose: str) -> str:
        message = f"stagecoach ui {purpose}".encode()
        return hmac.new(self.text.encode(), message, hashlib.sha256).hexdigest()


def _equal(given: str, expected: str) -> bool:
    # Digests have one length, so that the time does not tell the length of the token either.
    digests = (hashlib.sha256(text.encode(errors="replace")).digest() for text in (given, expected))
    return hmac.compare_digest(*digests)
