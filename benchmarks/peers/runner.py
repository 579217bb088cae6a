"""One engine, asked over standard input: `runner.py ENGINE FOLDER TABLE…`.

Needs nothing but that engine and pyarrow. FOLDER has a folder of Parquet files for each table. Each
line of the input is `{"sql": …, "result": FILE}`; the answer is `{"seconds": …}`, with the rows in
FILE as an Arrow IPC stream, or `{"error": …}`. The clock runs from the text to the rows in memory.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Run = Callable[[str], Any]
"""Answers SQL with a `pyarrow.Table`."""


def datafusion(folder: str, tables: list[str]) -> Run:
    """DataFusion, in this process."""
    from datafusion import SessionContext

    context = SessionContext()
    for table in tables:
        context.register_parquet(table, f"{folder}/{table}/")
    return lambda sql: context.sql(sql).to_arrow_table()


def sail(folder: str, tables: list[str]) -> Run:
    """Sail: a Spark Connect server in this process and Spark's client."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    # Something must refer to the server as long as it is to serve.
    server = SparkConnectServer()
    server.start()
    _, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    for table in tables:
        spark.read.parquet(f"{folder}/{table}").createOrReplaceTempView(table)

    def run(sql: str, _server: object = server) -> Any:
        return spark.sql(sql).toArrow()

    return run


def daft(folder: str, tables: list[str]) -> Run:
    """Daft with its runner for one machine."""
    import daft as engine

    frames = {table: engine.read_parquet(f"{folder}/{table}/*.parquet") for table in tables}
    return lambda sql: engine.sql(sql, **frames).to_arrow()


def polars(folder: str, tables: list[str]) -> Run:
    """Polars, its streaming engine."""
    import polars as engine

    context = engine.SQLContext(
        {table: engine.scan_parquet(f"{folder}/{table}/*.parquet") for table in tables}
    )
    return lambda sql: context.execute(sql).collect(engine="streaming").to_arrow()


ENGINES = {"datafusion": datafusion, "sail": sail, "daft": daft, "polars": polars}


def main() -> None:
    """Answer until the input ends."""
    name, folder, *tables = sys.argv[1:]
    # What an engine prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    run = ENGINES[name](folder, tables)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            start = time.perf_counter()
            table = run(order["sql"])
            answer: dict[str, Any] = {"seconds": time.perf_counter() - start}
            _write(table, order["result"])
        except BaseException as error:  # noqa: BLE001  # an engine may panic; the parent reports it
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), file=answers, flush=True)


def _write(table: Any, path: str) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    main()
