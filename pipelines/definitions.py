"""What Dagster loads: every query in `queries/` over the tables of `catalog.yaml`.

`STAGECOACH_CATALOG` names another catalog file, `STAGECOACH_STORAGE_ROOT` another place for
shuffles and results than `.stagecoach` in the repository. Where a table's data is missing, its
queries are shown with the reason and without stages; `make demo` makes the data.
"""

import os
from pathlib import Path

from assets import build_definitions

HERE = Path(__file__).resolve().parent

defs = build_definitions(
    queries=HERE / "queries",
    catalog=os.environ.get("STAGECOACH_CATALOG", HERE / "catalog.yaml"),
    storage=os.environ.get("STAGECOACH_STORAGE_ROOT", HERE.parent / ".stagecoach" / "storage"),
    missing_data_hint="`make demo` generates the TPC-H tables; reload the code location after it.",
)
