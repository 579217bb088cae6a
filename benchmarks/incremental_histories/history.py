"""One history: a table that changes, and runs of one query over it."""

from __future__ import annotations

import datetime
import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.faults.local_runs import LocalRuns, tasks_here
from benchmarks.incremental_histories.warehouse import Warehouse
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.runtime.stages.run import StageResult
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.infra.upkeep.stored_outputs import find_outputs
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.options import PlannerOptions
from tests.contexts import run_stages
from tests.differential.inprocess import collect, multiset

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

QUERIES = {
    "daily": "SELECT day, count(*) AS n, sum(amount) AS total, min(note) AS least FROM sales "
    "GROUP BY day",
    "one group": "SELECT count(*) AS n, sum(k) AS s, max(weight) AS w FROM sales WHERE k % 3 > 0",
    "rows": "SELECT k, upper(note) AS note, amount * 2 AS twice FROM sales WHERE shop < 6",
    "filtered": "SELECT shop, count(*) AS n FROM sales WHERE day >= DATE'2026-01-10' GROUP BY shop",
    "distinct": "SELECT shop, count(DISTINCT note) AS n FROM sales GROUP BY shop",
    "joined": "SELECT country, sum(amount) AS total FROM sales JOIN shops "
    "ON sales.shop = shops.shop GROUP BY country",
    "left": "SELECT k, country FROM sales LEFT JOIN shops ON sales.shop = shops.shop",
    "anti": "SELECT k FROM sales WHERE shop NOT IN (SELECT shop FROM shops WHERE country = 'de')",
    "union": "SELECT shop, count(*) AS n FROM (SELECT shop FROM sales WHERE k % 2 = 0 UNION ALL "
    "SELECT shop FROM shops) GROUP BY shop",
    "twice": "SELECT a.k, b.n FROM sales a JOIN (SELECT day, count(*) AS n FROM sales GROUP BY day)"
    " b ON a.day = b.day",
    "cube": "SELECT shop, note, count(*) AS n, sum(amount) AS s FROM sales GROUP BY CUBE (shop, "
    "note)",
    "top": "SELECT shop, total, row_number() OVER (ORDER BY total DESC, shop) AS place FROM "
    "(SELECT shop, sum(amount) AS total FROM sales GROUP BY shop)",
    "exploded": "SELECT word, count(*) AS n FROM sales LATERAL VIEW explode(split(note, 'n')) w AS "
    "word GROUP BY word",
    # Computed whole: must stay right beside the others.
    "doubles": "SELECT shop, sum(CAST(k AS DOUBLE)) AS s FROM sales GROUP BY shop",
}


@dataclass(frozen=True)
class Verdict:
    """How a history went.

    Attributes:
        query: Name of the query.
        outcome: `equal`, or what went wrong: `differs`, `differs from spark`, `broken storage`,
            `fails`.
        detail: The steps, where something went wrong.
        runs: How often the query was run incrementally.
        tasks: Tasks of incremental stages that were not reused whole.
        taken_over: Those of them that were not computed.
        losses: Files of outputs that were removed between runs.
        collections: How often gc removed something.
    """

    query: str
    outcome: str
    detail: str = ""
    runs: int = 0
    tasks: int = 0
    taken_over: int = 0
    losses: int = 0
    collections: int = 0


class History:
    """A history by its seed.

    Args:
        seed: Chooses everything.
        folder: An empty folder.
        spark: Gives the answer of plain Spark at the end; None leaves that out.
    """

    def __init__(self, seed: int, folder: Path, spark: SparkSession | None = None) -> None:
        self._rng = rng = random.Random(f"history {seed}")
        self._spark = spark
        tables = folder / "tables"
        tables.mkdir()
        self._warehouse = Warehouse(tables, rng)
        self._name = rng.choice(sorted(QUERIES))
        self._options = PlannerOptions(
            incremental=True,
            single_task_bytes=0,
            num_partitions=rng.randint(1, 4),
            broadcast_bytes=rng.choice((0, 1 << 30)),
            inline_bytes=rng.choice((0, 1 << 30)),
            runtime_filters=rng.random() < 0.5,
        )
        settings = EngineSettings(
            storage_root=str(folder / "store"),
            spill_dir=str(folder / "spill"),
            parallelism=2,
            memory_bytes=256 << 20,
            # Groups of a row group each, or of several small files.
            min_task_bytes=rng.choice((0, 0, 4000, 10_000)),
        )
        self._settings = settings
        self._steps: list[str] = []
        self._counts: Counter[str] = Counter()

    def verdict(self) -> Verdict:
        """Live through the history."""
        try:
            return self._lived()
        except StagecoachError as error:
            return self._ended("fails", str(error))

    def _lived(self) -> Verdict:
        for _ in range(self._rng.randint(2, 5)):
            if problem := self._run():
                return self._ended(problem)
            self._steps.append(self._warehouse.change())
            if problem := self._upkeep():
                return self._ended(problem)
        if problem := self._run(with_spark=True):
            return self._ended(problem)
        return self._ended("equal")

    def _ended(self, outcome: str, problem: str = "") -> Verdict:
        told = [str(self._options), *self._steps, *filter(None, [problem])]
        detail = "" if outcome == "equal" else "\n".join(told)
        return Verdict(self._name, outcome, detail, **self._counts)

    def _run(self, *, with_spark: bool = False) -> str:
        """Run the query as the last runs left the storage, and compare; what is wrong."""
        # Opened anew: each run of a schedule is a process of its own.
        runs = LocalRuns(self._warehouse.catalog, self._settings)
        sql = QUERIES[self._name]
        found, results = _finished(runs, self._options, sql)
        self._count(results)
        whole = PlannerOptions(**{**vars(self._options), "incremental": False})
        expected, _ = _finished(runs, whole, sql, fresh=True)
        if multiset(_positional(found)) != multiset(_positional(expected)):
            return "differs"
        if with_spark and self._spark is not None:
            answer = self._plain(self._spark, sql)
            if multiset(_positional(found)) != multiset(answer):
                return "differs from spark"
        return ""

    def _plain(self, spark: SparkSession, sql: str) -> pa.Table:
        for table in ("sales", "shops"):
            files = str(self._warehouse.location(table))
            spark.read.parquet(files).createOrReplaceTempView(table)
        return collect(spark.sql(sql))

    def _count(self, results: list[StageResult]) -> None:
        self._counts["runs"] += 1
        for result in results:
            if result.manifest is None or result.reused:
                continue
            told = result.manifest.metrics.get("incremental", {})
            self._counts["tasks"] += told.get("tasks", 0)
            self._counts["taken_over"] += told.get("taken_over", 0)

    def _upkeep(self) -> str:
        """Let days go by, perhaps with gc, perhaps with a loss; what is wrong with the storage."""
        rng, store = self._rng, self._settings.open_store()
        root = Path(self._settings.storage_root)
        _age(root, rng.choice((0.5, 1, 2)))
        if rng.random() < 0.4:
            days = rng.choice((1, 2, 3, 5))
            report = collect_garbage(store, older_than=datetime.timedelta(days=days))
            self._counts["collections"] += bool(report.num_objects)
            self._steps.append(f"gc {days}: {report.num_objects} objects")
        manifests = [o.manifest for o in find_outputs(store) if o.manifest and not o.is_lost]
        for manifest in manifests:
            missing = [key for key in manifest.file_keys() if not store.exists(key)]
            if missing and not self._counts["losses"]:
                return f"broken storage: {manifest.stage_name} misses {missing}"
        if manifests and rng.random() < 0.15:
            self._lose(rng.choice(manifests))
        return ""

    def _lose(self, manifest: Manifest) -> None:
        store = self._settings.open_store()
        keys = [manifest.file_key(file) for file in manifest.files]
        keys += [manifest.index_key, layout.manifest(manifest.fingerprint)]
        key = self._rng.choice(keys)
        path = Path(store.uri(key))
        if path.exists() and self._rng.random() < 0.5:
            content = bytearray(path.read_bytes())
            content[self._rng.randrange(len(content))] ^= 1 << self._rng.randrange(8)
            path.write_bytes(content)
        else:
            path.unlink(missing_ok=True)
        self._counts["losses"] += 1
        self._steps.append(f"lose {key}")


def _finished(
    runs: LocalRuns, options: PlannerOptions, sql: str, **changes: Any
) -> tuple[pa.Table, list[StageResult]]:
    context = runs.context(runs.plan("q", options, sql), **changes)
    with tasks_here():
        done = run_stages(context)
    runs.end(context)
    return done


def _positional(table: pa.Table) -> pa.Table:
    return table.rename_columns([f"c{i}" for i in range(table.num_columns)])


def _age(folder: Path, days: float) -> None:
    """Make everything in a storage root older."""
    for path in folder.rglob("*"):
        if path.is_file():
            moment = path.stat().st_mtime - days * 86_400
            os.utime(path, (moment, moment))
