"""How fast it is: TPC-H beside plain Spark SQL and DuckDB, and what an empty stage costs.

`python -m benchmarks` compares, `python -m benchmarks.overhead` measures stages that do nothing,
`python -m benchmarks.start` how long commands take to start, `python -m benchmarks.warm_start`
beside a warm Spark.
"""

from __future__ import annotations
