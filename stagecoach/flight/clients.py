"""What clients can read.

Results are stored as compressed IPC messages, which are best passed on as they are. The format
allows that, but not all libraries read it: those of Java in the JDBC driver, of JavaScript and of
C# do not, and that of Rust only if it was built so. So a client gets them if it says so or is known
to read them, by the name of its gRPC library: Arrow's C++ (also Python, R, Ruby) and Go (also ADBC
in every language).
"""

from __future__ import annotations

from stagecoach.flight.auth import Headers, one_value
from stagecoach.flight.errors import NotAllowedError

COMPRESSION_HEADER = "stagecoach-compression"
"""Header in which a client says what it reads: `stored` or `none`."""

_AGENT_HEADER = "user-agent"
_READERS = ("grpc-c++/", "grpc-go/")


def takes_compressed(headers: Headers) -> bool:
    """Return whether a client reads compressed messages.

    Args:
        headers: Of its call.

    Raises:
        NotAllowedError: It asks for something else.
    """
    match one_value(headers, COMPRESSION_HEADER):
        case "":
            agent = one_value(headers, _AGENT_HEADER)
            return any(name in agent for name in _READERS)
        case "stored":
            return True
        case "none":
            return False
        case other:
            raise NotAllowedError(
                f"the header {COMPRESSION_HEADER} is {other[:64]!r}; it may be 'stored' or 'none'"
            )
