"""Dagster schedules: of upkeep, and of queries whose front matter has a `schedule`.

A partitioned query runs for the last window that is over, or for all keys of a list.
"""

import datetime
from collections.abc import Sequence

import dagster as dg

from stagecoach.assets.execution.executor import AssetJob
from stagecoach.assets.project.front_matter import Schedule, StaticPartitions, TimePartitions
from stagecoach.assets.project.partitions import partitions_definition
from stagecoach.assets.project.queries import Query

SCHEDULE_SUFFIX = "_schedule"


def build_schedule(
    query: Query,
    job: AssetJob,
    *,
    status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.RUNNING,
) -> dg.ScheduleDefinition | None:
    """The schedule that a query's front matter asks for, or None.

    Args:
        query: The query.
        job: Its job.
        status: Whether the schedule runs before anybody has turned it on or off in the UI.
    """
    schedule = query.front_matter.schedule
    if schedule is None:
        return None

    @dg.schedule(
        name=f"{query.job_name}{SCHEDULE_SUFFIX}",
        job=job,
        cron_schedule=schedule.cron,
        execution_timezone=schedule.timezone,
        default_status=status,
        description=_description(query, schedule),
    )
    def tick(
        context: dg.ScheduleEvaluationContext,
    ) -> "Sequence[dg.RunRequest] | dg.SkipReason":
        return _requests(query, context)

    return tick


def build_upkeep_schedule(
    job: dg.JobDefinition,
    task: str,
    cron: str,
    timezone: str,
    *,
    status: dg.DefaultScheduleStatus,
) -> dg.ScheduleDefinition:
    """The schedule of a job that looks after the storage.

    Args:
        job: The job.
        task: What it does, for the description.
        cron: When, as five fields.
        timezone: Of `cron`, an IANA name.
        status: Whether the schedule runs before anybody has turned it on or off in the UI.
    """
    return dg.ScheduleDefinition(
        name=f"{job.name}{SCHEDULE_SUFFIX}",
        # By its name: components give jobs metadata, and so make others of them.
        job_name=job.name,
        cron_schedule=cron,
        execution_timezone=timezone,
        default_status=status,
        description=f"{task} ({cron}, {timezone})",
    )


def _requests(
    query: Query, context: dg.ScheduleEvaluationContext
) -> "Sequence[dg.RunRequest] | dg.SkipReason":
    partitions = query.front_matter.partitions
    if partitions is None:
        return [dg.RunRequest()]
    if isinstance(partitions, StaticPartitions):
        tick = context.scheduled_execution_time.isoformat()
        return [dg.RunRequest(run_key=f"{tick} {k}", partition_key=k) for k in partitions.keys]
    key = _last_key(partitions, context.scheduled_execution_time)
    if key is None:
        first = f"{partitions.start:%Y-%m-%d %H:%M}"
        return dg.SkipReason(f"no window has ended yet; the first one begins {first}")
    return [dg.RunRequest(partition_key=key)]


def _last_key(partitions: TimePartitions, moment: datetime.datetime) -> str | None:
    """The key of the last window that is over at the moment."""
    definition = partitions_definition(partitions)
    found: list[str | None] = []
    with dg.partition_loading_context(effective_dt=moment):
        found.append(definition.get_last_partition_key())
    return found[0]


def _description(query: Query, schedule: Schedule) -> str:
    what = query.front_matter.description.split("\n", 1)[0] or f"Runs the query {query.name}"
    return f"{what} ({schedule.cron}, {schedule.timezone})"
