"""`dagster dev` with the `Guard` before its webserver.

    python -m stagecoach.web.dagster_dev dev OPTION…         what `dagster dev` does
    python -m stagecoach.web.dagster_dev webserver OPTION…   the webserver that it starts

`dagster dev` starts code servers, the daemon and `python -m dagster_webserver`. Here it starts this
module in place of the latter; everything else is Dagster's own. Dagster has no public way to add
middleware, so two names of its modules are replaced, and this is the only module that does such a
thing. It is written for dagster>=1.13,<1.14, and ends with an error where another version has not
got these names: no UI is better than an open one.

The policy, with the token, is in the environment of this process. It is removed, and only the
webserver gets it: neither the daemon, nor code servers, nor runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from subprocess import Popen
from types import ModuleType
from typing import Any

from stagecoach.infra.storage import secrets
from stagecoach.planner.errors import StagecoachError
from stagecoach.web.guard import Guard
from stagecoach.web.policy import WebPolicy, take_policy

_MODULE = "stagecoach.web.dagster_dev"
_WEBSERVER = "dagster_webserver"
_DAEMON = "dagster._daemon"

Start = Callable[..., "Popen[Any]"]


class DagsterVersionError(StagecoachError):
    """This version of Dagster starts its webserver in another way."""


def run_dev(policy: WebPolicy) -> None:
    """Run `dagster dev` with the arguments of this process."""
    from dagster import _cli
    from dagster._cli import dev

    _replace(dev, "open_ipc_subprocess", lambda start: _guarding(start, policy))
    _cli.main()


def run_webserver(policy: WebPolicy) -> None:
    """Run Dagster's webserver with the arguments of this process."""
    from dagster_webserver import cli

    def guarded(create_app: Callable[..., Any]) -> Callable[..., Guard]:
        return lambda *arguments, **options: Guard(create_app(*arguments, **options), policy)

    _replace(cli, "create_app_from_workspace_process_context", guarded)
    cli.main()


def _guarding(start: Start, policy: WebPolicy) -> Start:
    """How `dagster dev` is to start processes.

    Args:
        start: How it would.
        policy: For the webserver.
    """

    def start_guarded(parts: Sequence[str], **options: Any) -> Popen[Any]:
        match list(parts):
            case [python, "-m", module, *arguments] if module == _WEBSERVER:
                command = [python, "-m", _MODULE, "webserver", *arguments]
                return start(command, env={**os.environ, **policy.to_environment()}, **options)
            case [_, "-m", module, *_] if module == _DAEMON:
                return start(parts, **options)
        raise DagsterVersionError(f"`dagster dev` starts an unknown process: {parts[:3]}")

    return start_guarded


def _replace(module: ModuleType, name: str, change: Callable[[Any], Any]) -> None:
    before = getattr(module, name, None)
    if before is None:
        raise DagsterVersionError(
            f"{module.__name__} has no {name}; the UI cannot be protected with this version of "
            "Dagster: install dagster>=1.13,<1.14"
        )
    setattr(module, name, change(before))


def main(arguments: Sequence[str]) -> None:
    """Run one of both, as the first argument says."""
    policy = take_policy(os.environ)
    if policy.token is not None:
        secrets.register(policy.token.text)
    part, *rest = arguments
    if part == "webserver":
        sys.argv = ["dagster-webserver", *rest]
        run_webserver(policy)
    else:
        sys.argv = ["dagster", part, *rest]
        run_dev(policy)


if __name__ == "__main__":
    main(sys.argv[1:])
