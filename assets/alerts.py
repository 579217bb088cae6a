"""Alerts: in, what Dagster knows of failed runs, failed checks and late tables; out, one call each.

    run failed ─▶ run failure sensor ─┐
    check failed ┐                    ├─▶ Alert ─▶ notify(alert), such as a `Webhook`
    table late ──┴▶ sensor with cursor┘

An alert has a link to the run and no value of the data: it may go to a chat of somebody else's.
"""

import dataclasses
import http.client
import json
import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import dagster as dg
from dagster import DagsterEvent, RepositoryDefinition, RunFailureSensorContext
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus,
)

from assets.metadata import NAMESPACE
from infra.logs import redacted

logger = logging.getLogger(__name__)

FAILURE_SENSOR = "stagecoach_alert_failures"
EVENT_SENSOR = "stagecoach_alert_checks"
INTERVAL_SECONDS = 30
_CHECKS_SUFFIX = "__checks"
_HISTORY = 50
_GRACE_SECONDS = 600.0

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
        description="Tells of runs that failed.",
    )
    def failures(context: RunFailureSensorContext) -> None:
        assets = _Assets(context.repository_def)
        teller.tell(_run_alerts(context, assets, teller.ui_url))

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        assets = _Assets(context.repository_def)
        cursor = _Cursor.read(context.cursor)
        checks, after = _check_alerts(context.instance, assets, cursor, teller.ui_url)
        late, now = _late_alerts(context.instance, assets, cursor, teller.ui_url)
        count = teller.tell([*checks, *late])
        skipped = None if count else "no check has failed and no table is late"
        return dg.SensorResult(
            skip_reason=skipped, cursor=dataclasses.replace(after, late=now).text()
        )

    events = dg.SensorDefinition(
        name=EVENT_SENSOR,
        evaluation_fn=look,
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=status,
        description="Tells of checks that failed and of tables that are late.",
    )
    return [failures, events]


class _Teller:
    """Calls `notify` for the alerts of some queries."""

    def __init__(self, notify: Notify, queries: Collection[str] | None, ui_url: str) -> None:
        self._notify = notify
        self._queries = None if queries is None else frozenset(queries)
        self.ui_url = ui_url

    def tell(self, alerts: "Iterator[Alert] | list[Alert]") -> int:
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
        self.checks: list[dg.AssetCheckKey] = []
        if repository is None:
            return
        graph = repository.asset_graph
        for node in graph.asset_nodes:
            if f"{NAMESPACE}/query" in node.metadata:
                self._metadata[node.key] = node.metadata
                self._owners[node.key] = tuple(node.owners)
                self._steps["__".join(node.key.path)] = node.key
        self.checks = [key for key in graph.asset_check_keys if key.asset_key in self._metadata]

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


@dataclass(frozen=True)
class _Cursor:
    """What has been told.

    Args:
        since: Time of the newest evaluation of a check that was looked at, seconds since 1970; None
            at the beginning, of which nothing is told.
        told: Ids of the failed evaluations not long before that.
        late: Tables that are late, as their keys' text.
    """

    since: float | None = None
    told: frozenset[int] = frozenset()
    late: frozenset[str] = frozenset()

    @classmethod
    def read(cls, text: str | None) -> "_Cursor":
        try:
            found = json.loads(text or "{}")
            told, late = frozenset(found.get("told", ())), frozenset(found.get("late", ()))
            return cls(found.get("since"), told, late)
        except (ValueError, AttributeError, TypeError):
            return cls()

    def text(self) -> str:
        values = {"since": self.since, "told": sorted(self.told), "late": sorted(self.late)}
        return json.dumps(values)


def _run_alerts(context: RunFailureSensorContext, assets: _Assets, ui_url: str) -> Iterator[Alert]:
    """One for each query that failed in the run; failed checks are told of by the other sensor."""
    run = context.dagster_run
    by_query: dict[str, list[tuple[dg.AssetKey, DagsterEvent]]] = {}
    events = context.get_step_failure_events()
    for event in events:
        key = assets.of_step(event.step_key or "")
        if key is not None and not _is_check_failure(event):
            by_query.setdefault(assets.query(key), []).append((key, event))
    partition = run.tags.get("dagster/partition")
    url = f"{ui_url}/runs/{run.run_id}" if ui_url else ""
    for query, failed in by_query.items():
        key, event = failed[0]
        more = f" (and {len(failed) - 1} more stage(s))" if len(failed) > 1 else ""
        yield Alert(
            kind="run_failed",
            query=query,
            message=f"{redacted(_error_text(event))}{more}",
            stage=assets.stage(key),
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


def _check_alerts(
    instance: dg.DagsterInstance, assets: _Assets, cursor: _Cursor, ui_url: str
) -> tuple[list[Alert], _Cursor]:
    """The evaluations since the cursor that failed, and the cursor after them.

    A record is made when a run is planned and filled in when the check has run, so its number does
    not tell what is new. Times do, but for the clocks of several machines: hence a grace period.
    """
    storage = instance.event_log_storage
    latest = storage.get_latest_asset_check_execution_by_key(assets.checks) if assets.checks else {}
    times = [record.event.timestamp for record in latest.values() if record.event is not None]
    newest = max([cursor.since or 0.0, *times])
    is_first = cursor.since is None
    begin = (newest if cursor.since is None else cursor.since) - _GRACE_SECONDS
    failed: list[AssetCheckExecutionRecord] = []
    for check, record in latest.items():
        if record.event is not None and record.event.timestamp > begin:
            failed += storage.get_asset_check_execution_history(
                check, limit=_HISTORY, status={AssetCheckExecutionRecordStatus.FAILED}
            )
    recent = [r for r in failed if r.event is not None and r.event.timestamp > begin]
    new = [r for r in sorted(recent, key=lambda r: r.id) if r.id not in cursor.told]
    after = _Cursor(newest, frozenset(record.id for record in recent))
    if is_first:
        return [], after
    return [_check_alert(record, assets, ui_url) for record in new], after


def _check_alert(record: AssetCheckExecutionRecord, assets: _Assets, ui_url: str) -> Alert:
    evaluation, check = record.evaluation, record.key
    text = (evaluation.description if evaluation else None) or "it failed"
    warns = evaluation is not None and evaluation.severity == dg.AssetCheckSeverity.WARN
    return Alert(
        kind="check_failed",
        query=assets.query(check.asset_key),
        message=redacted(f"check {check.name}: {text}"),
        check=check.name,
        severity="warn" if warns else "error",
        run_id=record.run_id,
        partition=record.partition,
        owners=assets.owners(check.asset_key),
        url=f"{ui_url}/runs/{record.run_id}" if ui_url else "",
    )


def _late_alerts(
    instance: dg.DagsterInstance, assets: _Assets, cursor: _Cursor, ui_url: str
) -> tuple[list[Alert], frozenset[str]]:
    """The tables that have become late since the cursor, and all that are late."""
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
        if key.to_user_string() not in cursor.late
    ]
    return alerts, frozenset(key.to_user_string() for key in late)


def _is_check_failure(event: DagsterEvent) -> bool:
    error = event.step_failure_data.error
    return error is not None and error.cls_name == "DagsterAssetCheckFailedError"


def _error_text(event: DagsterEvent) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data is not None and failure.user_failure_data.description:
        return failure.user_failure_data.description
    return failure.error.message if failure.error is not None else "the stage failed"
