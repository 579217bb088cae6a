"""FTP with ranged reads that end: in, what fsspec's file system takes; out, the same one, mended.

Worker code. To end a transfer early, fsspec sends ABOR and waits for two answers. Some servers give
one, and the read hangs. Here the data connection is closed, which has one answer anywhere.

A login that is refused has an error of its own: the same answer to any other command may pass.
"""

from __future__ import annotations

import ftplib
import re
from contextlib import suppress
from typing import Any

from fsspec.implementations.ftp import FTPFileSystem

_CROWDED = re.compile(r"too many|maximum|limit", re.IGNORECASE)
"""Some servers say so with the code of a wrong password; it passes."""


class FtpLoginError(Exception):
    """The server refuses this user or password (530)."""


class RangedFTPFileSystem(FTPFileSystem):
    """`FTPFileSystem` with a `cat_file` of its own for ranges."""

    def _connect(self) -> None:
        try:
            super()._connect()
        except ftplib.error_perm as error:
            if not str(error).startswith("530") or _CROWDED.search(str(error)):
                raise
            raise FtpLoginError(str(error)) from error

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **arguments: Any
    ) -> bytes:
        """Return a file or a range of it, from a `start` that is not negative.

        Raises:
            FileNotFoundError: There is no such file.
        """
        if end is None:
            whole: bytes = super().cat_file(path, start=start, **arguments)
            return whole
        begin = start or 0
        try:
            return self._range(path, begin, end - begin)
        except ftplib.error_perm:
            if begin < self.info(path)["size"]:
                raise
            return b""  # some servers refuse to begin behind the end

    def _range(self, path: str, start: int, length: int) -> bytes:
        pieces: list[bytes] = []
        left = length
        self.ftp.voidcmd("TYPE I")
        with self.ftp.transfercmd(f"RETR {path}", start or None) as connection:
            while left > 0 and (piece := connection.recv(min(left, self.blocksize))):
                pieces.append(piece)
                left -= len(piece)
        if left > 0:
            self.ftp.voidresp()  # the file ended here, or else the transfer did
        else:
            with suppress(ftplib.Error):  # 426: the connection was closed, by us
                self.ftp.voidresp()
        return b"".join(pieces)
