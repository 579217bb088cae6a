"""A code location for tests: one query whose stages only pretend to work.

`STAGECOACH_TEST_LOG` names a file that gets a line for each stage that starts and ends,
`STAGECOACH_TEST_FAIL` the numbers of stages that fail, `STAGECOACH_TEST_SECONDS` how long each takes,
`STAGECOACH_TEST_TOGETHER` the numbers of stages that go on only once all of them have started.
"""

import os
import time
from pathlib import Path

import dagster as dg

from stagecoach.assets.definitions.factory import ENGINE_RESOURCE, build_assets, build_job
from stagecoach.assets.definitions.specs import build_stage_specs, build_table_specs, read_tables
from stagecoach.assets.definitions.translator import StageTranslator
from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.planner.errors import AnalysisError
from tests.assets.fakes import make_graph
from tests.waiting import wait_for


class LoggingRunner:
    """Writes what it does to a file, so that another process can see it."""

    def __init__(self) -> None:
        self._stopped: set[int] = set()

    def run_stage(self, request: StageRequest) -> StageMetadata:
        stage_id = request.stage_id
        self._log(f"start {stage_id} {request.root_run_id}")
        self._await_others(stage_id)
        end = time.monotonic() + float(os.environ.get("STAGECOACH_TEST_SECONDS", "0"))
        while time.monotonic() < end and stage_id not in self._stopped:
            time.sleep(0.02)
        if stage_id in self._stopped:
            self._log(f"cancel {stage_id}")
            raise AnalysisError(f"stage {stage_id} was cancelled")
        if str(stage_id) in os.environ.get("STAGECOACH_TEST_FAIL", "").split():
            raise AnalysisError(f"stage {stage_id} is broken")
        self._log(f"end {stage_id}")
        return StageMetadata(rows=7, fingerprint=f"fingerprint-{stage_id}")

    def cancel_stage(self, request: StageRequest) -> None:
        self._stopped.add(request.stage_id)

    def _await_others(self, stage_id: int) -> None:
        together = os.environ.get("STAGECOACH_TEST_TOGETHER", "").split()
        if str(stage_id) not in together:
            return
        log = Path(os.environ["STAGECOACH_TEST_LOG"])
        wait_for(lambda: all(f"start {number} " in log.read_text() for number in together))

    def _log(self, line: str) -> None:
        with Path(os.environ["STAGECOACH_TEST_LOG"]).open("a") as log:
            log.write(f"{line}\n")


def make_definitions() -> dg.Definitions:
    planned = PlannedQuery(query=Query(name="sales", sql="SELECT 1"), graph=make_graph("sales"))
    assets = build_assets(planned, build_stage_specs(planned, StageTranslator()))
    return dg.Definitions(
        assets=[*assets, *build_table_specs(read_tables([planned]), StageTranslator())],
        jobs=[build_job(planned, assets)],
        resources={ENGINE_RESOURCE: dg.ResourceDefinition.hardcoded_resource(LoggingRunner())},
    )


def sales_job() -> dg.JobDefinition:
    return make_definitions().resolve_job_def("run_sales")


defs = make_definitions()
