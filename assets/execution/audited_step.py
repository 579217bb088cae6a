"""The step of a result that is audited: it is published only if it passes its checks.

A step that fails its checks leaves the result staged, so a retry, a re-execution or a later run of
the same rows goes on from there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from stagecoach.assets.execution.audit import AUDIT_FAILED, Audit
from stagecoach.assets.execution.engine import Stages
from stagecoach.assets.execution.stage_places import Report
from stagecoach.assets.execution.step import Metadata, StageStep

# It imports pyspark, which loading a code location need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.publishing.publish import Published, Staged


@dataclass(frozen=True, kw_only=True)
class AuditedStep(StageStep[Report]):
    """What the step of a head stage does whose result is audited.

    Args:
        audit: What the result must pass.
    """

    audit: Audit

    def run_audited(
        self, context: dg.AssetExecutionContext
    ) -> Iterator[Report | dg.AssetCheckResult]:
        """Run the stage, check its result and publish it; yield all that Dagster is told.

        In a run of checks alone they read what is published, and nothing else is done.

        Raises:
            dg.Failure: The result has not passed its checks; or as `run`.
            dg.RetryRequested: It failed, and a retry may help.
        """
        key = self.places.assets[self.stage.stage_id]
        selected = {k.name for k in context.op_execution_context.selected_asset_check_keys}
        request, runner = self.request(context)
        if not is_selected(context, key):
            with self.watched(context, runner, request):
                results = self.audit.results(context, runner, key, only=selected)
            yield from results
            return
        with self.watched(context, runner, request):
            metadata = runner.run_stage(request)
            staged: Staged | None = None
            published: Published | None = None
            if isinstance(runner, Stages):
                staged, published = _apart(runner.stage(request, self.target(context)))
        with self.watched(context, runner, request):
            wanted = "" if staged is None else staged.version.id
            results = self.audit.results(context, runner, key, wanted)
            failures = self.audit.failures(results)
            is_accepted = (
                bool(failures)
                and isinstance(runner, Stages)
                and runner.is_accepted(self.planned.query.table, _fingerprint(staged, published))
            )
        if is_accepted:
            context.log.warning(self.audit.accepted(failures))
            results = [self.audit.as_warning(result) for result in results]
        yield from (result for result in results if result.check_name in selected)
        if failures and not is_accepted:
            if staged is not None:
                text = self.audit.refused(staged.version, failures)
            else:
                text = self.audit.late(failures, is_published=published is not None)
            context.log.error(text)
            page = self.end(context, runner, request, text)
            marked = {AUDIT_FAILED: dg.MetadataValue.bool(True), **page}
            raise dg.Failure(text, marked, allow_retries=False)
        told: Metadata = {}
        if isinstance(runner, Stages):
            with self.watched(context, runner, request):
                if staged is not None:
                    published = runner.publish_staged(staged)
            if published is not None:
                told = self.told(context, runner, published)
        yield self.report(context, runner, request, metadata, told)


def is_selected(context: dg.AssetExecutionContext, key: dg.AssetKey) -> bool:
    """Whether a run makes an asset, and not only checks of it."""
    return key in context.job_def.asset_layer.executable_asset_keys


def _fingerprint(staged: "Staged | None", published: "Published | None") -> str:
    """Identity of the rows in the table: a merge of a result has another than the result."""
    if staged is not None:
        return staged.version.fingerprint
    return "" if published is None else published.fingerprint


def _apart(
    outcome: "Staged | Published",
) -> "tuple[Staged | None, Published | None]":
    from stagecoach.infra.publishing.publish import Staged

    return (outcome, None) if isinstance(outcome, Staged) else (None, outcome)
