"""A code location over the folder `STAGECOACH_TEST_PROJECT`, importable by step and run processes.

Plain Python processes of Dagster's multiprocess executor and of `dagster api grpc` load it by name.
With `STAGECOACH_TEST_TOGETHER`, a folder, leaves go on only once two of them have begun.
"""

import os
from pathlib import Path
from unittest import mock

import dagster as dg

from stagecoach.assets.definitions.location import build_definitions
from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.execution.stage_engine import StageEngine
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.planner.options import PlannerOptions
from tests.waiting import wait_for

# A shuffle for each side of the join: two leaves that may overlap.
OPTIONS = PlannerOptions(force_distribution=True, num_partitions=3, broadcast_bytes=0)
LONG_SQL = """
SELECT count(*) AS n FROM sales a CROSS JOIN sales b CROSS JOIN sales c CROSS JOIN sales d
CROSS JOIN sales e WHERE (a.amount * b.amount + c.amount * d.amount * e.amount) % 7 = 3
"""
BY_SHOP_SQL = """
SELECT s.shop, p.name, sum(s.amount) AS total FROM sales s JOIN products p ON s.product = p.product
GROUP BY s.shop, p.name ORDER BY s.shop, p.name
"""


def make_definitions() -> dg.Definitions:
    folder = Path(os.environ["STAGECOACH_TEST_PROJECT"])
    made = build_definitions(
        queries=folder / "queries",
        catalog=folder / "catalog.yaml",
        storage=folder / "store",
        options=OPTIONS,
    )
    processes = dg.define_asset_job(
        "in_processes", dg.AssetSelection.groups("by_shop"), executor_def=dg.multiprocess_executor
    )
    long_processes = dg.define_asset_job(
        "long_in_processes", dg.AssetSelection.groups("long"), executor_def=dg.multiprocess_executor
    )
    return dg.Definitions.merge(made, dg.Definitions(jobs=[processes, long_processes]))


def by_shop_job() -> dg.JobDefinition:
    return make_definitions().resolve_job_def("run_by_shop")


def process_job() -> dg.JobDefinition:
    return make_definitions().resolve_job_def("in_processes")


def long_process_job() -> dg.JobDefinition:
    return make_definitions().resolve_job_def("long_in_processes")


def let_leaves_meet(folder: Path) -> None:
    run_stage = StageEngine.run_stage

    def meet(engine: StageEngine, request: StageRequest) -> StageMetadata:
        if not request.stage.inputs:
            (folder / str(request.stage_id)).touch()
            wait_for(lambda: len(list(folder.iterdir())) > 1)
        return run_stage(engine, request)

    mock.patch.object(StageEngine, "run_stage", meet).start()  # for the life of this process


if "STAGECOACH_TEST_TOGETHER" in os.environ:
    let_leaves_meet(Path(os.environ["STAGECOACH_TEST_TOGETHER"]))
if "STAGECOACH_TEST_PROJECT" in os.environ:
    defs = make_definitions()
