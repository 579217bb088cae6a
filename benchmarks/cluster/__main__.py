"""A Spark cluster with an S3 server on this machine: `python -m benchmarks.cluster up`, and `down`.

`up` starts a master, two workers without credentials and packages of ours, and `rclone serve s3`.
It puts TPC-H tables there, runs a query on the cluster, and leaves all of it running.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import click

from benchmarks.cluster.sessions import end_sessions, started_at
from benchmarks.cluster.standalone import HOST, StandaloneCluster
from benchmarks.rclone import RcloneServer
from stagecoach import tpch

_BUCKET = "stagecoach"
_KEYS = ("clusterkey1", "clustersecret1")
_ROOT = Path(__file__).parents[2]

_folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(".stagecoach/cluster"),
    show_default=True,
    help="Where the processes live and the objects are stored.",
)


@click.group()
def cluster() -> None:
    """Start and end a Spark cluster on this machine."""


@cluster.command()
@_folder_option
@click.option("--scale-factor", default=0.1, show_default=True, help="Size of the TPC-H tables.")
@click.option("--workers", default=2, show_default=True)
@click.option("--query", default="q03", show_default=True, help="TPC-H query to run; all for all.")
def up(folder: Path, scale_factor: float, workers: int, query: str) -> None:
    """Start the cluster and run a query on it."""
    folder = folder.resolve()
    state = folder / "state.json"
    if state.exists():
        raise click.ClickException(f"{state} is there; end that cluster first: make cluster-down")
    started = time.perf_counter()
    tables = _ROOT / f"data/tpch-{scale_factor:g}"
    tpch.generate(tables, scale_factor)
    server = RcloneServer(
        folder / "s3", _BUCKET, access_key=_KEYS[0], secret_key=_KEYS[1], detached=True
    )
    _link_tables(tables, folder / "s3" / _BUCKET / f"tpch-{scale_factor:g}")
    found = StandaloneCluster(folder, workers=workers)
    try:
        server.start()
        found.start()
    finally:  # so that `down` ends what has been started, whatever happens next
        pids = [*(process.pid for process in found.processes), server.pid]
        state.write_text(json.dumps({pid: started_at(pid) for pid in pids if pid is not None}))
    catalog = folder / "catalog.yaml"
    tpch.write_catalog(catalog, f"s3://{_BUCKET}/tpch-{scale_factor:g}")
    variables = {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": _KEYS[0],
        "AWS_SECRET_ACCESS_KEY": _KEYS[1],
        "AWS_DEFAULT_REGION": "us-east-1",
        "SPARK_LOCAL_IP": HOST,
        "STAGECOACH_MASTER": found.master,
        "STAGECOACH_CREDENTIALS": "forward",
        "STAGECOACH_STORAGE_ROOT": f"s3://{_BUCKET}/storage",
    }
    file = folder / "env"
    file.write_text("".join(f"export {k}={shlex.quote(v)}\n" for k, v in variables.items()))
    file.chmod(0o600)
    click.echo(f"{found.master} and {server.url} run after {time.perf_counter() - started:.0f} s")
    names = [f"q{n:02d}" for n in range(1, 23)] if query == "all" else [query]
    files = [str(_ROOT / "pipelines" / "queries" / f"{name}.sql") for name in names]
    command = ["query", *files, "--catalog", str(catalog)]
    click.echo(f"$ . {_short(file)}; stagecoach {' '.join(map(_short, command))}")
    code = _run(command, variables)
    click.echo("End the cluster with: make cluster-down")
    sys.exit(code)


@cluster.command()
@_folder_option
def down(folder: Path) -> None:
    """End what `up` has started; the objects stay."""
    state = folder / "state.json"
    if not state.exists():
        click.echo(f"No cluster runs in {folder}.")
        return
    known = {int(pid): at for pid, at in json.loads(state.read_text()).items()}
    # A leader that has ended leaves its session to the others; a number that somebody else has
    # now is no session of ours.
    leaders = [pid for pid, at in known.items() if started_at(pid) in ("", at)]
    count = end_sessions(leaders)
    state.unlink()
    click.echo(f"{count} processes ended.")


def _link_tables(tables: Path, target: Path) -> None:
    """Put the tables below the S3 server: as links, so they take no space twice."""
    for path in sorted(tables.rglob("*.parquet")):
        link = target / path.relative_to(tables)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            os.link(path, link)


def _run(arguments: list[str], variables: Mapping[str, str]) -> int:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "STAGECOACH_"))}
    done = subprocess.run(
        [sys.executable, "-m", "stagecoach", *arguments], env={**kept, **variables}, check=False
    )
    return done.returncode


def _short(path: str | Path) -> str:
    text = str(path)
    return os.path.relpath(text) if text.startswith(str(Path.cwd())) else text


if __name__ == "__main__":
    cluster()
