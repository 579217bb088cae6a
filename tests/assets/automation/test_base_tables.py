"""Base tables as triggers: a query with `automation: on_upstream_change` runs when files change."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagecoach.assets import build_definitions
from stagecoach.assets.automation.base_tables import (
    DATA_VERSION_TAG,
    SENSOR_NAME,
    listing_version,
    read_cursor,
)
from stagecoach.assets.plans.planner import planner_of
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.options import PlannerOptions
from tests.assets.fakes import FakeRunner

OPTIONS = PlannerOptions(force_distribution=True, num_partitions=2)
AUTOMATED = "-- automation: on_upstream_change\n"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def definitions(tmp_path: Path) -> dg.Definitions:
    """Base table → counted → doubled, both automated, and a query that is not."""
    for name in ("sales", "other"):
        write(tmp_path, name, 0)
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "counted.sql").write_text(
        f"{AUTOMATED}SELECT k, count(*) AS n FROM sales GROUP BY k"
    )
    (queries / "doubled.sql").write_text(f"{AUTOMATED}SELECT k, n * 2 AS m FROM counted")
    (queries / "manual.sql").write_text("SELECT k FROM other")
    (tmp_path / "catalog.yaml").write_text(
        "tables: {sales: {location: sales}, other: {location: other}}"
    )
    return build_definitions(
        queries=queries,
        catalog=tmp_path / "catalog.yaml",
        storage=tmp_path / "store",
        engine=dg.ResourceDefinition.hardcoded_resource(FakeRunner()),
        plan=planner_of(OPTIONS),
    )


def write(root: Path, name: str, number: int) -> None:
    (root / name).mkdir(exist_ok=True)
    pq.write_table(pa.table({"k": [1, 2, number]}), root / name / f"{number}.parquet")


class Automation:
    """The daemon's part: it ticks the sensor, then evaluates the conditions."""

    def __init__(self, definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
        self._definitions = definitions
        self._instance = instance
        self._evaluated: dg.AutomationConditionCursor | None = None
        self._cursor: str | None = None
        self.warnings: list[str] = []

    def look(self) -> list[dg.AssetMaterialization]:
        """Tick the sensor of the base tables."""
        sensor = self._definitions.resolve_sensor_def(SENSOR_NAME)
        context = dg.build_sensor_context(self._instance, cursor=self._cursor)
        result = sensor.evaluate_tick(context)
        self._cursor = result.cursor
        for event in result.asset_events:
            self._instance.report_runless_asset_event(event)
        return [e for e in result.asset_events if isinstance(e, dg.AssetMaterialization)]

    def requested(self) -> set[str]:
        """Evaluate the conditions; the assets that Dagster would make."""
        result = dg.evaluate_automation_conditions(
            self._definitions, self._instance, cursor=self._evaluated
        )
        self._evaluated = result.cursor
        keys = [a.key for a in self._definitions.resolve_asset_graph().asset_nodes]
        return {k.to_user_string() for k in keys if result.get_num_requested(k)}


@pytest.mark.filterwarnings("ignore:Parameter `include_sources`")
def test_a_changed_base_table_runs_the_automated_queries(
    tmp_path: Path, definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    daemon = Automation(definitions, instance)
    assert daemon.requested() == set()
    (event,) = daemon.look()
    assert event.asset_key == dg.AssetKey("sales")
    assert event.metadata["stagecoach/files"].value == 1
    assert event.tags is not None
    first = event.tags[DATA_VERSION_TAG]
    everything = {"counted", "counted/stage_0", "doubled"}
    assert daemon.requested() == everything
    for query in ("counted", "doubled"):
        definitions.resolve_job_def(f"run_{query}").execute_in_process(instance=instance)
    assert daemon.look() == []
    assert daemon.requested() == set()

    write(tmp_path, "sales", 1)
    write(tmp_path, "other", 1)
    (event,) = daemon.look()
    assert event.tags is not None
    assert event.tags[DATA_VERSION_TAG] != first
    assert daemon.requested() == everything
    assert daemon.look() == []


def test_a_table_that_cannot_be_listed_is_left_out(
    tmp_path: Path, definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    daemon = Automation(definitions, instance)
    assert len(daemon.look()) == 1
    # The folder and not its file, whose time of change would tell that it was renamed.
    (tmp_path / "sales").rename(tmp_path / "away")
    assert daemon.look() == []
    (tmp_path / "away").rename(tmp_path / "sales")
    assert daemon.look() == []


def test_a_version_is_that_of_the_listing_whatever_its_order() -> None:
    one = FileEntry(uri="/t/0", num_bytes=1, version="7")
    two = FileEntry(uri="/t/1", num_bytes=1, version="7")
    rewritten = FileEntry(uri="/t/1", num_bytes=1, version="8")
    assert listing_version([one, two]) == listing_version([two, one])
    assert len({listing_version(files) for files in ([one], [one, two], [one, rewritten])}) == 3


@pytest.mark.parametrize("text", [None, "", "not JSON", "[1]"])
def test_a_foreign_cursor_is_none(text: str | None) -> None:
    assert read_cursor(text) == {}
