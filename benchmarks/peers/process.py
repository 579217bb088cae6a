"""An engine in a process and an environment of its own, as a contender."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pyarrow as pa
import sqlglot
from sqlglot import exp

from benchmarks.contenders import Sample
from benchmarks.peers.engines import Peer
from stagecoach.tpch import TABLES

_RUNNER = Path(__file__).with_name("runner.py")


class PeerError(Exception):
    """An engine failed on a query, ended, or took too long."""


class PeerProcess:
    """Runs queries on one engine.

    The process is started with the first query, and again with the next one after it was ended by
    an error from which it could not recover.

    Args:
        peer: The engine.
        environments: Folder in which its environment is made, or found.
        data: Folder with a folder for each table.
        seconds: After which a query is given up.
    """

    def __init__(self, peer: Peer, environments: Path, data: Path, seconds: float) -> None:
        self.name = peer.name
        self._peer = peer
        self._python = _environment(peer, environments)
        self._data = data
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix=f"peer-{peer.name}-")

    def run(self, name: str, sql: str) -> Sample:
        """Run a query, translated by sqlglot before the clock starts.

        Raises:
            PeerError: The engine failed, ended, or took too long.
        """
        if self._peer.dialect is not None:
            sql = _translated(sql, self._peer.dialect)
        path = os.path.join(self._folder.name, "result.arrow")
        process = self._started()
        assert process.stdin is not None
        process.stdin.write(json.dumps({"sql": sql, "result": path}) + "\n")
        process.stdin.flush()
        answer = self._answer(process)
        if "error" in answer:
            raise PeerError(answer["error"])
        with pa.memory_map(path) as source, pa.ipc.open_stream(source) as reader:
            return Sample(seconds=float(answer["seconds"]), table=reader.read_all())

    def clean_up(self) -> None:
        """Nothing is left."""

    def close(self) -> None:
        """End the process."""
        self._end()
        self._folder.cleanup()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            program = [str(self._python), "-u", str(_RUNNER)]
            command = [*program, self.name, str(self._data.resolve()), *TABLES]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
            self._answer(self._process)
        return self._process

    def _answer(self, process: subprocess.Popen[str]) -> dict[str, str]:
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], self._seconds)[0]:
            self._end()
            raise PeerError(f"no answer within {self._seconds:g} s")
        line = process.stdout.readline()
        if not line:
            self._end()
            raise PeerError(f"its process ended with {process.returncode}")
        found: dict[str, str] = json.loads(line)
        return found

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _translated(sql: str, dialect: str) -> str:
    """Return a query of Spark's in another dialect, its tables with commas between them.

    sqlglot writes CROSS JOIN there, which not every engine joins by the keys in WHERE.
    """
    tree = sqlglot.parse_one(sql, read="spark")
    for join in tree.find_all(exp.Join):
        if join.kind == "CROSS":
            join.set("kind", None)
    return tree.sql(dialect=dialect, comments=False)


def _environment(peer: Peer, environments: Path) -> Path:
    """Return the Python of an environment with what the engine needs; made where it is missing."""
    folder = environments.resolve() / peer.name
    done, wanted = folder / "requirements.txt", "\n".join(peer.requirements)
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        print(f"installing {', '.join(peer.requirements)} in {folder}", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *peer.requirements],
            check=True,
        )
        done.write_text(wanted, encoding="utf-8")
    return folder / "bin" / "python"
