"""Garbage collection as a Dagster job with a schedule.

    build_definitions(..., gc=GarbageCollection(older_than="7d", cron="0 3 * * *"))

The job `collect_garbage` removes what `stagecoach gc` removes, of the storage root of the resource
`engine`, and is safe beside live runs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from stagecoach.assets.automation.schedules import build_upkeep_schedule
from stagecoach.assets.execution.engine import ENGINE_RESOURCE
from stagecoach.assets.report.metadata import NAMESPACE
from stagecoach.infra.upkeep.ages import parse_age

# It imports numpy and more, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.formats.protocol import Table
    from stagecoach.infra.upkeep.gc import GcReport

GC_JOB = "collect_garbage"
# Another name than the job's: Dagster serves no location in which an op and a job share theirs.
GC_OP = "remove_garbage"


@dataclass(frozen=True)
class GarbageCollection(dg.Resolvable):
    """When garbage is collected, and what is garbage; in `defs.yaml`, a mapping of these.

    Args:
        older_than: Only what is older is removed: a number and s, m, h, d or w.
        cron: When, as five fields.
        timezone: Of `cron`, an IANA name.
    """

    older_than: str = "7d"
    cron: str = "0 3 * * *"
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        parse_age(self.older_than)


class GcConfig(dg.Config):
    """Configuration of one collection.

    Args:
        older_than: Only what is older is removed: a number and s, m, h, d or w.
        dry_run: Whether to remove nothing and to tell what would be removed.
    """

    older_than: str = "7d"
    dry_run: bool = False


def build_gc_job(gc: GarbageCollection, tables: "Sequence[Table]" = ()) -> dg.JobDefinition:
    """The job `collect_garbage`; its configuration can be changed for a single run.

    Args:
        gc: What is garbage.
        tables: Tables of the catalog, of which some have garbage as well.
    """

    @dg.op(
        name=GC_OP,
        required_resource_keys={ENGINE_RESOURCE},
        description="Removes expired shuffles, folders of runs that are over, plans that no recent "
        "run used, old versions of published tables, and files that failed attempts left behind.",
    )
    def collect(context: dg.OpExecutionContext, config: GcConfig) -> None:
        from stagecoach.infra.upkeep.gc import collect_garbage
        from stagecoach.infra.upkeep.table_gc import collect_table_garbage

        store = getattr(context.resources, ENGINE_RESOURCE).store()
        age = parse_age(config.older_than)
        report = collect_garbage(store, older_than=age, dry_run=config.dry_run)
        context.log.info("%s", gc_text(report, dry_run=config.dry_run))
        expiring = [found for table in tables if (found := table.expires()) is not None]
        removed = collect_table_garbage(store, expiring, older_than=age, dry_run=config.dry_run)
        counts: Counter[str] = Counter()
        for expired in removed:
            counts.update(expired.metadata)
        told = {f"{NAMESPACE}/{name}": count for name, count in counts.items()}
        context.add_output_metadata({**gc_metadata(report), **told})

    # The executor of runs of assets is made for stages.
    @dg.job(
        name=GC_JOB,
        executor_def=dg.in_process_executor,
        config=dg.RunConfig(ops={GC_OP: GcConfig(older_than=gc.older_than)}),
        description="Removes from the storage what nothing needs any more, like `stagecoach gc`.",
    )
    def job() -> None:
        collect()

    return job


def build_gc_schedule(
    gc: GarbageCollection, job: dg.JobDefinition, *, status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    """The schedule `collect_garbage_schedule`."""
    task = f"Removes what is older than {gc.older_than}"
    return build_upkeep_schedule(job, task, gc.cron, gc.timezone, status=status)


def gc_text(report: "GcReport", *, dry_run: bool) -> str:
    """What a collection did, in one line."""
    verb = "would remove" if dry_run else "removed"
    return (
        f"{verb} {report.num_bytes} bytes in {report.num_objects} objects: "
        f"{len(report.expired)} shuffles, {len(report.runs)} runs, "
        f"{sum(table.num_versions for table in report.versions)} versions of tables, "
        f"{len(report.plans)} plans, {len(report.analyses)} analyses of plans, "
        f"{len(report.orphans)} uncommitted files; {report.num_kept} shuffles kept"
    )


def gc_metadata(report: "GcReport") -> dict[str, int]:
    """What a run of the job tells."""
    return {
        f"{NAMESPACE}/removed_objects": report.num_objects,
        f"{NAMESPACE}/removed_bytes": report.num_bytes,
        f"{NAMESPACE}/removed_shuffles": len(report.expired),
        f"{NAMESPACE}/removed_runs": len(report.runs),
        f"{NAMESPACE}/removed_plans": len(report.plans),
        f"{NAMESPACE}/removed_analyses": len(report.analyses),
        f"{NAMESPACE}/removed_orphans": len(report.orphans),
        f"{NAMESPACE}/kept_shuffles": report.num_kept,
        f"{NAMESPACE}/kept_bytes": report.kept_bytes,
    }
