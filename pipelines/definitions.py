"""What Dagster loads: every query in `queries/` over the tables of `catalog.yaml`.

`STAGECOACH_CATALOG` names another catalog file, `STAGECOACH_STORAGE_ROOT` another place for
shuffles and results than `.stagecoach` in the repository. Where a table's data is missing, its
queries are shown with the reason and without stages; `make demo` makes the data.

With compiled plans in `plans/` (`stagecoach compile`) it loads without looking at a table.
"""

import os
from pathlib import Path

from assets import build_definitions

HERE = Path(__file__).resolve().parent
PLANS = HERE / "plans"

defs = build_definitions(
    queries=HERE / "queries",
    catalog=os.environ.get("STAGECOACH_CATALOG", HERE / "catalog.yaml"),
    storage=os.environ.get("STAGECOACH_STORAGE_ROOT", HERE.parent / ".stagecoach" / "storage"),
    plans=PLANS if PLANS.is_dir() else None,
    missing_data_hint="`make demo` generates the TPC-H tables; reload the code location after it.",
)
