"""Dagster's run launcher under `stagecoach ui`: each run is forked from the run host.

`stagecoach ui` names it in the `dagster.yaml` that it writes:

    run_launcher: {module: stagecoach.run_launcher, class: WarmRunLauncher}

Where the host is not there, or a code location lives elsewhere (in a container, or with another
Python), it is Dagster's own default launcher.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from dagster._core.launcher.default_run_launcher import DefaultRunLauncher
from dagster._serdes import serialize_value

from stagecoach.host.run_host import HOST_VARIABLE, ask

if TYPE_CHECKING:
    from dagster import DagsterRun
    from dagster._core.launcher.base import LaunchRunContext

HOST_TAG = ".dagster/stagecoach_run_host"
"""Socket of the host that a run was given to; the UI shows no tags of `.dagster/`."""

log = logging.getLogger(__name__)


class WarmRunLauncher(DefaultRunLauncher):
    """Launches runs as forks of a process that has loaded what they need; see `run_host`."""

    def launch_run(self, context: LaunchRunContext) -> None:
        """Launch a run."""
        run = context.dagster_run
        path = os.environ.get(HOST_VARIABLE)
        if path and _is_here(run):
            self._instance.add_run_tags(run.run_id, {HOST_TAG: path})
            order = {
                "run_id": run.run_id,
                "instance_ref": serialize_value(self._instance.get_ref()),
            }
            try:
                ask(path, order)
            except OSError as error:
                log.warning("the run host does not answer, so the run starts without it: %s", error)
            else:
                return
        super().launch_run(context)

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run; return whether it was told."""
        run = self._instance.get_run_by_id(run_id) if self.has_instance else None
        path = run.tags.get(HOST_TAG) if run is not None else None
        if run is None or run.is_finished or path is None:
            return bool(super().terminate(run_id))
        # Before it hears of it: its last word must be that it is cancelled.
        self._instance.report_run_canceling(run)
        try:
            if ask(path, {"cancel": run_id})["found"]:
                return True
        except OSError as error:
            log.warning("the run host does not answer: %s", error)
        return bool(super().terminate(run_id))


def _is_here(run: DagsterRun) -> bool:
    """Whether the code of the run is of this machine and this Python."""
    if run.job_code_origin is None:
        return False
    origin = run.job_code_origin.repository_origin
    return origin.container_image is None and origin.executable_path == sys.executable
