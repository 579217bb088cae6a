"""Compaction of tables: one asset and one job for each that can be compacted.

An asset `<table>/compaction` is materialized whenever files are to be merged: by hand, or by a
schedule of the job `compact_<table>`. It is safe beside readers, writers and other compactions.
"""

from collections.abc import Sequence

import dagster as dg

from stagecoach.assets.definitions.specs import TABLE_GROUP
from stagecoach.assets.definitions.translator import StageTranslator
from stagecoach.assets.execution.executor import AssetJob
from stagecoach.assets.report.metadata import NAMESPACE
from stagecoach.infra.formats.capabilities import TARGET_ROWS, CompactionReport, Compacts

KEY_PART = "compaction"


class CompactionConfig(dg.Config):
    """How a compaction is run.

    Args:
        target_rows: Maximum rows of a file.
    """

    target_rows: int = TARGET_ROWS


def build_compactions(
    tables: Sequence[Compacts], translator: StageTranslator
) -> Sequence[dg.AssetsDefinition]:
    """An asset for each table."""
    return [_compaction_asset(table, translator.get_table_key(table.name)) for table in tables]


def build_compaction_jobs(
    tables: Sequence[Compacts], assets: Sequence[dg.AssetsDefinition]
) -> Sequence[AssetJob]:
    """The job `compact_<table>` of each of them, so that it can have a schedule."""
    return [
        dg.define_asset_job(
            f"compact_{table.name.replace('.', '__')}",
            selection=dg.AssetSelection.assets(asset.key),
            description=f"Merge {table.file_noun}s of the table {table.name}",
        )
        for table, asset in zip(tables, assets, strict=True)
    ]


def compaction_metadata(report: CompactionReport, noun: str) -> dict[str, int | float]:
    """What a materialization tells of a compaction; shares are from 0 to 1.

    Args:
        report: What it came to.
        noun: What the format calls a file.
    """
    before, after = report.before, report.after
    return {
        f"{NAMESPACE}/{noun}s_before": before.num_files,
        f"{NAMESPACE}/{noun}s_after": after.num_files,
        f"{NAMESPACE}/rows_before": before.rows,
        f"{NAMESPACE}/rows_after": after.rows,
        f"{NAMESPACE}/bytes_before": before.num_bytes,
        f"{NAMESPACE}/bytes_after": after.num_bytes,
        f"{NAMESPACE}/overlap_share_before": round(before.overlap_share, 4),
        f"{NAMESPACE}/overlap_share_after": round(after.overlap_share, 4),
        f"{NAMESPACE}/merged_groups": report.merged,
        f"{NAMESPACE}/skipped_groups": report.skipped,
        f"{NAMESPACE}/table_version": report.version,
        f"{NAMESPACE}/seconds": round(report.seconds, 3),
    }


def _compaction_asset(table: Compacts, table_key: dg.AssetKey) -> dg.AssetsDefinition:
    key = dg.AssetKey([*table_key.path, KEY_PART])

    @dg.asset(
        key=key,
        deps=[table_key],
        group_name=TABLE_GROUP,
        kinds={"table", *table.file_kinds},
        description=f"Merges {table.file_noun}s of `{table.name}` that overlap: its rows stay what "
        "they are, and queries compare fewer of them.",
    )
    def run(
        context: dg.AssetExecutionContext, config: CompactionConfig
    ) -> "dg.MaterializeResult[None]":
        if not table.has_data():
            context.log.info("table %s has no data yet", table.name)
            return dg.MaterializeResult(metadata={f"{NAMESPACE}/merged_groups": 0})
        report = table.compact(target_rows=config.target_rows)
        return dg.MaterializeResult(metadata=compaction_metadata(report, table.file_noun))

    return run
