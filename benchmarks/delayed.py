"""Relay connections to a server and delay them, to measure what latency costs.

    python -m benchmarks.delayed --to 127.0.0.1:9000 --milliseconds 30

Each round trip takes that much longer, including the one that opens a connection. The bandwidth
stays as it is. The relay is a process of its own, so that it does not slow down its clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from urllib.parse import urlsplit

import click

_HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 18
_CHUNKS_UNDER_WAY = 256  # of a connection in each direction: what a wide network holds


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

    def __enter__(self) -> DelayedServer:
        command = [sys.executable, "-m", "benchmarks.delayed", "--to", self._target]
        command += ["--milliseconds", str(self._milliseconds)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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
            if self._process.stdout is not None:
                self._process.stdout.close()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
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

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)  # the handshake is a round trip as well
        try:
            there, back = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            _pass_on(reader, back, seconds / 2), _pass_on(there, writer, seconds / 2)
        )

    server = await asyncio.start_server(accept, _HOST, 0)
    click.echo(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


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
