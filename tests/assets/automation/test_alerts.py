"""Alerts: failed runs, failed checks and late tables reach the owners, each once."""

import datetime
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.definitions.freshness import (
    FreshnessState,
    FreshnessStateRecord,
    FreshnessStateRecordBody,
)

from stagecoach.assets import StageRequest, build_definitions
from stagecoach.assets.automation.alerts import (
    CHECK_SENSOR,
    FAILURE_SENSOR,
    LATE_SENSOR,
    Alert,
    Webhook,
    build_alert_sensors,
)
from stagecoach.assets.project.front_matter import StagesAs
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.infra.errors import TaskFailedError
from tests.assets.definitions.test_location import fake_plan
from tests.assets.fakes import FakeRunner

# Of Dagster's test helper; the sensors themselves use nothing that is in beta.
pytestmark = pytest.mark.filterwarnings("ignore:Parameter `repository_def`")


class Runner(FakeRunner):
    """Whose stages work or fail, and whose checks find rows or none."""

    failing_rows = 0
    fails = False

    def run_stage(self, request: StageRequest) -> StageMetadata:
        if self.fails and request.stage_id == 1:
            raise TaskFailedError("sales/stage_1", 0, "cannot cast the value 'Mrs. Smith'")
        return super().run_stage(request)

    def first_rows(self, request: StageRequest, limit: int) -> pa.Table:
        rows = {"k": [None] * self.failing_rows, "v": list(range(self.failing_rows))}
        return pa.table(rows, schema=pa.schema([("k", pa.int64()), ("v", pa.int64())]))


class Place:
    """A code location with alerts, and what was told."""

    def __init__(
        self,
        root: Path,
        instance: dg.DagsterInstance,
        check: str = "{not_null: [k]}",
        stages: StagesAs = "assets",
    ) -> None:
        (root / "queries").mkdir()
        front = f"-- owners: ['team:sales']\n-- checks: [{check}]\n"
        (root / "queries" / "sales.sql").write_text(f"{front}SELECT k, v FROM t")
        (root / "queries" / "stock.sql").write_text("SELECT k, v FROM u")
        (root / "catalog.yaml").write_text("tables: {t: {location: t}, u: {location: u}}")
        self.runner = Runner()
        self.told: list[Alert] = []
        project = build_definitions(
            queries=root / "queries",
            catalog=root / "catalog.yaml",
            engine=dg.ResourceDefinition.hardcoded_resource(self.runner),
            plan=fake_plan,
            stages=stages,
        )
        sensors = build_alert_sensors(self.told.append, ui_url="http://dagster:3000/")
        self.definitions = dg.Definitions.merge(project, dg.Definitions(sensors=sensors))
        self.instance = instance
        self._cursor: str | None = None

    def run(self, query: str = "sales") -> dg.ExecuteInProcessResult:
        job = self.definitions.resolve_job_def(f"run_{query}")
        return job.execute_in_process(instance=self.instance, raise_on_error=False)

    def fail(self, query: str = "sales") -> dg.ExecuteInProcessResult:
        """Run, fail and let the failure sensor see it."""
        result = self.run(query)
        assert not result.success
        sensor = self.definitions.resolve_sensor_def(FAILURE_SENSOR)
        sensor(self._context(FAILURE_SENSOR, result).for_run_failure())
        return result

    def succeed(self, query: str = "sales") -> dg.ExecuteInProcessResult:
        """Run and let the sensor of failed checks see it."""
        result = self.run(query)
        assert result.success
        self.definitions.resolve_sensor_def(CHECK_SENSOR)(self._context(CHECK_SENSOR, result))
        return result

    def _context(self, sensor: str, result: dg.ExecuteInProcessResult) -> dg.RunStatusSensorContext:
        event = result.get_run_success_event() if result.success else result.get_run_failure_event()
        return dg.build_run_status_sensor_context(
            sensor_name=sensor,
            dagster_event=event,
            dagster_instance=self.instance,
            dagster_run=result.dagster_run,
            repository_def=self.definitions.get_repository_def(),
        )

    def tick(self) -> list[Alert]:
        """Tick the sensor of late tables; what is told now."""
        before = len(self.told)
        context = dg.build_sensor_context(
            self.instance,
            cursor=self._cursor,
            repository_def=self.definitions.get_repository_def(),
        )
        sensor = self.definitions.resolve_sensor_def(LATE_SENSOR)
        self._cursor = sensor.evaluate_tick(context).cursor
        return self.told[before:]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Place(tmp_path, instance)


def test_a_failed_run_tells_its_owners_what_and_where(place: Place) -> None:
    place.runner.fails = True
    result = place.fail()
    (alert,) = place.told
    assert alert.kind == "run_failed"
    assert (alert.query, alert.stage, alert.owners) == ("sales", 1, ("team:sales",))
    assert alert.run_id == result.run_id
    assert alert.url == f"http://dagster:3000/runs/{result.run_id}"
    assert "cannot cast the value '…'" in alert.message
    assert "Smith" not in alert.text
    assert alert.text.splitlines()[-1] == alert.url


def test_a_failed_check_is_told_once_and_not_as_a_failed_run(place: Place) -> None:
    place.runner.failing_rows = 2
    result = place.fail()
    (alert,) = place.told
    assert alert.kind == "check_failed"
    assert (alert.query, alert.severity, alert.owners) == ("sales", "error", ("team:sales",))
    assert alert.check is not None
    assert alert.check in alert.message
    assert alert.run_id == result.run_id
    place.runner.failing_rows = 0
    place.succeed()
    assert place.told == [alert]


def test_a_check_that_only_warns_is_told_when_its_run_succeeds(tmp_path: Path) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        place = Place(tmp_path, instance, "{not_null: [k], severity: warn}")
        place.runner.failing_rows = 2
        result = place.succeed()
    (alert,) = place.told
    assert (alert.kind, alert.severity) == ("check_failed", "warn")
    assert alert.url == f"http://dagster:3000/runs/{result.run_id}"


def test_a_late_table_is_told_until_it_is_there_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = dg.AssetKey("sales")
    states: list[FreshnessState] = []

    def records(keys: list[dg.AssetKey]) -> dict[dg.AssetKey, FreshnessStateRecord]:
        assert key in keys
        now = datetime.datetime.now(datetime.UTC)
        body = FreshnessStateRecordBody(metadata=None)
        return {
            key: FreshnessStateRecord(
                entity_key=key, freshness_state=states[-1], updated_at=now, record_body=body
            )
        }

    storage = place.instance.event_log_storage
    monkeypatch.setattr(storage, "get_freshness_state_records", records)
    told = []
    for state in ("PASS", "FAIL", "FAIL", "PASS", "FAIL"):
        states.append(FreshnessState(state))
        told.append([(a.kind, a.query, a.url) for a in place.tick()])
    late = [("late", "sales", "http://dagster:3000/assets/sales")]
    assert told == [[], late, [], [], late]


def test_only_the_chosen_queries_and_a_notify_that_fails(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(alert: Alert) -> None:
        raise OSError("the chat is away")

    place.runner.fails = True
    result = place.run()
    for queries in (["stock"], ["sales"]):
        (sensor, *_) = build_alert_sensors(broken, queries=queries)
        context = dg.build_run_status_sensor_context(
            sensor_name=FAILURE_SENSOR,
            dagster_event=result.get_run_failure_event(),
            dagster_instance=place.instance,
            dagster_run=result.dagster_run,
            repository_def=place.definitions.get_repository_def(),
        )
        caplog.clear()
        sensor(context.for_run_failure())
        assert ("was not delivered: run_failed of sales" in caplog.text) == (queries == ["sales"])


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, object]], list[int]]]:
    """A server: its URL, what was posted, and the answers that it is to give."""
    posted: list[dict[str, object]] = []
    answers: list[int] = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(answers.pop(0) if answers else 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/services/secret", posted, answers
    server.shutdown()
    server.server_close()


def test_a_webhook_posts_json_and_tries_again(
    hook: tuple[str, list[dict[str, object]], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    url, posted, answers = hook
    answers += [503]
    Webhook(url=url)(Alert(kind="late", query="sales", message="late", owners=("team:a",)))
    assert len(posted) == 2
    assert posted[1]["query"] == "sales"
    assert posted[1]["owners"] == ["team:a"]
    assert posted[1]["text"] == "sales: late (team:a)"
    answers += [500] * 3
    with pytest.raises(OSError, match=r"webhook on 127\.0\.0\.1: Internal Server Error") as caught:
        Webhook(url=url)(Alert(kind="late", query="sales", message="late"))
    assert "secret" not in str(caught.value) + repr(Webhook(url=url))
    with pytest.raises(ValueError, match="http"):
        Webhook(url="file:///etc/passwd")


def test_an_alert_of_a_stage_that_is_an_op_names_the_stage(
    tmp_path: Path,
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        place = Place(tmp_path, instance, stages="ops")
        place.runner.fails = True
        place.fail()
    (alert,) = place.told
    assert (alert.query, alert.stage, alert.owners) == ("sales", 1, ("team:sales",))
