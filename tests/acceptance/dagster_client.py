"""Dagster's GraphQL as its UI uses it: launch runs, backfills and ticks, and see how they ended."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REPOSITORY = "__repository__"
ENDED = ("SUCCESS", "FAILURE", "CANCELED")
_ENDED_BACKFILL = ("COMPLETED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED")
# A run of a test goes before those of a backfill that are queued.
URGENT = {"dagster/priority": "10"}
Key = tuple[str, ...]

_RUN_PARTS = """
  runId jobName status parentRunId rootRunId
  tags { key value }
  stepStats { stepKey status startTime endTime }
  eventConnection(limit: 1000) { events {
    __typename
    ... on MessageEvent { message stepKey }
    ... on MaterializationEvent { assetKey { path } partition metadataEntries {
      label
      ... on IntMetadataEntry { intRepr }
      ... on FloatMetadataEntry { floatValue }
      ... on BoolMetadataEntry { boolValue }
      ... on TextMetadataEntry { text }
      ... on UrlMetadataEntry { url }
    } }
    ... on AssetCheckEvaluationEvent { evaluation { checkName success severity } }
    ... on ExecutionStepFailureEvent { error { message causes { message } }
      failureMetadata { description metadataEntries {
        label ... on UrlMetadataEntry { url } } } }
  } }
"""


@dataclass(frozen=True)
class Run:
    """A run as Dagster tells it.

    Args:
        values: What GraphQL returned.
    """

    values: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.values["runId"])

    @property
    def status(self) -> str:
        return str(self.values["status"])

    @property
    def tags(self) -> dict[str, str]:
        return {tag["key"]: tag["value"] for tag in self.values["tags"]}

    @property
    def steps(self) -> dict[str, str]:
        """How each step ended, by its key."""
        return {step["stepKey"]: step["status"] for step in self.values["stepStats"]}

    @property
    def events(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.values["eventConnection"]["events"]
        return found

    @property
    def made(self) -> dict[Key, dict[str, Any]]:
        """Metadata of each asset that it materialised."""
        return {
            tuple(event["assetKey"]["path"]): _metadata(event["metadataEntries"])
            for event in self.events
            if event["__typename"] == "MaterializationEvent"
        }

    @property
    def page(self) -> str:
        """The address of our own page of it, which its result or a failure tells."""
        entries = [e for event in self.events for e in event.get("metadataEntries", ())]
        for event in self.events:
            entries += (event.get("failureMetadata") or {}).get("metadataEntries", ())
        return next(str(e["url"]) for e in entries if e["label"] == "stagecoach/page")

    @property
    def checks(self) -> dict[str, Mapping[str, Any]]:
        """What its asset checks found, by name."""
        return {
            event["evaluation"]["checkName"]: event["evaluation"]
            for event in self.events
            if event["__typename"] == "AssetCheckEvaluationEvent"
        }

    @property
    def problem(self) -> str:
        """All that it says of its failures."""
        failures = [e for e in self.events if e["__typename"] == "ExecutionStepFailureEvent"]
        return "\n".join(json.dumps(failure) for failure in failures)


def _metadata(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in entries:
        values = [value for key, value in entry.items() if key not in ("__typename", "label")]
        found[entry["label"]] = next((v for v in values if v is not None), None)
    if "stagecoach/rows" in found:
        found["stagecoach/rows"] = int(found["stagecoach/rows"])
    return found


class DagsterClient:
    """One code location behind a webserver.

    Args:
        url: The webserver.
        location: Name of the code location.
    """

    def __init__(self, url: str, location: str) -> None:
        self._url = url
        self._location = location

    def ask(self, query: str, **variables: Any) -> Any:
        """The answer to the one field that is asked for.

        Raises:
            AssertionError: It is an error.
        """
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"{self._url}/graphql", data=body, headers={"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:2000]) from error
        assert "errors" not in answer, answer["errors"]
        (value,) = answer["data"].values()
        return value

    def is_loaded(self) -> bool:
        """Whether the webserver answers and has the code location."""
        query = """{ repositoriesOrError { __typename
          ... on RepositoryConnection { nodes { name location { name } } }
          ... on PythonError { message } } }"""
        try:
            answer = self.ask(query)
        except (OSError, AssertionError):
            return False
        nodes = answer.get("nodes", [])
        return any(node["location"]["name"] == self._location for node in nodes)

    # -------------------------------------------------------------- runs

    def launch(
        self,
        job: str,
        *,
        assets: Sequence[Key] = (),
        partition: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> str:
        """Launch a run, as the launchpad does; return its id.

        Args:
            job: Name of the job; `__ASSET_JOB` for a choice of assets.
            assets: Which of its assets; all if none is given.
            partition: Key of the partition.
            tags: Further tags.
        """
        selector = {**self._repository(), "pipelineName": job}
        if assets:
            selector["assetSelection"] = [{"path": list(key)} for key in assets]
            selector["assetCheckSelection"] = None
        given = {**URGENT, **(tags or {})}
        if partition is not None:
            given["dagster/partition"] = partition
        parameters = {
            "selector": selector,
            "mode": "default",
            "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in given.items()]},
        }
        answer = self.ask(
            """mutation($params: ExecutionParams!) {
              launchPipelineExecution(executionParams: $params) { __typename
                ... on LaunchRunSuccess { run { runId } }
                ... on PythonError { message }
                ... on RunConfigValidationInvalid { errors { message } } } }""",
            params=parameters,
        )
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def reexecute(self, run_id: str, strategy: str) -> str:
        """Execute a run again: `FROM_FAILURE` or `ALL_STEPS`; return the new run's id."""
        answer = self.ask(
            """mutation($params: ReexecutionParams!) {
              launchRunReexecution(reexecutionParams: $params) { __typename
                ... on LaunchRunSuccess { run { runId } }
                ... on PythonError { message } } }""",
            params={"parentRunId": run_id, "strategy": strategy},
        )
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def terminate(self, run_id: str) -> None:
        """Terminate a run, as the UI does."""
        answer = self.ask(
            """mutation($id: String!) { terminateRun(runId: $id) { __typename
              ... on TerminateRunFailure { message } ... on PythonError { message } } }""",
            id=run_id,
        )
        assert answer["__typename"] == "TerminateRunSuccess", answer

    def run(self, run_id: str) -> Run:
        """A run as it is now."""
        query = f"query($id: ID!) {{ runOrError(runId: $id) {{ ... on Run {{ {_RUN_PARTS} }} }} }}"
        return Run(self.ask(query, id=run_id))

    def status(self, run_id: str) -> str:
        """How far a run is."""
        query = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
        return str(self.ask(query, id=run_id)["status"])

    def ended(self, run_id: str, *, seconds: float = 600) -> Run:
        """Wait for the end of a run."""
        self.wait(lambda: self.status(run_id) in ENDED, f"run {run_id}", seconds)
        return self.run(run_id)

    def run_ids(self, tags: Mapping[str, str] | None = None, job: str | None = None) -> list[str]:
        """Runs with all these tags, or of the job, the newest first."""
        chosen: dict[str, Any] = {"tags": [{"key": k, "value": v} for k, v in (tags or {}).items()]}
        if job is not None:
            chosen["pipelineName"] = job
        query = """query($filter: RunsFilter!) { runsOrError(filter: $filter) {
          ... on Runs { results { runId } } } }"""
        return [str(run["runId"]) for run in self.ask(query, filter=chosen)["results"]]

    # -------------------------------------------------------------- backfills, ticks

    def backfill(self, assets: Sequence[Key], partitions: Sequence[str]) -> str:
        """Launch a backfill of assets; return its id."""
        answer = self.ask(
            """mutation($params: LaunchBackfillParams!) {
              launchPartitionBackfill(backfillParams: $params) { __typename
                ... on LaunchBackfillSuccess { backfillId }
                ... on PythonError { message } } }""",
            params={
                "assetSelection": [{"path": list(key)} for key in assets],
                "partitionNames": list(partitions),
            },
        )
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        return str(answer["backfillId"])

    def backfill_status(self, backfill_id: str) -> str:
        """How far a backfill is."""
        query = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
          ... on PartitionBackfill { status error { message } } } }"""
        answer = self.ask(query, id=backfill_id)
        assert answer.get("error") is None, answer
        return str(answer["status"])

    def has_ended(self, backfill_id: str) -> bool:
        """Whether a backfill is over, well or not."""
        return self.backfill_status(backfill_id) in _ENDED_BACKFILL

    def start_schedule(self, name: str) -> None:
        """Turn a schedule on."""
        selector = {**self._repository(), "scheduleName": name}
        query = """mutation($selector: ScheduleSelector!) {
          startSchedule(scheduleSelector: $selector) { __typename
            ... on PythonError { message } } }"""
        answer = self.ask(query, selector=selector)
        assert answer["__typename"] == "ScheduleStateResult", answer

    def stop_schedule(self, name: str) -> None:
        """Turn it off."""
        found = self._instigator(name)
        query = """mutation($id: String!) { stopRunningSchedule(id: $id) { __typename
          ... on PythonError { message } } }"""
        answer = self.ask(query, id=found["id"])
        assert answer["__typename"] == "ScheduleStateResult", answer

    def start_sensor(self, name: str) -> None:
        """Turn a sensor on."""
        selector = {**self._repository(), "sensorName": name}
        query = """mutation($selector: SensorSelector!) {
          startSensor(sensorSelector: $selector) { __typename
            ... on PythonError { message } } }"""
        answer = self.ask(query, selector=selector)
        assert answer["__typename"] == "Sensor", answer

    def ticks(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Ticks of a schedule or sensor that asked for runs, the newest first."""
        found: Sequence[Mapping[str, Any]] = self._instigator(name)["ticks"]
        return [tick for tick in found if tick["runIds"]]

    def has_ticked(self, name: str) -> bool:
        """Whether a schedule or sensor has ticked, for runs or for none."""
        return bool(self._instigator(name)["ticks"])

    def _instigator(self, name: str) -> Any:
        query = """query($selector: InstigationSelector!) {
          instigationStateOrError(instigationSelector: $selector) {
            ... on InstigationState { id status ticks(limit: 50) {
              status runIds error { message } } } } }"""
        return self.ask(query, selector={**self._repository(), "name": name})

    # -------------------------------------------------------------- assets

    def asset_keys(self, group: str) -> list[Key]:
        """Assets of a group."""
        query = """query($group: AssetGroupSelector) {
          assetNodes(group: $group) { assetKey { path } isMaterializable } }"""
        selector = {**self._repository(), "groupName": group}
        nodes = self.ask(query, group=selector)
        return [tuple(n["assetKey"]["path"]) for n in nodes if n["isMaterializable"]]

    @staticmethod
    def wait(condition: Callable[[], bool], what: str, seconds: float) -> None:
        """Return when the condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what} took more than {seconds} s"
            time.sleep(0.3)

    def _repository(self) -> dict[str, Any]:
        return {"repositoryLocationName": self._location, "repositoryName": REPOSITORY}
