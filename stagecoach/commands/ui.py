"""`stagecoach ui`: Dagster's web UI and daemon over a code location, and a warm Spark for its runs.

This process becomes `dagster dev`, whose webserver answers only what the policy of `stagecoach.web`
accepts. The servers of run pages and metrics beside it have the same policy.

Every run is a process of its own. The Spark Connect server that is started beside the UI keeps them
from starting a JVM each; they find it through the environment. Commands beside the UI find it as
they find that of `stagecoach warm`.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.api.storage_root import storage_root
from stagecoach.arguments.options import debug_option, storage_option
from stagecoach.host import metrics_server, pages_server, run_host
from stagecoach.infra.host.extras import require_extra
from stagecoach.infra.storage import secrets
from stagecoach.terminal.streams import logs_are_json
from stagecoach.web.policy import EVERY_ADDRESS, WebPolicy, is_loopback, make_policy

if TYPE_CHECKING:
    from stagecoach.infra.spark.connect_server import WarmServer

DAGSTER_HOME = Path(".stagecoach/dagster")
EXAMPLE = "stagecoach.example.definitions"
_TOKEN_VARIABLE = "STAGECOACH_UI_TOKEN"
# A server that somebody names should be there by now.
_REMOTE_SECONDS = 5.0
_INSTANCE = """\
# Written by `stagecoach ui`; yours to edit.
telemetry:
  enabled: false
nux:
  enabled: false
run_coordinator:
  module: dagster._core.run_coordinator
  class: QueuedRunCoordinator
  config:
    dequeue_interval_seconds: 1
# Runs are forks of a process that has loaded Dagster and Stagecoach already.
run_launcher:
  module: stagecoach.run_launcher
  class: WarmRunLauncher
"""


@click.command()
@storage_option
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, 65535),
    default=3000,
    show_default=True,
    help="Port to listen on.",
)
@click.option(
    "--module",
    metavar="NAME",
    default=None,
    help="Python module with the Dagster definitions.  "
    "[default: workspace.yaml where there is one, else the example project]",
)
@click.option(
    "--warm/--no-warm",
    default=True,
    help="Whether one warm Spark serves all runs, or each starts its own.  [default: --warm]",
)
@click.option(
    "--remote",
    metavar="URL",
    default=None,
    help="Spark Connect server for all runs, sc://host:port, instead of its own warm Spark.",
)
@click.option(
    "--metrics-port",
    metavar="N",
    type=click.IntRange(1, 65535),
    default=None,
    help="Serve Prometheus metrics of all runs on this port, at /metrics.  [default: none]",
)
@click.option(
    "--pages-port",
    metavar="N",
    type=click.IntRange(1, 65535),
    default=None,
    help="Port of the pages of runs, which the UI links.  [default: the one after --port]",
)
@click.option(
    "--pages-url",
    metavar="URL",
    default=None,
    help="Address of the pages of runs as browsers reach it, behind a proxy for example.",
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    envvar="STAGECOACH_UI_ALLOW_HOST",
    help="Host name under which browsers reach the UI, besides localhost and --host; may be "
    "repeated. Requests for other names are refused. '*' accepts any, and needs a token.",
)
@click.option(
    "--allow-origin",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    envvar="STAGECOACH_UI_ALLOW_ORIGIN",
    help="Origin of the UI's pages, https://NAME, where a proxy sends us another Host; may be "
    "repeated. Requests of pages from elsewhere are refused.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    default=None,
    envvar=_TOKEN_VARIABLE,
    help="Shared token without which nothing is answered: browsers show a login page, programs "
    f"send Authorization: Bearer. Better in {_TOKEN_VARIABLE}: others can read command lines.",
)
@debug_option
def ui(
    storage: str | None,
    host: str,
    port: int,
    module: str | None,
    warm: bool,
    remote: str | None,
    metrics_port: int | None,
    pages_port: int | None,
    pages_url: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    token: str | None,
    debug: bool,
) -> None:
    """Open the Dagster UI: every stage an asset, with its runs, lineage and metadata.

    Keeps its state in $DAGSTER_HOME, by default .stagecoach/dagster. Ctrl-C ends it, and the Spark
    that it has started.
    """
    require_extra("ui", "dagster_webserver", "the web UI")
    if metrics_port is not None:
        require_extra("metrics", "prometheus_client", "--metrics-port")
    policy = _read_policy(host, hosts, origins, token)
    _check_port(host, port)
    if metrics_port is not None:
        if metrics_port == port:
            raise click.UsageError("--metrics-port is the port of the UI; choose another one")
        _check_port(host, metrics_port, option="--metrics-port")
    if pages_port is not None:
        if pages_port in (port, metrics_port):
            raise click.UsageError("--pages-port is the port of another server; choose another one")
        _check_port(host, pages_port, option="--pages-port")
    home = prepare_home()
    root = storage_root(storage)
    server = start_spark(home, root, warm=warm, remote=remote)
    metrics: Mapping[str, str] = {}
    if metrics_port is not None:
        metrics = metrics_server.launch(home / "metrics", host, metrics_port, policy)
    pages_port = pages_port or _port_near(host, port, {port, metrics_port})
    pages_url = pages_url or _pages_url(host, pages_port)
    pages = pages_server.launch(root, host, pages_port, pages_url, home / "pages.log", policy)
    command = dagster_command(host, port, module, debug=debug)
    shown = "127.0.0.1" if host in EVERY_ADDRESS else host
    click.echo(f"Dagster UI: http://{shown}:{port}  (state in {home}; Ctrl-C ends it)", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        # `dagster dev` says at every start that another package should be used instead.
        "PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS", "default" if debug else "ignore"),
        # The storage of the command line, so that each reuses what the other has computed.
        "STAGECOACH_STORAGE_ROOT": root,
        **({"STAGECOACH_REMOTE": remote} if remote else {}),
        **({} if module or Path("workspace.yaml").exists() else _example_environment()),
        **(server.environment if server else {}),
        **metrics,
        **pages,
        **({"STAGECOACH_LOG_FORMAT": "json"} if logs_are_json() else {}),
    }
    environment |= run_host.launch(home / "run-host.log", environment)
    # A shell that starts us in the background ignores SIGINT for us; Dagster must hear it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The policy is for the webserver alone: it may hold a token, which runs need not have.
    os.execve(command[0], command, {**environment, **policy.to_environment()})


def _example_environment() -> dict[str, str]:
    """Where the packaged example finds its tables: in the current folder, as `demo` makes them."""
    from stagecoach import tpch

    catalog = os.environ.get("STAGECOACH_CATALOG") or str(tpch.example_catalog().absolute())
    return {"STAGECOACH_CATALOG": catalog}


def start_spark(
    home: Path, storage: str, *, warm: bool = True, remote: str | None = None
) -> WarmServer | None:
    """Start the warm Spark Connect server in the background; it ends with this process.

    Args:
        home: The folder of Dagster's state; the server's log is in `spark` below it.
        storage: The storage root.
        warm: Whether to start one.
        remote: The server that all runs are to use, if there is one.

    Returns:
        How runs reach it; None where they are not to use one, or have another already.
    """
    from stagecoach.infra.config.settings import load_settings
    from stagecoach.infra.spark.connect_server import await_server, launch

    settings = load_settings(overrides={"storage_root": storage})
    if remote:
        await_server(remote, _REMOTE_SECONDS)
        return None
    if not warm or settings.remote:
        return None
    return launch(settings, home / "spark", announced=True)


def prepare_home() -> Path:
    """The folder of Dagster's state, with a `dagster.yaml` in it."""
    home = Path(os.environ.get("DAGSTER_HOME") or DAGSTER_HOME).absolute()
    home.mkdir(parents=True, exist_ok=True)
    instance = home / "dagster.yaml"
    if not instance.exists():
        instance.write_text(_INSTANCE, encoding="utf-8")
    return home


def dagster_command(host: str, port: int, module: str | None, *, debug: bool) -> list[str]:
    """The command line of Dagster's web server and daemon, with our policy before the server."""
    module_of_ours = "stagecoach.web.dagster_dev"
    command = [sys.executable, "-m", module_of_ours, "dev", "--host", host, "--port", str(port)]
    if module is None and Path("workspace.yaml").exists():
        command += ["--workspace", "workspace.yaml"]
    else:
        command += ["--module-name", module or EXAMPLE]
    return [*command, "--log-level", "debug" if debug else "warning"]


def _read_policy(
    host: str, hosts: Collection[str], origins: Collection[str], token: str | None
) -> WebPolicy:
    """What the web servers accept. The token leaves this environment, which all processes get."""
    if os.environ.pop(_TOKEN_VARIABLE, None) == "":
        # As where a secret is missing that a deployment names: not a UI without a token.
        raise click.UsageError(f"{_TOKEN_VARIABLE} is empty; set a token or unset the variable")
    policy = make_policy(host, hosts=hosts, origins=origins, token=token)
    if token is not None:
        secrets.register(token)
    elif not is_loopback(host):
        click.echo(
            f"note: anyone who can reach {host} can read everything and run code; set "
            f"{_TOKEN_VARIABLE}, or put a proxy with a login before it",
            err=True,
        )
    return policy


def _pages_url(host: str, port: int) -> str:
    name = socket.gethostname() if host in EVERY_ADDRESS else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _port_near(host: str, port: int, taken: Collection[int | None]) -> int:
    """The next port, so that links stay right when the UI is started again; else any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (*range(port + 1, min(port + 5, 65536)), 0):
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                if wanted not in taken:
                    probe.bind((host, wanted))
                    return int(probe.getsockname()[1])
            except OSError:
                continue
    raise click.UsageError(f"no free port on {host} for the pages of runs; give --pages-port")


def _check_port(host: str, port: int, option: str = "--port") -> None:
    """Refuse a port that is taken: Dagster would start and not be reachable."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise click.UsageError(
                    f"port {port} is in use; stop the program that uses it, "
                    f"or choose another with {option}"
                ) from error
            raise click.UsageError(f"cannot listen on {host}: {error.strerror}") from error
