"""The start of a JVM from a process with other threads."""

from __future__ import annotations

import subprocess
import sys

# A server of gRPC with a program that stands for the JVM, started as pyspark starts it: with a
# function for the child. `Popen` alone crashes a tenth of these children.
PROGRAM = """
import os, signal, subprocess
from concurrent import futures
import grpc
from stagecoach.infra.spark.jvm import _LaunchArguments

def start(_request, _context):
    seen = []
    for _ in range(100):
        arguments = _LaunchArguments({"stderr": subprocess.PIPE})
        arguments["stdin"] = subprocess.PIPE
        arguments["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
        process = subprocess.Popen(["/bin/cat"], **arguments)
        is_leader = os.getpgid(process.pid) == process.pid
        process.communicate()
        seen.append((process.returncode, is_leader))
    return repr(set(seen)).encode()

handler = grpc.method_handlers_generic_handler(
    "test", {"start": grpc.unary_unary_rpc_method_handler(start)}
)
server = grpc.server(futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((handler,))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary("/test/start")(b"").decode())
os._exit(0)
"""


def test_a_jvm_starts_in_a_server_of_grpc() -> None:
    done = subprocess.run(
        [sys.executable, "-u", "-c", PROGRAM], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "{(0, True)}\n", done.stderr[-2000:]
