"""A driver of plain Spark SQL over local Parquet files, which all workers of this machine reach.

python -m benchmarks.cluster_faults.plain_driver
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.cluster_faults.queries import rows_as_text
from benchmarks.cluster_faults.telling import Teller, serve
from stagecoach.tpch import TABLES


def main() -> None:
    """Run what each line asks for."""
    serve(_run)


def _run(request: Mapping[str, Any], teller: Teller) -> None:
    conf = {**request["conf"], "spark.master": request["master"], "spark.app.name": "stagecoach"}
    spark = SparkSession.builder.config(map=conf).getOrCreate()
    for table in TABLES:
        files = spark.read.parquet((Path(request["tables"]) / table).as_uri())
        files.createOrReplaceTempView(table)
    teller.tell("planned", stages=0)
    rows = spark.sql(request["sql"]).collect()
    teller.tell("ended", ok=True, stages={}, rows=rows_as_text(rows))


if __name__ == "__main__":
    main()
