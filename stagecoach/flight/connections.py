"""The server's TCP connections: dead ones are noticed, stalled ones are closed.

`pyarrow.flight` has no options for that, and gRPC by itself looks for dead clients every two hours.
A call whose client reads nothing waits in gRPC, where nothing of ours can end it. So this module
finds the sockets among the descriptors of the process and does what the kernel offers: keepalive
and time limits for all of them, and an end for some. Only Linux lists descriptors; elsewhere the
limits of gRPC apply.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

_DESCRIPTORS = Path("/proc/self/fd")
_IDLE_SECONDS, _PROBE_SECONDS, _PROBES = 60, 15, 4

Peer = tuple[str, int]


class Connections:
    """The connections that a server has accepted.

    Args:
        port: The port that it listens on.
        silent_seconds: How long sent bytes may stay unacknowledged.
    """

    def __init__(self, port: int, silent_seconds: float) -> None:
        self._port = port
        self._silent_seconds = silent_seconds

    def watch(self) -> int:
        """Have the kernel look for dead clients; return how many connections there are."""
        count = 0
        for found in self._sockets():
            count += 1
            with contextlib.suppress(OSError):  # it has just ended
                found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
                limit = max(1, int(self._silent_seconds * 1000))
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
        return count

    def drop(self, connections: Collection[str]) -> int:
        """Close connections; return how many there were.

        Args:
            connections: As gRPC names their clients, such as `ipv4:127.0.0.1:50123`.
        """
        wanted = {peer for peer in map(parse_peer, connections) if peer is not None}
        count = 0
        for found in self._sockets() if wanted else ():
            with contextlib.suppress(OSError):
                if _peer(found.getpeername()) in wanted:
                    found.shutdown(socket.SHUT_RDWR)
                    count += 1
        return count

    def _sockets(self) -> Iterator[socket.socket]:
        """Yield a copy of the socket of each connection, closed afterwards."""
        try:
            names = os.listdir(_DESCRIPTORS)
        except OSError:
            return
        for name in names:
            with contextlib.suppress(OSError):  # closed meanwhile, or not a connection
                if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    continue
                # A copy: the descriptor may be closed and used for something else at any moment.
                with socket.socket(fileno=os.dup(int(name))) as found:
                    is_ours = found.family in (socket.AF_INET, socket.AF_INET6)
                    if is_ours and found.getsockname()[1] == self._port:
                        found.getpeername()  # raises for the socket that listens
                        yield found


def parse_peer(connection: str) -> Peer | None:
    """Return the address of a client that gRPC names; None for one without a port."""
    kind, _, rest = unquote(connection).partition(":")
    host, _, port = rest.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdigit():
        return None
    return _peer((host.strip("[]"), int(port)))


def _peer(address: tuple[object, ...]) -> Peer:
    """An address in one form: a client by IPv4 has another one where IPv6 listens."""
    host, port = str(address[0]).partition("%")[0], int(str(address[1]))
    found = ipaddress.ip_address(host)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).compressed, port
