"""Partitions of queries: Dagster's definitions, the window of a run, and what a reader needs.

    orders_by_day (daily) ──same day──▶ revenue (daily) ──last 7 days──▶ trend (daily)

A reader of a partitioned table needs those of its partitions that the SQL's own filters over the
table's partition column let through; see `stagecoach.planner.pruning.time_range`.
"""

import datetime
import itertools
import warnings
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from stagecoach.assets.project.front_matter import (
    PARTITION_END,
    PARTITION_KEY,
    PARTITION_START,
    FrontMatter,
    Partitions,
    StaticPartitions,
    TimePartitions,
)
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.pruning.time_range import reads_key_only, time_range

# A window of every length of month, so that "the last month" is no number of days by chance.
_SAMPLES = 30
_DAY = datetime.timedelta(days=1)
_HOUR = datetime.timedelta(hours=1)
_LEAST = datetime.timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class RunWindow:
    """What part of a partitioned query a run makes.

    Args:
        keys: Dagster's partition keys, at least one.
        start: Where the first window begins, in its zone; None for a list of keys.
        end: Where the last window ends (exclusive).
    """

    keys: tuple[str, ...]
    start: datetime.datetime | None = None
    end: datetime.datetime | None = None


def partitions_definition(partitions: Partitions) -> dg.PartitionsDefinition[str]:
    """Dagster's definition of a query's partitions."""
    if isinstance(partitions, StaticPartitions):
        return dg.StaticPartitionsDefinition(list(partitions.keys))
    start, end = partitions.start, partitions.end
    match partitions.by:
        case "hourly":
            return dg.HourlyPartitionsDefinition(
                start_date=start, end_date=end, timezone=partitions.timezone
            )
        case "daily":
            return dg.DailyPartitionsDefinition(
                start_date=start, end_date=end, timezone=partitions.timezone
            )
        case "weekly":
            # Dagster counts the days of a week from Sunday, Python from Monday.
            return dg.WeeklyPartitionsDefinition(
                start_date=start,
                end_date=end,
                timezone=partitions.timezone,
                day_offset=start.isoweekday() % 7,
            )
        case "monthly":
            return dg.MonthlyPartitionsDefinition(
                start_date=start, end_date=end, timezone=partitions.timezone
            )


def backfill_policy(front_matter: FrontMatter) -> dg.BackfillPolicy | None:
    """How a backfill is cut into runs; None for a query without partitions."""
    if front_matter.partitions is None:
        return None
    policy = front_matter.backfill_policy
    if policy.is_single_run:
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(policy.max_partitions_per_run or 1)


def run_window(
    context: dg.AssetExecutionContext | dg.OpExecutionContext, partitions: Partitions | None
) -> RunWindow | None:
    """The part that the run is to make; None for a query without partitions.

    Raises:
        dg.Failure: The query is partitioned and the run names no partition.
    """
    if partitions is None:
        return None
    # `has_partition_key_range` is false for a run of one partition: both must be asked.
    if not (context.has_partition_key or context.has_partition_key_range):
        raise dg.Failure(
            "the query is partitioned, but the run names no partition; "
            "choose one, or a range, in the launchpad or with --partition",
            allow_retries=False,
        )
    keys = tuple(context.partition_keys)
    if isinstance(partitions, StaticPartitions):
        return RunWindow(keys=keys)
    window = context.partition_time_window
    return RunWindow(keys=keys, start=window.start, end=window.end)


def window_values(window: RunWindow, partitions: Partitions) -> Mapping[str, str]:
    """Texts of the parameters that a run binds, by name.

    A range of several keys has no single `:partition_key`, a list of keys has no start and end.
    """
    values: dict[str, str] = {}
    if len(window.keys) == 1:
        values[PARTITION_KEY] = window.keys[0]
    if isinstance(partitions, TimePartitions) and window.start and window.end:
        zone = zoneinfo.ZoneInfo(partitions.timezone)
        for name, moment in ((PARTITION_START, window.start), (PARTITION_END, window.end)):
            values[name] = _text(moment.astimezone(zone), partitions.window_type)
    return values


def key_windows(partitions: TimePartitions, window: RunWindow) -> Sequence[tuple[str, RunWindow]]:
    """Each key of a run with the window that is its own."""
    definition = partitions_definition(partitions)
    if not isinstance(definition, dg.TimeWindowPartitionsDefinition):
        raise TypeError(type(definition).__name__)
    found: list[tuple[str, RunWindow]] = []
    for key in window.keys:
        own = definition.time_window_for_partition_key(key)
        found.append((key, RunWindow(keys=(key,), start=own.start, end=own.end)))
    return found


def _text(moment: datetime.datetime, kind: str) -> str:
    if kind == "date":
        return moment.date().isoformat()
    # With its zone, so that it is the same moment whatever the session's zone is.
    return moment.isoformat(" ") if kind == "timestamp" else moment.date().isoformat()


# ---------------------------------------------------------------- what a reader needs


def partition_mapping(
    graph: StageGraph, table: str, reader: Partitions | None, made: Partitions | None
) -> dg.PartitionMapping | None:
    """Which partitions of a table a partition of its reader needs.

    Args:
        graph: The reader's plan.
        table: The table, as the plan names it.
        reader: The reader's partitions.
        made: Those of the query that makes the table.

    Returns:
        The mapping; None where Dagster's own default is right.
    """
    if reader is None or made is None:
        return None
    if isinstance(made, StaticPartitions) and isinstance(reader, StaticPartitions):
        return _key_mapping(graph, table, reader, made)
    if isinstance(made, StaticPartitions) or isinstance(reader, StaticPartitions):
        return dg.AllPartitionMapping()
    offsets = _offsets(graph, table, reader, made)
    if offsets is None:
        return dg.AllPartitionMapping()
    start, end = offsets
    with warnings.catch_warnings():
        # In beta since Dagster 1.6; without it the first windows could never be made.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.TimeWindowPartitionMapping(
            start_offset=start, end_offset=end, allow_nonexistent_upstream_partitions=True
        )


def _key_mapping(
    graph: StageGraph, table: str, reader: StaticPartitions, made: StaticPartitions
) -> dg.PartitionMapping:
    if (
        made.column is not None
        and set(reader.keys) <= set(made.keys)
        and reads_key_only(graph, table, made.column, PARTITION_KEY)
    ):
        return dg.IdentityPartitionMapping()
    return dg.AllPartitionMapping()


def _offsets(
    graph: StageGraph, table: str, reader: TimePartitions, made: TimePartitions
) -> tuple[int, int] | None:
    """How many windows of the table the first and last one read lie from the reader's own.

    None where that is not a fixed number, or without bound.
    """
    if made.column is None or made.timezone != reader.timezone:
        return None
    # Dates have no zone; moments are the windows' only where the session's zone is theirs.
    if graph.time_zone != made.timezone and _kind(graph, table, made.column) != "date":
        return None
    found: set[tuple[int, int]] = set()
    for start, end in itertools.islice(_windows(reader), _SAMPLES):
        bounds = time_range(graph, table, made.column, {PARTITION_START: start, PARTITION_END: end})
        if bounds.low is None or bounds.high is None or bounds.high <= bounds.low:
            return None
        first = _number(made, bounds.low) - _number(made, start)
        last = _number(made, bounds.high - _LEAST) - _number(made, end - _LEAST)
        found.add((first, last))
        if len(found) > 1:
            return None
    return next(iter(found), None)


def _kind(graph: StageGraph, table: str, column: str) -> str | None:
    for name, fields in graph.tables:
        if name.lower() == table.lower():
            return next((f.dtype.kind for f in fields if f.name.lower() == column.lower()), None)
    return None


def _windows(partitions: TimePartitions) -> Iterator[tuple[datetime.datetime, datetime.datetime]]:
    """Its windows from the first on, in wall-clock time."""
    start = partitions.start
    while True:
        match partitions.by:
            case "hourly":
                end = start + _HOUR
            case "daily":
                end = start + _DAY
            case "weekly":
                end = start + 7 * _DAY
            case "monthly":
                end = (start.replace(day=1) + 32 * _DAY).replace(day=1)
        yield start, end
        start = end


def _number(partitions: TimePartitions, moment: datetime.datetime) -> int:
    """A number of the window that holds the moment: one more than that of the window before."""
    match partitions.by:
        case "hourly":
            return (moment - datetime.datetime.min) // _HOUR
        case "daily":
            return moment.date().toordinal()
        case "weekly":
            return (moment.date().toordinal() - partitions.start.date().toordinal()) // 7
        case "monthly":
            return moment.year * 12 + moment.month
