"""A driver: a process that runs the query of each line of JSON through Dagster on the cluster.

    python -m benchmarks.cluster_faults.driver

It keeps its Spark session, as a server of ours does. It tells how a run gets on, and how it ended,
in lines of JSON. SIGUSR1 makes it print where its threads are.
"""

from __future__ import annotations

import faulthandler
import logging
import signal
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cluster_faults.queries import rows_as_text
from benchmarks.cluster_faults.telling import Teller, serve, told
from stagecoach.assets.execution.engine import SilentListener, StageRequest
from stagecoach.assets.execution.stage_engine import StageEngine
from stagecoach.assets.in_process.run import run_graph
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages.result_rows import first_rows
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.planning import plan_query

if TYPE_CHECKING:
    from stagecoach.assets.report.metadata import StageMetadata
    from stagecoach.planner.plan.stages import Stage

_ALL_ROWS = 1_000_000


class _Listener(SilentListener):
    def __init__(self, teller: Teller) -> None:
        self._tell = teller.tell

    def stage_started(self, stage: Stage) -> None:
        self._tell("started", stage=stage.stage_id)

    def stage_finished(self, stage: Stage, metadata: StageMetadata) -> None:
        self._tell("finished", stage=stage.stage_id, reused=bool(metadata.reused))

    def stage_failed(self, stage: Stage, error: BaseException) -> None:
        traceback.print_exception(error)
        self._tell("failed", stage=stage.stage_id, **told(error))


@dataclass(frozen=True)
class _Continued:
    """A runner whose runs re-execute an earlier one: "from failure" in Dagster."""

    engine: StageEngine
    root_run_id: str

    def run_stage(self, request: StageRequest) -> StageMetadata:
        return self.engine.run_stage(replace(request, root_run_id=self.root_run_id))

    def cancel_stage(self, request: StageRequest) -> None:
        self.engine.cancel_stage(replace(request, root_run_id=self.root_run_id))

    def run_ended(self, run_id: str) -> None:
        self.engine.run_ended(run_id)

    def query_ended(self, request: StageRequest) -> None:
        self.engine.query_ended(request)


def main() -> None:
    """Run what each line asks for."""
    faulthandler.register(signal.SIGUSR1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    serve(_run)


def _run(request: Mapping[str, Any], teller: Teller) -> None:
    settings = EngineSettings().updated(request["settings"])
    catalog = load_catalog(Path(request["catalog"]), settings.storage_options)
    options = PlannerOptions(**request["options"])
    graph = plan_query(request["sql"], catalog, options, name=request["query"])
    teller.tell("planned", stages=len(graph.stages))
    engine, root = StageEngine(settings, catalog), request["root_run_id"]
    outcome = run_graph(
        graph,
        runner=_Continued(engine, root),
        listener=_Listener(teller),
        store=engine.store(),
        run_id=request["run_id"],
    )
    stages = {i: [m.fingerprint, bool(m.reused)] for i, m in outcome.stages.items()}
    if outcome.failures:
        error = outcome.failures[min(outcome.failures)]
        teller.tell("ended", ok=False, stages=stages, **told(error))
    elif not outcome.success:
        teller.tell("ended", ok=False, stages=stages, ours=False, error=str(outcome.problem))
    else:
        table = first_rows(engine.store(), graph, root, _ALL_ROWS)
        columns = [column.to_pylist() for column in table.columns]
        rows = rows_as_text(zip(*columns, strict=True))
        teller.tell("ended", ok=True, stages=stages, rows=rows)


if __name__ == "__main__":
    main()
