"""Stage graphs made by hand and a runner that only pretends, for tests of the Dagster layer."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.planner.catalog import MappingCatalog, TableInfo, TableStats
from stagecoach.planner.plan.expressions import TRUE, Column
from stagecoach.planner.plan.physical import (
    FilterExec,
    PhysicalPlan,
    ScanExec,
    StageInputExec,
    UnionExec,
)
from stagecoach.planner.plan.stages import Branch, Stage, StageGraph, StageOutput
from stagecoach.planner.types import BIGINT, Field

SCHEMA = (Field("k", BIGINT), Field("v", BIGINT))
COLUMNS = (Column(1, "k", BIGINT), Column(2, "v", BIGINT))
CATALOG = MappingCatalog(
    [TableInfo(name=name, columns=SCHEMA, stats=TableStats(10, 100)) for name in ("t", "u")]
)


def scan(table: str) -> PhysicalPlan:
    return FilterExec(ScanExec(table, COLUMNS, ("k", "v")), TRUE)


def stage_input(*stage_ids: int) -> PhysicalPlan:
    inputs = tuple(StageInputExec(i, "shuffle", COLUMNS) for i in stage_ids)
    return inputs[0] if len(inputs) == 1 else UnionExec(inputs, COLUMNS)


def make_stage(stage_id: int, fragment: PhysicalPlan, *, head: bool = False) -> Stage:
    return Stage(
        stage_id=stage_id,
        title=f"step {stage_id} → {'result' if head else 'hash(k)'}",
        fragment=fragment,
        branches=(Branch("single", (0,)),),
        output=StageOutput("gather") if head else StageOutput("shuffle", (0,), 4),
        schema=SCHEMA,
        engine="duckdb",
        engine_reason="every expression is proven",
    )


def make_graph(query: str = "sales", sql: str = "SELECT k, v FROM t") -> StageGraph:
    """Two leaves, a join of them, the head."""
    return StageGraph(
        query=query,
        sql=sql,
        stages=(
            make_stage(0, scan("t")),
            make_stage(1, scan("u")),
            make_stage(2, stage_input(0, 1)),
            make_stage(3, stage_input(2), head=True),
        ),
        result=SCHEMA,
        tables=(("t", SCHEMA), ("u", SCHEMA)),
    )


def meeting(*stage_ids: int) -> Callable[[StageRequest], None]:
    """Work that goes on only once all of these stages are at it, however slow the machine is."""
    together = threading.Barrier(len(stage_ids), timeout=120)

    def work(request: StageRequest) -> None:
        if request.stage_id in stage_ids:
            together.wait()

    return work


class FakeRunner:
    """Sleeps where a real runner works, and remembers when."""

    def __init__(
        self,
        seconds: float = 0.0,
        errors: Mapping[int, Sequence[Exception]] | None = None,
        work: Callable[[StageRequest], None] | None = None,
    ) -> None:
        self._seconds = seconds
        self._errors = {stage: list(items) for stage, items in (errors or {}).items()}
        self._work = work
        self._lock = threading.Lock()
        self.requests: list[StageRequest] = []
        self.cancelled: set[int] = set()
        self.spans: dict[int, tuple[float, float]] = {}

    def run_stage(self, request: StageRequest) -> StageMetadata:
        started = time.monotonic()
        with self._lock:
            self.requests.append(request)
            waiting = self._errors.get(request.stage_id)
            error = waiting.pop(0) if waiting else None
        if self._work:
            self._work(request)
        time.sleep(self._seconds)
        with self._lock:
            self.spans[request.stage_id] = (started, time.monotonic())
        if error:
            raise error
        return StageMetadata(
            rows=7,
            bytes=70,
            tasks=2,
            partitions=4,
            skew=1.0,
            seconds=self._seconds,
            engine="duckdb",
            reused=False,
            fingerprint=f"{request.stage.plan_hash[:16]}{request.stage_id}",
            columns=SCHEMA,
            uri=f"memory://{request.graph.query}/{request.stage_id}",
        )

    def cancel_stage(self, request: StageRequest) -> None:
        self.cancelled.add(request.stage_id)

    def overlap(self, one: int, other: int) -> float:
        (start_1, end_1), (start_2, end_2) = self.spans[one], self.spans[other]
        return min(end_1, end_2) - max(start_1, start_2)
