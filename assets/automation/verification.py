"""Verification of what is stored as a Dagster job with a schedule.

    build_definitions(..., verify=StorageVerification(cron="0 4 * * 0"))

The job `verify_storage` checks what `stagecoach storage verify` checks: the storage root of the
resource `engine`, and the tables of the catalog that have checksums. Its run fails if anything is
damaged, and its metadata lists the damages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from stagecoach.assets.automation.schedules import build_upkeep_schedule
from stagecoach.assets.execution.engine import ENGINE_RESOURCE
from stagecoach.assets.report.metadata import NAMESPACE

# It imports numpy and more, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.formats.protocol import Table
    from stagecoach.infra.integrity.findings import StoredDamage
    from stagecoach.infra.upkeep.verify.verification import VerifyReport

VERIFY_JOB = "verify_storage"
# Another name than the job's: Dagster serves no location in which an op and a job share theirs.
VERIFY_OP = "check_storage"

_MAX_LISTED = 200
"""Damages that are listed; more than these have one cause."""


@dataclass(frozen=True)
class StorageVerification(dg.Resolvable):
    """When the storage is verified; in `defs.yaml`, a mapping of these.

    Args:
        cron: When, as five fields.
        timezone: Of `cron`, an IANA name.
    """

    cron: str = "0 4 * * 0"
    timezone: str = "UTC"


class VerifyConfig(dg.Config):
    """Configuration of one verification.

    Args:
        table: Name of the only table to check; empty for everything.
    """

    table: str = ""


def build_verify_job(tables: "Sequence[Table]" = ()) -> dg.JobDefinition:
    """The job `verify_storage`.

    Args:
        tables: Tables of the catalog, of which those that have checksums are checked as well.
    """

    @dg.op(
        name=VERIFY_OP,
        required_resource_keys={ENGINE_RESOURCE},
        description="Checks that tables, outputs of stages, runs and plans are what was written, "
        "by their checksums.",
    )
    def check(context: dg.OpExecutionContext, config: VerifyConfig) -> None:
        from stagecoach.infra.upkeep.verify.verification import verify_storage

        store = getattr(context.resources, ENGINE_RESOURCE).store()
        verified = [found for table in tables if (found := table.verifies()) is not None]
        report = verify_storage(store, verified, table=config.table or None)
        metadata = verify_metadata(report)
        if report.damages:
            num_damaged = len({damage.uri for damage in report.damages})
            for damage in report.damages[:_MAX_LISTED]:
                context.log.error("%s", damage)
            raise dg.Failure(
                description=f"damaged: {num_damaged} of {report.num_objects} stored objects",
                metadata=metadata,
                allow_retries=False,
            )
        context.add_output_metadata(metadata)

    # The executor of runs of assets is made for stages.
    @dg.job(
        name=VERIFY_JOB,
        executor_def=dg.in_process_executor,
        description="Checks what is stored, as `stagecoach storage verify` does.",
    )
    def job() -> None:
        check()

    return job


def build_verify_schedule(
    verify: StorageVerification, job: dg.JobDefinition, *, status: dg.DefaultScheduleStatus
) -> dg.ScheduleDefinition:
    """The schedule `verify_storage_schedule`."""
    task = "Checks everything that is stored"
    return build_upkeep_schedule(job, task, verify.cron, verify.timezone, status=status)


def verify_metadata(report: "VerifyReport") -> dict[str, dg.MetadataValue]:
    """What a run of the job tells."""
    counts = {
        "checked_objects": report.num_objects,
        "checked_bytes": report.num_bytes,
        "damages": len(report.damages),
        "without_checksums": sum(report.unchecked.values()),
        "of_other_versions": sum(report.foreign.values()),
    }
    metadata: dict[str, dg.MetadataValue] = {
        f"{NAMESPACE}/{name}": dg.MetadataValue.int(count) for name, count in counts.items()
    }
    if report.damages:
        rows = [_row(damage) for damage in report.damages[:_MAX_LISTED]]
        metadata[f"{NAMESPACE}/damaged"] = dg.MetadataValue.table(rows)
    return metadata


def _row(damage: "StoredDamage") -> dg.TableRecord:
    return dg.TableRecord(
        {
            "object": damage.uri,
            "place": damage.place,
            "problem": damage.problem,
            "what to do": damage.remedy,
        }
    )
