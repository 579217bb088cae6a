"""The first work of a warm Spark Connect server, whose address is in the environment.

`python -m stagecoach.infra.runtime.stages.warm_up` runs it. Afterwards the JVM has loaded what a
run asks it for (an analysis, a job of tasks, a query of Spark's own), and a Python worker for each
task slot has imported our packages and DuckDB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from stagecoach.infra.config.settings import EngineSettings, load_settings
from stagecoach.infra.engines.spark.engine import analyze
from stagecoach.infra.runtime.stages.dispatch import run_tasks
from stagecoach.infra.shuffle.map_file import OutputPartitioning
from stagecoach.infra.spark.session import get_session, isolated_session, stop_sessions, task_slots
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.worker.spec import TaskSettings, TaskSpec
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.types import BIGINT, STRING, Field

_TABLES = (("warm", (Field("k", BIGINT), Field("v", BIGINT), Field("s", STRING))),)
_SQL = """
SELECT a.s, sum(a.v) AS v, count(*) AS n FROM warm a JOIN warm b ON a.k = b.k
WHERE a.v > 1 GROUP BY a.s ORDER BY v DESC LIMIT 5
"""


def main() -> int:
    """Do once what the first run would wait for."""
    settings = load_settings()
    session = get_session(settings)
    slots = task_slots(settings)
    with tempfile.TemporaryDirectory(prefix="stagecoach-warm-") as folder:
        # Twice: the first round is over when the workers have just been started.
        for _ in range(2):
            run_tasks(session, [_task(Path(folder), settings, index) for index in range(slots)])
    with isolated_session(session, settings.time_zone) as isolated:
        analyze(isolated, "warm_up", SparkText(_SQL), _TABLES, {})
    session.sql("SELECT id % 3 AS k, count(*) FROM range(9) GROUP BY 1 ORDER BY 1").collect()
    stop_sessions()
    return 0


def _task(folder: Path, settings: EngineSettings, index: int) -> TaskSpec:
    return TaskSpec(
        query="warm_up",
        stage_id=0,
        fingerprint="0" * 64,
        task_index=index,
        sql="SELECT x AS c0 FROM range(1000) t(x)",
        inputs=(),
        types=(BIGINT,),
        output=OutputPartitioning(),
        settings=TaskSettings(
            store=open_store(folder / "store").to_dict(),
            time_zone=settings.time_zone,
            memory_bytes=64 << 20,
            writer_memory_bytes=16 << 20,
            max_spill_bytes=0,
            spill_dir=str(folder / "spill"),
            codec=settings.codec,
            directories=(),
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
