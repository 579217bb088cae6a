"""Relay connections to a server and delay them, to measure what latency costs.

    python -m benchmarks.delayed --to 127.0.0.1:9000 --milliseconds 30

Each round trip takes that much longer, including the one that opens a connection. The bandwidth
stays as it is. The relay is a process of its own, so that it does not slow down its clients. For
each line of its input it prints what went through it so far.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

import click

_HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 18
_METHODS = (b"GET ", b"HEAD ", b"PUT ", b"POST ", b"DELETE ")
_CHUNKS_UNDER_WAY = 256  # of a connection in each direction: what a wide network holds


class Traffic(NamedTuple):
    """What went through a relay.

    Args:
        requests: HTTP requests.
        sent_bytes: To the server, with headers.
        received_bytes: From the server, with headers.
    """

    requests: int
    sent_bytes: int
    received_bytes: int

    def since(self, earlier: Traffic) -> Traffic:
        """What came after that."""
        return Traffic(*(now - then for now, then in zip(self, earlier, strict=True)))


class DelayedServer:
    """A relay to a server, in a process; also a context that starts and stops it.

    Args:
        url: The server's address, `http://host:port`.
        milliseconds: How much longer each round trip takes.
    """

    def __init__(self, url: str, milliseconds: float) -> None:
        self._target = urlsplit(url).netloc
        self._milliseconds = milliseconds
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{_HOST}:{self._port}"

    def traffic(self) -> Traffic:
        """What went through it so far."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Traffic(*map(int, self._process.stdout.readline().split()))

    def __enter__(self) -> DelayedServer:
        command = [sys.executable, "-m", "benchmarks.delayed", "--to", self._target]
        command += ["--milliseconds", str(self._milliseconds)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if not said.isdigit():
            raise RuntimeError("the relay to the S3 server did not start")
        self._port = int(said)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()


class _Counts:
    """What goes through all connections.

    A chunk that begins with a method is a request: a client waits for the answer to one before it
    sends the next.
    """

    def __init__(self) -> None:
        self._requests = 0
        self._sent = 0
        self._received = 0

    def see_sent(self, chunk: bytes) -> None:
        self._requests += chunk.startswith(_METHODS)
        self._sent += len(chunk)

    def see_received(self, chunk: bytes) -> None:
        self._received += len(chunk)

    async def tell(self) -> None:
        """Print them for each line of input."""
        while await asyncio.to_thread(sys.stdin.readline):
            click.echo(f"{self._requests} {self._sent} {self._received}")


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    seconds: float,
    see: Callable[[bytes], None],
) -> None:
    """Write what is read, each piece so many seconds after it came."""
    clock = asyncio.get_running_loop().time
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS_UNDER_WAY)

    async def take() -> None:
        chunk = b"first"
        while chunk:
            try:
                chunk = await reader.read(_CHUNK_BYTES)
            except ConnectionError:
                chunk = b""
            see(chunk)
            await under_way.put((clock() + seconds, chunk))

    taking = asyncio.create_task(take())
    try:
        while True:
            due, chunk = await under_way.get()
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass  # the other side is told by the end of its connection
    finally:
        taking.cancel()
        writer.close()


async def serve(host: str, port: int, seconds: float) -> None:
    """Print the port that clients connect to, and relay connections until the process ends.

    Args:
        host: Of the server.
        port: Of the server.
        seconds: How much longer a round trip takes.
    """

    counts = _Counts()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)  # the handshake is a round trip as well
        try:
            there, back = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            _pass_on(reader, back, seconds / 2, counts.see_sent),
            _pass_on(there, writer, seconds / 2, counts.see_received),
        )

    server = await asyncio.start_server(accept, _HOST, 0)
    click.echo(server.sockets[0].getsockname()[1])
    async with server:
        await asyncio.gather(server.serve_forever(), counts.tell())


@click.command(context_settings={"show_default": True})
@click.option("--to", "target", required=True, metavar="HOST:PORT", help="The server.")
@click.option("--milliseconds", default=30.0, help="How much longer a round trip takes.")
def main(target: str, milliseconds: float) -> None:
    """Relay connections to a server that is further away."""
    host, _, number = target.rpartition(":")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(host, int(number), milliseconds / 1000))


if __name__ == "__main__":
    main()
