"""Everything that an executor imports to run a task: its spec, its inputs, the task, its report.

The code runs on Spark executors, so it imports neither PySpark's driver API nor Dagster.
"""

from __future__ import annotations
