"""Where the stages of a query are in Dagster: assets of their own, or steps of the query's asset.

Steps run stages in the same way for both. What differs is how a step reports, and where another
process finds what it reported.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import dagster as dg

from stagecoach.assets.report.metadata import StageMetadata

# Newest materializations of an asset in which that of a run is looked for: other runs of the same
# query, such as those of a backfill, may have ended in the meantime.
MOST_RUNS = 50

Metadata = Mapping[str, dg.MetadataValue[Any]]
Report = TypeVar("Report")
"""What a step returns to Dagster."""


@dataclass(frozen=True)
class StagePlaces(ABC, Generic[Report]):
    """The places of a query's stages.

    Args:
        assets: The asset that each stage belongs to, by number of the stage.
    """

    assets: Mapping[int, dg.AssetKey]

    def name(self, stage_id: int) -> str:
        """What a user materializes to run the stage."""
        return self.assets[stage_id].to_user_string()

    @abstractmethod
    def report(
        self,
        context: dg.AssetExecutionContext,
        stage_id: int,
        metadata: Metadata,
        version: dg.DataVersion | None,
    ) -> Report:
        """Return what the step of a stage returns to Dagster.

        Args:
            context: Of the step.
            stage_id: The stage, whose output is committed.
            metadata: What the stage and its run tell.
            version: Fingerprint of the output.
        """

    @abstractmethod
    def reported(
        self, instance: dg.DagsterInstance, run_id: str, stage_id: int
    ) -> tuple[float, StageMetadata] | None:
        """Return when the step of a stage ended in a run, in seconds since 1970, and its report.

        Returns:
            None where the run did not run the stage.
        """


class StageAssets(StagePlaces["dg.MaterializeResult[None]"]):
    """Each stage is an asset of its own."""

    def report(
        self,
        context: dg.AssetExecutionContext,
        stage_id: int,
        metadata: Metadata,
        version: dg.DataVersion | None,
    ) -> "dg.MaterializeResult[None]":
        """Return the materialization of the stage's asset."""
        key = self.assets[stage_id]
        return dg.MaterializeResult(asset_key=key, metadata=metadata, data_version=version)

    def reported(
        self, instance: dg.DagsterInstance, run_id: str, stage_id: int
    ) -> tuple[float, StageMetadata] | None:
        """Look through the asset's newest materializations."""
        records = instance.fetch_materializations(self.assets[stage_id], limit=MOST_RUNS).records
        for record in records:
            materialization = record.asset_materialization
            if record.run_id == run_id and materialization is not None:
                return record.timestamp, StageMetadata.from_dagster(materialization.metadata)
        return None


@dataclass(frozen=True)
class StageOps(StagePlaces["dg.Output[None]"]):
    """Stages are ops of the query's one asset.

    Args:
        node: Name of the graph of ops, in which the asset is computed.
        head: The stage whose output the asset is.
    """

    node: str
    head: int

    @staticmethod
    def op_name(stage_id: int) -> str:
        """Name of a stage's op."""
        return f"stage_{stage_id}"

    def report(
        self,
        context: dg.AssetExecutionContext,
        stage_id: int,
        metadata: Metadata,
        version: dg.DataVersion | None,
    ) -> "dg.Output[None]":
        """Return the op's output; that of the head stage materializes the asset."""
        if version is not None and stage_id == self.head:
            context.op_execution_context.set_data_version(self.assets[stage_id], version)
        return dg.Output(None, metadata=metadata)

    def reported(
        self, instance: dg.DagsterInstance, run_id: str, stage_id: int
    ) -> tuple[float, StageMetadata] | None:
        """Look through the outputs of the run's steps."""
        step = f"{self.node}.{self.op_name(stage_id)}"
        records = instance.get_records_for_run(
            run_id, of_type=dg.DagsterEventType.STEP_OUTPUT, ascending=False
        ).records
        for record in records:
            entry = record.event_log_entry
            if entry.step_key == step and entry.dagster_event is not None:
                told = entry.dagster_event.step_output_data.metadata
                return entry.timestamp, StageMetadata.from_dagster(told)
        return None
