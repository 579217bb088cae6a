"""TPC-H over several formats in one run: `python -m benchmarks.lake --parquet DATA --folder LAKE`.

Each query runs over every format in turn, in one Spark session, and its result is compared with
plain Spark's over the Parquet files. `--spark-csv` runs Spark over the CSV files, too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.compare import difference
from benchmarks.contenders import Contender, Sample, SparkSql, Stagecoach
from benchmarks.lake.tables import WRITERS, catalog_over
from benchmarks.report import geometric_mean
from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.session import get_session, stop_sessions
from stagecoach.planner.options import PlannerOptions
from stagecoach.tpch import TABLES

_QUERIES = Path(__file__).parents[2] / "pipelines" / "queries"
_RESULT = Path(__file__).parents[1] / "results" / "lake.json"
_SPARK, _SPARK_CSV = "spark", "spark-csv"


@dataclass
class Measured:
    """Seconds of every query by contender, and what differs.

    Args:
        seconds: The best of the repeats, by query and contender.
        problems: What differs from Spark, a line each.
    """

    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def ratios(self, to: str) -> Mapping[str, float]:
        """The geometric mean over the queries of each contender's time by that of one of them."""
        names = next(iter(self.seconds.values()), {})
        return {
            name: geometric_mean([found[name] / found[to] for found in self.seconds.values()])
            or 0.0
            for name in names
        }

    def sums(self) -> Mapping[str, float]:
        """Seconds of all queries by contender."""
        names = next(iter(self.seconds.values()), {})
        return {name: sum(found[name] for found in self.seconds.values()) for name in names}


def main() -> int:
    """Run the queries and return the exit code: 1 if a result differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parquet", type=Path, required=True, help="a folder for each table")
    parser.add_argument("--folder", type=Path, required=True, help="where the tables are, or go")
    parser.add_argument("--formats", default=",".join(WRITERS), help="by default all")
    parser.add_argument("--queries", default="", help="such as q01,q06; all by default")
    parser.add_argument("--repeat", type=int, default=2, help="the best one counts")
    parser.add_argument("--spark-csv", action="store_true", help="Spark over CSV files as well")
    arguments = parser.parse_args()
    formats = arguments.formats.split(",")
    catalogs = {
        name: catalog_over(name, arguments.parquet, arguments.folder / name) for name in formats
    }
    wanted = [name for name in arguments.queries.split(",") if name]
    paths = [p for p in sorted(_QUERIES.glob("q[0-9][0-9].sql")) if not wanted or p.stem in wanted]
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for name, catalog_file in catalogs.items():
            root = stack.enter_context(TemporaryDirectory())
            session = Session(
                catalog=load_catalog(catalog_file),
                settings=EngineSettings(storage_root=root),
                options=PlannerOptions(),
            )
            contenders[name] = Stagecoach(stack.enter_context(session))
        contenders[_SPARK] = SparkSql(session, arguments.parquet)
        if arguments.spark_csv:
            contenders[_SPARK_CSV] = CsvSpark(session, arguments.folder / "csv")
        measured = measure(contenders, paths, arguments.repeat)
    stop_sessions()
    sums, ratios = measured.sums(), measured.ratios(formats[0])
    for name in contenders:
        print(f"{name:12}{sums[name]:10.1f} s{ratios[name]:8.2f} x {formats[0]}")
    print(f"{len(measured.problems)} result(s) of {len(paths)} queries differ")
    result = {"seconds": measured.seconds, "sums": sums, "geometric_means": ratios}
    _RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if measured.problems else 0


def measure(contenders: Mapping[str, Contender], paths: Sequence[Path], repeat: int) -> Measured:
    """Run each query with each contender in turn.

    Args:
        contenders: By name; that of Spark is what the others are compared with.
        paths: Files of the queries.
        repeat: How often; the best time counts.
    """
    measured = Measured()
    for path in paths:
        sql = path.read_text(encoding="utf-8")
        best: dict[str, Sample] = {}
        for _ in range(repeat):
            for name, contender in contenders.items():
                sample = contender.run(path.stem, sql)
                if name not in best or sample.seconds < best[name].seconds:
                    best[name] = sample
                contender.clean_up()
        measured.seconds[path.stem] = {name: sample.seconds for name, sample in best.items()}
        for name, sample in best.items():
            problem = difference(best[_SPARK].table, sample.table, sql)
            slow = sorted({str(s["engine"]) for s in sample.stages} - {"duckdb"})
            if problem is not None:
                measured.problems.append(f"{path.stem} over {name}: {problem}")
            print(
                f"{path.stem} {name:12}{sample.seconds:8.2f}"
                f"{f'  {slow}' if slow else ''}{f'  DIFFERS: {problem}' if problem else ''}",
                flush=True,
            )
    return measured


class CsvSpark(SparkSql):
    """Plain Spark over the CSV files, with the same declared columns and options."""

    def __init__(self, session: Session, data: Path) -> None:
        self._spark = get_session(session.settings).newSession()
        catalog = load_catalog(data / "catalog.yaml")
        for table in TABLES:
            columns = catalog.state(table).info.columns
            ddl = ", ".join(f"{column.name} {column.dtype}" for column in columns)
            reader = self._spark.read.schema(ddl).options(header=True, sep="|")
            reader.csv(str(data / table)).createOrReplaceTempView(table)


if __name__ == "__main__":
    sys.exit(main())
