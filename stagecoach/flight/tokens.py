"""The file of tokens that let users in.

A line for each token: a user's name and the SHA-256 of the token. Tokens are random, so a plain
hash is enough: nobody finds 256 random bits by trying. The file holds no secret, and a new token is
a new line. It is read again when it has changed.

    # made by: stagecoach serve --new-token alice --tokens tokens.txt
    alice sha256:6ab3…
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
from pathlib import Path

from stagecoach.flight.errors import ServeError

_LINE = re.compile(r"([A-Za-z0-9._@+-]{1,100})\s+sha256:([0-9a-f]{64})")
_PREFIX = "sc_"


class TokenFileError(ServeError):
    """The file of tokens cannot be used."""


class TokenFile:
    """Who has which token.

    Args:
        path: The file.

    Raises:
        TokenFileError: It cannot be read, or has no token.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._users: dict[bytes, str] = {}
        self._read()

    def user(self, token: str) -> str | None:
        """Return whose token it is; None if it is nobody's."""
        self._read()
        digest = hashlib.sha256(token.encode(errors="replace")).digest()
        found = None
        # All of them are compared, so that the time does not tell which one is close.
        for known, name in self._users.items():
            if hmac.compare_digest(known, digest):
                found = name
        return found

    def _read(self) -> None:
        try:
            state = os.stat(self._path)
        except OSError as error:
            raise TokenFileError(f"{self._path}: {error.strerror}") from error
        stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
        with self._lock:
            if stamp != self._stamp:
                self._users = parse_tokens(self._path.read_text(encoding="utf-8"), str(self._path))
                self._stamp = stamp


def parse_tokens(text: str, origin: str) -> dict[bytes, str]:
    """Return users by the hash of their tokens.

    Args:
        text: The file's content.
        origin: Its name, for messages.

    Raises:
        TokenFileError: A line is not valid, or there is none.
    """
    found: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            # Without the line: it may be a token that somebody put there by mistake.
            raise TokenFileError(
                f"{origin}, line {number} is not 'NAME sha256:HASH'; "
                f"make one with: stagecoach serve --tokens {origin} --new-token NAME"
            )
        found[bytes.fromhex(match[2])] = match[1]
    if not found:
        raise TokenFileError(
            f"{origin} has no tokens; make one with: "
            f"stagecoach serve --tokens {origin} --new-token NAME"
        )
    return found


def add_token(path: Path, user: str) -> str:
    """Add a new token of a user to a file, which is made if it is missing; return the token.

    Raises:
        TokenFileError: The name is not valid, or the file cannot be written.
    """
    token = _PREFIX + secrets.token_urlsafe(32)
    line = f"{user} sha256:{hashlib.sha256(token.encode()).hexdigest()}"
    if not _LINE.fullmatch(line):
        raise TokenFileError(f"{user!r} is not a valid name; use letters, digits and ._@+-")
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        end = "" if not before or before.endswith("\n") else "\n"
        with open(path, "a", encoding="utf-8", opener=_private) as file:
            file.write(f"{end}{line}\n")
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror}") from error
    return token


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
