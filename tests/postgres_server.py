"""A PostgreSQL server for tests, from the programs of Debian's package `postgresql`.

It refuses to run as root, so root starts it as the user `postgres` or `nobody`, in a folder of its own.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from stagecoach.infra.spark.connect_conf import free_port

_USER = "dagster"


@dataclass(frozen=True)
class PostgresServer:
    """A running server with one database.

    Args:
        port: On the loopback address.
        password: Of the user `dagster`, whose database has the same name.
    """

    port: int
    password: str

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a query."""
        import psycopg2

        connection = psycopg2.connect(
            host="127.0.0.1", port=self.port, user=_USER, password=self.password, dbname=_USER
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                found: list[tuple[object, ...]] = cursor.fetchall()
                return found
        finally:
            connection.close()


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server; skips where its programs are missing."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian's package postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="stagecoach-postgres-"))
    password, port = secrets.token_hex(12), free_port()
    try:
        (folder / "password").write_text(password)
        as_user = _as_other_user(folder)
        options = ["-U", _USER, "--auth=scram-sha-256", "--no-sync", "--encoding=UTF8"]
        _run([*as_user, programs / "initdb", "-D", folder / "data", *options,
              f"--pwfile={folder / 'password'}"])  # fmt: skip
        control = [*as_user, programs / "pg_ctl", "-D", folder / "data", "-w"]
        settings = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off -c max_connections=200"
        _run([*control, "-l", folder / "log", "-o", settings, "start"])
        try:
            environment = {**os.environ, "PGPASSWORD": password}
            create = ["-h", "127.0.0.1", "-p", str(port), "-U", _USER, _USER]
            subprocess.run([programs / "createdb", *create], env=environment, check=True)
            yield PostgresServer(port, password)
        finally:
            _run([*control, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder)


def _programs() -> Path | None:
    """The folder of the server's programs, which Debian leaves out of the path."""
    folders = [Path(path).resolve().parent for path in [shutil.which("initdb")] if path]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def _as_other_user(folder: Path) -> list[str]:
    """What a command begins with, so that it does not run as root; gives that user the folder."""
    if os.geteuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        for path in (folder, folder / "password"):
            os.chown(path, user.pw_uid, user.pw_gid)
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _run(command: list[str | Path]) -> None:
    # Not a pipe: the server would keep it open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            command, cwd="/", stdout=output, stderr=subprocess.STDOUT, check=False
        )
        output.seek(0)
        assert done.returncode == 0, output.read().decode(errors="replace")
