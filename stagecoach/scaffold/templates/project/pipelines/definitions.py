"""What Dagster loads: every query in `queries/` over the tables of `catalog.yaml`."""

from pathlib import Path

from stagecoach.assets import GarbageCollection, build_definitions, default_storage

HERE = Path(__file__).resolve().parent
PLANS = HERE / "plans"

defs = build_definitions(
    queries=HERE / "queries",
    catalog=HERE / "catalog.yaml",
    storage=default_storage(HERE.parent / ".stagecoach" / "storage"),
    plans=PLANS if PLANS.is_dir() else None,
    # Every night, of what no run of the last week needs.
    gc=GarbageCollection(older_than="7d", cron="0 3 * * *"),
)
