"""What Dagster loads: every query in `queries/` over the tables of `catalog.yaml`.

`STAGECOACH_CATALOG` names another catalog file. Shuffles and results are in `.stagecoach` of the
repository unless the settings name another place (`STAGECOACH_STORAGE_ROOT`, or `storage_root` in
the file that `STAGECOACH_SETTINGS` names). Where a table's data is missing, its queries are shown
with the reason and without stages; `make demo` makes the data.

With compiled plans in `plans/` (`stagecoach compile`) it loads without looking at a table.
"""

import os
from pathlib import Path

from stagecoach.assets import GarbageCollection, build_definitions, default_storage

HERE = Path(__file__).resolve().parent
PLANS = HERE / "plans"

defs = build_definitions(
    queries=HERE / "queries",
    catalog=os.environ.get("STAGECOACH_CATALOG", HERE / "catalog.yaml"),
    storage=default_storage(HERE.parent / ".stagecoach" / "storage"),
    plans=PLANS if PLANS.is_dir() else None,
    missing_data_hint="`make demo` generates the TPC-H tables; reload the code location after it.",
    # Every night, of what no run of the last week needs; turn it off under Automation.
    gc=GarbageCollection(older_than="7d", cron="0 3 * * *"),
)
