"""Drivers that can be killed: each line of JSON starts a process that runs a query.

    python -m benchmarks.faults.zygote

Modules are imported once; each run is a fork, so that hundreds start in seconds. Says `<pid>` when
a run starts and `<pid> <status>` when it has ended.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.faults.local_runs import LocalRuns, tasks_here
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages.run_stage import run_stage


def main() -> None:
    """Run what each line asks for."""
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                _run(request)
                code = 0
            finally:
                os._exit(code)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(pid, status, flush=True)


def _run(request: dict[str, Any]) -> None:
    settings = EngineSettings().updated(request["settings"])
    runs = LocalRuns(Path(request["catalog"]), settings)
    graph = runs.plan(request["query"])
    run_id = request["run_id"]
    context = runs.context(graph, run_id=run_id, root_run_id=run_id, **request["changes"])
    with tasks_here():
        for stage in graph.stages:
            run_stage(stage.stage_id, context)


if __name__ == "__main__":
    main()
