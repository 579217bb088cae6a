"""Audits a result: its checks read what is staged, and readers see it only if it passes.

stage ─▶ checks ─┬▶ publish, and the asset is materialized
└▶ it stays staged, the step fails, and what reads the table does not start
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from stagecoach.assets.execution.check_runs import (
    REPLAY,
    failing_rows,
    replayed_run,
    to_check_result,
)
from stagecoach.assets.execution.engine import StageRunner
from stagecoach.assets.plans.checks import PlannedCheck
from stagecoach.assets.project.queries import Query
from stagecoach.assets.report.metadata import NAMESPACE
from stagecoach.planner.text.sizes import format_rows

if TYPE_CHECKING:
    from stagecoach.infra.formats.staged_version import StagedVersion

AUDIT_FAILED = f"{NAMESPACE}/audit_failed"
"""Metadata of the failure of a step whose result has failed its checks."""
NO_ID = ""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The checks of a query whose results are published only if they pass.

    Args:
        query: The query.
        checks: Its planned checks; those that do not block are evaluated with the others.
    """

    query: Query
    checks: tuple[PlannedCheck, ...]

    def results(
        self,
        context: dg.AssetExecutionContext,
        runner: StageRunner,
        key: dg.AssetKey,
        staged_id: str = NO_ID,
        only: Collection[str] | None = None,
    ) -> Sequence[dg.AssetCheckResult]:
        """Evaluate the checks.

        Args:
            context: Of the step.
            runner: What runs them.
            key: Asset of the query's result.
            staged_id: What is looked at; empty for what is published.
            only: Names of the checks; None for all.

        Raises:
            StagecoachError: A check could not be evaluated.
        """
        staged: Mapping[str, str] = {self.query.table.lower(): staged_id} if staged_id else {}
        return [
            to_check_result(
                planned.check,
                key,
                failing_rows(context, self.query, planned, runner, staged),
                replayed_run(context, self.query),
            )
            for planned in self.checks
            if only is None or planned.check.check_name in only
        ]

    def failures(self, results: Sequence[dg.AssetCheckResult]) -> Sequence[dg.AssetCheckResult]:
        """Return the results that keep a result from being published."""
        blocking = {p.check.check_name for p in self.checks if p.check.is_blocking}
        return [r for r in results if not r.passed and r.check_name in blocking]

    def refused(self, staged: "StagedVersion", failures: Sequence[dg.AssetCheckResult]) -> str:
        """Return why a result is not published, and what can be done with it."""
        table, wanted = staged.table, staged.id
        rows = format_rows(staged.num_rows)
        sql = f"SELECT * FROM `{table}@staged-{wanted}`"
        return "\n".join(
            [
                f"query '{self.query.name}': {_failed(failures)}; the result is not published, and "
                f"readers of '{table}' see what they saw before",
                *_lines(failures),
                f"the result waits as the staged version {wanted} ({rows}):",
                f"  look at it: echo '{sql}' | stagecoach query -",
                f"  publish it all the same: stagecoach tables publish {table} {wanted}",
                f"  discard it: stagecoach tables discard {table} {wanted}",
                *_replays(failures),
            ]
        )

    def accepted(self, failures: Sequence[dg.AssetCheckResult]) -> str:
        """Return what is logged of a result that somebody has published by hand."""
        return "\n".join(
            [
                f"query '{self.query.name}': {_failed(failures)}, but the result was published by "
                "hand, so the run goes on",
                *_lines(failures),
            ]
        )

    def as_warning(self, result: dg.AssetCheckResult) -> dg.AssetCheckResult:
        """Return a result that blocks nothing."""
        return result._replace(severity=dg.AssetCheckSeverity.WARN)

    def late(self, failures: Sequence[dg.AssetCheckResult], *, is_published: bool) -> str:
        """Return why a step fails whose result is not staged.

        Args:
            failures: What the checks found.
            is_published: Whether an earlier run has published the result.
        """
        text = f"query '{self.query.name}': {_failed(failures)}"
        if is_published:
            text += (
                f"; an earlier run has published the same result, so readers of "
                f"'{self.query.table}' see it: correct the data or the query and run it again"
            )
        return "\n".join([text, *_lines(failures)])


def _failed(failures: Sequence[dg.AssetCheckResult]) -> str:
    return f"{len(failures)} blocking check{'s' if len(failures) > 1 else ''} failed"


def _replays(failures: Sequence[dg.AssetCheckResult]) -> list[str]:
    """How to see where the failing rows come from."""
    commands = [str(r.metadata[REPLAY].value) for r in failures if REPLAY in r.metadata]
    return [f"  see where failing rows come from: {command}" for command in commands]


def _lines(failures: Sequence[dg.AssetCheckResult]) -> list[str]:
    return [f"  {result.check_name}: {result.description}" for result in failures]
