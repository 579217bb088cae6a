"""TPC-H over CSV beside plain Spark over the same files: `python -m benchmarks.text_files.tpch`.

Writes the eight tables as CSV from Parquet (`stagecoach.tpch`), one file each, and runs all 22
queries with both, in one Spark session. Prints seconds, who ran the stages, and what differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from benchmarks.compare import difference
from benchmarks.contenders import SparkSql, Stagecoach
from stagecoach.api.session import Session
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.session import get_session, stop_sessions
from stagecoach.planner.options import PlannerOptions
from stagecoach.tpch import TABLES

_QUERIES = Path(__file__).parents[2] / "pipelines" / "queries"


def main() -> int:
    """Run the queries and return the exit code: 1 if a result differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parquet", type=Path, required=True, help="a folder for each table")
    parser.add_argument("--csv", type=Path, required=True, help="where the CSV files are, or go")
    parser.add_argument("--queries", default="", help="such as q01,q06; all by default")
    arguments = parser.parse_args()
    write_tables(arguments.parquet, arguments.csv)
    wanted = [name for name in arguments.queries.split(",") if name]
    paths = [p for p in sorted(_QUERIES.glob("q[0-9][0-9].sql")) if not wanted or p.stem in wanted]
    totals, problems = [0.0, 0.0], 0
    with TemporaryDirectory() as root:
        settings = EngineSettings(storage_root=root)
        catalog = load_catalog(arguments.csv / "catalog.yaml")
        with Session(catalog=catalog, settings=settings, options=PlannerOptions()) as session:
            ours, spark = Stagecoach(session), _CsvSpark(session, arguments.csv)
            print(f"{'query':8}{'stagecoach':>12}{'spark':>12}  engines")
            for path in paths:
                sql = path.read_text(encoding="utf-8")
                found, expected = ours.run(path.stem, sql), spark.run(path.stem, sql)
                problem = difference(expected.table, found.table, sql)
                problems += problem is not None
                engines = ", ".join(sorted({str(stage["engine"]) for stage in found.stages}))
                totals = [totals[0] + found.seconds, totals[1] + expected.seconds]
                print(
                    f"{path.stem:8}{found.seconds:12.2f}{expected.seconds:12.2f}  {engines}"
                    f"{'' if problem is None else f'  DIFFERS: {problem}'}",
                    flush=True,
                )
                ours.clean_up()
    print(f"{'sum':8}{totals[0]:12.2f}{totals[1]:12.2f}  {problems} of {len(paths)} differ")
    stop_sessions()
    return 1 if problems else 0


class _CsvSpark(SparkSql):
    """Plain Spark over the CSV files, with the same declared columns and options."""

    def __init__(self, session: Session, data: Path) -> None:
        self._spark = get_session(session.settings).newSession()
        catalog = load_catalog(data / "catalog.yaml")
        for table in TABLES:
            columns = catalog.state(table).info.columns
            ddl = ", ".join(f"{column.name} {column.dtype}" for column in columns)
            reader = self._spark.read.schema(ddl).options(header=True, sep="|")
            reader.csv(str(data / table)).createOrReplaceTempView(table)


def write_tables(parquet: Path, folder: Path) -> None:
    """Write the tables that are not there yet, and their catalog."""
    lines = ["tables:"]
    with duckdb.connect() as connection:
        for table in TABLES:
            source = f"read_parquet('{parquet / table}/*.parquet')"
            target = folder / table / "part.csv"
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                connection.execute(
                    f"COPY (SELECT * FROM {source}) TO '{target}' (HEADER, DELIMITER '|')"
                )
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            lines += [f"  {table}:", f"    location: {table}", "    format: csv"]
            lines += ["    options: {header: true, sep: '|'}", "    columns:"]
            names = {"INTEGER": "INT", "VARCHAR": "STRING"}
            lines += [f"      {name}: {names.get(kind, kind)}" for name, kind, *_ in described]
    (folder / "catalog.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
