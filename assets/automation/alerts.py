"""Alerts about failed runs, failed checks and late tables, for chats and pagers.

    run ended ─▶ Dagster's run status sensors ─┐
    table late ─▶ sensor with a cursor ────────┴▶ Alert ─▶ notify(alert), such as a `Webhook`

Dagster's own sensors see each run once; the checks of a run are read from its events. An alert has
a link to the run and no value of the data, because it may go to a chat that others read.
"""

import dataclasses
import http.client
import json
import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import dagster as dg
from dagster import DagsterEvent, RepositoryDefinition, RunStatusSensorContext
from dagster._core.definitions.freshness import FreshnessState

from stagecoach.assets.execution.audit import AUDIT_FAILED
from stagecoach.assets.report.metadata import NAMESPACE
from stagecoach.infra.telemetry.logs import redacted

logger = logging.getLogger(__name__)

FAILURE_SENSOR = "stagecoach_alert_failures"
CHECK_SENSOR = "stagecoach_alert_failed_checks"
LATE_SENSOR = "stagecoach_alert_late"
INTERVAL_SECONDS = 30
_CHECKS_SUFFIX = "__checks"

Kind = Literal["run_failed", "check_failed", "late"]


@dataclass(frozen=True, kw_only=True)
class Alert:
    """Something that somebody should look at.

    Args:
        kind: `run_failed`, `check_failed`, or `late` for a table older than its freshness check
            allows.
        query: The query.
        message: What happened, in one line, without values of the data.
        stage: Number of the stage that failed, if it was one.
        check: Name of the check that failed, if it was one.
        severity: `error`, or `warn` for a check that only warns.
        run_id: The run, if there is one.
        partition: The partition of the run, if it has one.
        owners: The query's owners, from its front matter.
        url: The run or the asset in Dagster's UI; empty where the UI's address is not known.
    """

    kind: Kind
    query: str
    message: str
    stage: int | None = None
    check: str | None = None
    severity: Literal["error", "warn"] = "error"
    run_id: str | None = None
    partition: str | None = None
    owners: tuple[str, ...] = ()
    url: str = ""

    @property
    def text(self) -> str:
        """The alert for people."""
        owners = f" ({', '.join(self.owners)})" if self.owners else ""
        of = f" for {self.partition}" if self.partition else ""
        link = f"\n{self.url}" if self.url else ""
        return f"{self.query}{of}: {self.message}{owners}{link}"


Notify = Callable[[Alert], None]


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """A `notify` that posts alerts as JSON: the fields of `Alert`, and `text` for chats.

    Args:
        url: Where to, http or https; often a secret, so it is in no message.
        timeout_seconds: Longest that one try may take.
        tries: How often it is tried, with a second more in between each time.
    """

    url: str = dataclasses.field(repr=False)
    timeout_seconds: float = 10.0
    tries: int = 3

    def __post_init__(self) -> None:
        if urllib.parse.urlsplit(self.url).scheme not in ("http", "https"):
            raise ValueError("the URL of a webhook begins with http:// or https://")

    def __call__(self, alert: Alert) -> None:
        """Post the alert.

        Raises:
            OSError: Every try failed.
        """
        body = json.dumps({**dataclasses.asdict(alert), "text": alert.text}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url, data=body, headers=headers, method="POST")
        for attempt in range(1, self.tries + 1):
            try:
                with urllib.request.urlopen(request, timeout=self.timeout_seconds):
                    return
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, urllib.error.HTTPError):
                    error.close()  # an answer that nobody reads, on an open connection
                if attempt == self.tries:
                    host = urllib.parse.urlsplit(self.url).hostname
                    reason = getattr(error, "reason", None) or type(error).__name__
                    raise OSError(f"webhook on {host}: {reason}") from None
                time.sleep(attempt)


def build_alert_sensors(
    notify: Notify,
    *,
    queries: Collection[str] | None = None,
    ui_url: str = "",
    running: bool = True,
) -> list[dg.SensorDefinition]:
    """Sensors that tell of failed runs, failed checks and late tables.

    Args:
        notify: Called once for each; an error of it is logged, and the alert is lost.
        queries: Names of the queries to tell of; all by default.
        ui_url: Address of Dagster's UI, for links.
        running: Whether they run before anybody has turned them on in the UI.
    """
    status = dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED
    teller = _Teller(notify, queries, ui_url.rstrip("/"))

    @dg.run_failure_sensor(
        name=FAILURE_SENSOR,
        default_status=status,
        minimum_interval_seconds=INTERVAL_SECONDS,
        description="Reports failed runs and their failed checks.",
    )
    def failures(context: dg.RunFailureSensorContext) -> None:
        assets = _Assets(context.repository_def)
        teller.tell(_run_alerts(context, assets, teller.ui_url))
        teller.tell(_check_alerts(context, assets, teller.ui_url))

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name=CHECK_SENSOR,
        default_status=status,
        minimum_interval_seconds=INTERVAL_SECONDS,
        description="Reports failed checks of runs that succeeded.",
    )
    def checks(context: RunStatusSensorContext) -> None:
        teller.tell(_check_alerts(context, _Assets(context.repository_def), teller.ui_url))

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        known = frozenset(json.loads(context.cursor or "[]"))
        assets = _Assets(context.repository_def)
        alerts, late = _late_alerts(context.instance, assets, known, teller.ui_url)
        skipped = None if teller.tell(alerts) else "no table has become late"
        return dg.SensorResult(skip_reason=skipped, cursor=json.dumps(sorted(late)))

    late_tables = dg.SensorDefinition(
        name=LATE_SENSOR,
        evaluation_fn=look,
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=status,
        description="Reports tables that are older than their freshness checks allow.",
    )
    return [failures, checks, late_tables]


class _Teller:
    """Calls `notify` for the alerts of some queries."""

    def __init__(self, notify: Notify, queries: Collection[str] | None, ui_url: str) -> None:
        self._notify = notify
        self._queries = None if queries is None else frozenset(queries)
        self.ui_url = ui_url

    def tell(self, alerts: Iterable[Alert]) -> int:
        count = 0
        for alert in alerts:
            if self._queries is not None and alert.query not in self._queries:
                continue
            count += 1
            try:
                self._notify(alert)
            except Exception:
                # Any: `notify` is its user's. One alert that cannot be told must not keep the
                # others from being told.
                logger.exception("alert was not delivered: %s of %s", alert.kind, alert.query)
        return count


class _Assets:
    """The assets of a code location: which query and stage each is, and whose."""

    def __init__(self, repository: RepositoryDefinition | None) -> None:
        self._metadata: dict[dg.AssetKey, Mapping[str, object]] = {}
        self._owners: dict[dg.AssetKey, tuple[str, ...]] = {}
        self._steps: dict[str, dg.AssetKey] = {}
        if repository is None:
            return
        for node in repository.asset_graph.asset_nodes:
            if f"{NAMESPACE}/query" in node.metadata:
                self._metadata[node.key] = node.metadata
                self._owners[node.key] = tuple(node.owners)
                self._steps["__".join(node.key.path)] = node.key

    @property
    def keys(self) -> list[dg.AssetKey]:
        return list(self._metadata)

    def of_step(self, step: str) -> dg.AssetKey | None:
        return self._steps.get(step.removesuffix(_CHECKS_SUFFIX))

    def query(self, key: dg.AssetKey) -> str:
        return str(self._metadata[key][f"{NAMESPACE}/query"])

    def stage(self, key: dg.AssetKey) -> int | None:
        found = self._metadata[key].get(f"{NAMESPACE}/stage")
        return found if isinstance(found, int) else None

    def owners(self, key: dg.AssetKey) -> tuple[str, ...]:
        return self._owners[key]


def _run_alerts(
    context: dg.RunFailureSensorContext, assets: _Assets, ui_url: str
) -> Iterator[Alert]:
    """One for each query that failed in the run, other than by a check."""
    run = context.dagster_run
    by_query: dict[str, list[tuple[dg.AssetKey, DagsterEvent]]] = {}
    events = context.get_step_failure_events()
    for event in events:
        key = assets.of_step((event.step_key or "").partition(".")[0])
        if key is not None and not _is_check_failure(event):
            by_query.setdefault(assets.query(key), []).append((key, event))
    partition = run.tags.get("dagster/partition")
    url = f"{ui_url}/runs/{run.run_id}" if ui_url else ""
    for query, failed in by_query.items():
        key, event = failed[0]
        op = _op_stage(event.step_key or "")
        more = f" (and {len(failed) - 1} more stage(s))" if len(failed) > 1 else ""
        yield Alert(
            kind="run_failed",
            query=query,
            message=f"{redacted(_error_text(event))}{more}",
            stage=assets.stage(key) if op is None else op,
            run_id=run.run_id,
            partition=partition,
            owners=assets.owners(key),
            url=url,
        )
    key = assets.of_step(run.job_name.removeprefix("run_"))
    if not events and key is not None:
        # No step failed: the process of the run died, or could not be started.
        yield Alert(
            kind="run_failed",
            query=assets.query(key),
            message=redacted(context.failure_event.message or "the run failed"),
            run_id=run.run_id,
            partition=partition,
            owners=assets.owners(key),
            url=url,
        )


def _op_stage(step: str) -> int | None:
    """Number of the stage that an op of a query runs; None for a step that is an asset."""
    name = step.partition(".")[2].removeprefix("stage_")
    return int(name) if name.isdigit() else None


def _check_alerts(context: RunStatusSensorContext, assets: _Assets, ui_url: str) -> Iterator[Alert]:
    """One for each check that failed in the run."""
    run = context.dagster_run
    records = context.instance.get_records_for_run(
        run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ).records
    for record in records:
        event = record.event_log_entry.dagster_event
        check = None if event is None else event.asset_check_evaluation_data
        if check is None or check.passed or check.asset_key not in assets.keys:
            continue
        warns = check.severity == dg.AssetCheckSeverity.WARN
        yield Alert(
            kind="check_failed",
            query=assets.query(check.asset_key),
            message=redacted(f"check {check.check_name}: {check.description or 'it failed'}"),
            check=check.check_name,
            severity="warn" if warns else "error",
            run_id=run.run_id,
            partition=run.tags.get("dagster/partition"),
            owners=assets.owners(check.asset_key),
            url=f"{ui_url}/runs/{run.run_id}" if ui_url else "",
        )


def _late_alerts(
    instance: dg.DagsterInstance, assets: _Assets, known: frozenset[str], ui_url: str
) -> tuple[list[Alert], frozenset[str]]:
    """The tables that have become late, which are not in `known`, and all that are late."""
    records = instance.event_log_storage.get_freshness_state_records(assets.keys)
    late = {k: r for k, r in records.items() if r.freshness_state == FreshnessState.FAIL}
    alerts = [
        Alert(
            kind="late",
            query=assets.query(key),
            message="the table is older than its freshness check allows",
            owners=assets.owners(key),
            url=f"{ui_url}/assets/{'/'.join(key.path)}" if ui_url else "",
        )
        for key in late
        if key.to_user_string() not in known
    ]
    return alerts, frozenset(key.to_user_string() for key in late)


def _is_check_failure(event: DagsterEvent) -> bool:
    error, told = event.step_failure_data.error, event.step_failure_data.user_failure_data
    if told is not None and AUDIT_FAILED in told.metadata:
        return True
    return error is not None and error.cls_name == "DagsterAssetCheckFailedError"


def _error_text(event: DagsterEvent) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data is not None and failure.user_failure_data.description:
        return failure.user_failure_data.description
    return failure.error.message if failure.error is not None else "the stage failed"
