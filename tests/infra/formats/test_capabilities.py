"""Commands and jobs find what a format offers through the registry, and name no format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from stagecoach.assets.automation.garbage_collection import (
    GC_JOB,
    GC_OP,
    GarbageCollection,
    build_gc_job,
)
from stagecoach.assets.automation.verification import build_verify_job
from stagecoach.assets.definitions.compaction import build_compactions
from stagecoach.assets.definitions.translator import StageTranslator
from stagecoach.assets.execution.publishing import publish_target
from stagecoach.assets.execution.resources import EngineResource
from stagecoach.assets.project.front_matter import FrontMatterError, parse_front_matter
from stagecoach.assets.project.queries import Query
from stagecoach.commands.main import cli
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.catalog.planned import PlannedTable, PublishedCatalog
from stagecoach.infra.formats import names
from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.publishing import PublishError, StagedGoneError
from stagecoach.infra.formats.registry import find_stored
from stagecoach.infra.publishing import jobs
from stagecoach.infra.publishing.publish import Staged
from stagecoach.infra.publishing.tasks import PublishReport, run_publish_task
from stagecoach.infra.publishing.write_task import WriteTask
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.upkeep.usage import storage_usage
from stagecoach.planner.formats.registry import Registry
from stagecoach.planner.types import INT, Field
from tests.infra.formats import kept_format, memory_format
from tests.infra.formats.published.outputs import publish_rows, stage_rows

ROWS = ('[{"k": 1, "name": "a"}]', '[{"k": 2, "name": "b"}]')


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """Both formats are registered; tables of the one are in a catalog, of the other in `st`."""
    monkeypatch.chdir(tmp_path)
    memory_format.VERSIONS.clear()
    kept_format.REPLACED.clear()
    kept_format.DAMAGED.clear()
    names.BY_KIND.register("kept", f"{kept_format.__name__}:FORMAT")
    made = names.MADE
    made.register("box", f"{kept_format.__name__}:BOXES")
    (tmp_path / "pipelines").mkdir()
    Path("pipelines/catalog.yaml").write_text("tables:\n  notes: {kind: kept, location: notes}\n")
    found = open_store(str(tmp_path / "st"))
    for number in (1, 2):
        found.write_bytes(f"boxes/crate/{number}", str(10 * number).encode())
    yield found
    names.BY_KIND.remove("kept")
    made.remove("box")


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, args)


def append_both() -> None:
    for rows in ROWS:
        assert run("tables", "append", "notes", rows).exit_code == 0


def test_a_table_is_written_by_commands() -> None:
    assert run("tables", "compact").stdout == "notes: no data yet\n"
    created = run("tables", "create", "notes", "--columns", "k bigint")
    assert created.stdout == "created notes with 2 columns\n"
    appended = run("tables", "append", "notes", *ROWS)
    assert appended.stdout == "appended 2 rows in 2 slabs to notes, version 1\n"
    shown = json.loads(run("tables", "chunks", "notes", "--format", "json").stdout)
    assert shown == {"uris": ["memory:notes/0", "memory:notes/1"]}
    lines = run("tables", "compact", "notes").stdout.splitlines()
    assert lines[0].startswith("notes: 2 slabs, 2 rows")
    assert lines[1].strip().startswith("1 slab, 2 rows")
    assert run("tables", "chunks", "notes").stdout == "memory:notes/0\n"


def test_a_format_that_is_only_read_is_refused() -> None:
    Path("pipelines/catalog.yaml").write_text("tables:\n  t: {location: t}\n")
    refused = run("tables", "append", "t", ROWS[0])
    assert refused.exit_code == 2
    assert "table 't' is not deduplicated or kept; declare it with" in refused.stderr
    assert "or with 'kind: kept' in" in refused.stderr


def test_what_a_format_does_not_offer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_format.KeptTable, "compacts", lambda table: None)
    refused = run("tables", "compact", "notes")
    assert refused.exit_code == 2
    assert "table 'notes' is kept; such tables cannot be compacted" in refused.stderr


def test_garbage_is_collected() -> None:
    append_both()
    run("tables", "compact")
    dry = run("gc", "--storage", "st", "--older-than", "0s", "--dry-run")
    assert "would remove 0 B of table notes: 1 replaced batches" in dry.stdout
    assert kept_format.REPLACED["notes"]
    result = run("gc", "--storage", "st", "--older-than", "0s")
    assert "removed 0 B of table notes: 1 replaced batches" in result.stdout
    assert not kept_format.REPLACED["notes"]
    assert "notes" not in run("gc", "--storage", "st", "--older-than", "0s").stdout


def test_a_job_collects_it() -> None:
    append_both()
    run("tables", "compact")
    tables = load_catalog("pipelines/catalog.yaml").open_all()
    engine = EngineResource(catalog="pipelines/catalog.yaml", storage_root="st")
    definitions = dg.Definitions(
        jobs=[build_gc_job(GarbageCollection(older_than="1s"), tables), build_verify_job(tables)],
        assets=build_compactions(
            [found for table in tables if (found := table.compacts())], StageTranslator()
        ),
        resources={"engine": engine},
    )
    result = definitions.resolve_job_def(GC_JOB).execute_in_process(
        instance=dg.DagsterInstance.ephemeral()
    )
    told = next(
        event.step_output_data.metadata
        for event in result.all_events
        if event.is_successful_output and event.step_key == GC_OP
    )
    assert told["stagecoach/removed_batches"].value == 1
    (spec,) = [spec for spec in definitions.resolve_all_asset_specs() if len(spec.key.path) == 2]
    assert (spec.key.path[-1], spec.kinds) == ("compaction", {"table", "memory"})
    assert spec.description and spec.description.startswith("Merges slabs of `notes`")


def test_damage_is_found() -> None:
    append_both()
    whole = json.loads(run("storage", "verify", "--storage", "st", "--json").stdout)
    assert whole["checked"] == {"batches": 2}
    kept_format.DAMAGED.add("memory:notes/1")
    result = run("storage", "verify", "--storage", "st", "--table", "notes")
    assert result.exit_code == 1
    assert "memory:notes/1" in result.stdout
    missing = run("storage", "verify", "--storage", "st", "--table", "none")
    assert (
        "there is no table 'none' (published or iceberg or delta or box or deduplicated or kept)"
        in missing.stderr
    )


def test_tables_that_queries_make_are_shown_and_cleared(store: ObjectStore) -> None:
    assert "crate" in run("tables", "--storage", "st").stdout
    shown = json.loads(run("tables", "crate", "--storage", "st", "--format", "json").stdout)
    (table,) = shown["tables"]
    assert (table["rows"], table["version"]["number"]) == (20, 2)
    assert "20 rows" in run("tables", "--versions", "--storage", "st").stdout
    cleared = run("tables", "clear", "crate", "--yes", "--storage", "st")
    assert cleared.stdout == "cleared crate, version 3; publish all of it again\n"
    assert [usage.name for usage in storage_usage(store).tables] == ["crate"]


def test_a_plan_need_not_tell_their_format(store: ObjectStore) -> None:
    planned = [PlannedTable(name="crate"), PlannedTable(name="new", columns=kept_format.COLUMNS)]
    catalog = PublishedCatalog(load_catalog("pipelines/catalog.yaml"), store, planned)
    found = catalog.table("crate")
    assert found is not None
    assert found.stats is not None
    assert (found.format, found.stats.num_rows) == ("box", 20)
    assert catalog.source("crate").format == "box"
    assert catalog.source("new").format == "published"


def test_their_orphans_are_collected(store: ObjectStore) -> None:
    store.write_bytes("boxes/crate/lost", b"1234")
    result = run("gc", "--storage", "st", "--older-than", "0s")
    assert "removed 1 uncommitted files: 4 B" in result.stdout
    assert not store.exists("boxes/crate/lost")
    assert store.exists("boxes/crate/2")


def test_a_result_is_published_in_the_first_format(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are written by tasks that have the plan as plain data."""
    first = Registry[object]({"box": f"{kept_format.__name__}:BOXES"})
    monkeypatch.setattr(names, "MADE", first)
    written: list[WriteTask] = []

    def run_far_away(task: WriteTask) -> PublishReport:
        written.append(WriteTask.from_dict(json.loads(json.dumps(task.to_dict()))))
        report = run_publish_task(written[-1])
        return PublishReport.from_dict(json.loads(json.dumps(report.to_dict())))

    monkeypatch.setattr(jobs, "run_publish_task", run_far_away)
    rows = pa.table({"k": [1, 2, 3]})
    published = publish_rows(store, [rows, rows], "crate", target_file_bytes=1)
    assert (published.version.number, published.num_rows, published.num_bytes) == (3, 6, 2)
    assert [file.num_rows for file in published.files] == [3, 3]
    assert [task.plan for task in written] == [kept_format.BoxPlan("crate", 1)] * 2
    assert not store.folders("results")
    with pytest.raises(
        PublishError, match="results are not merged into tables of the format 'box'"
    ):
        publish_rows(store, [rows], "crate", mode="merge", key=("k",))


def test_a_query_names_the_format_of_its_output(store: ObjectStore) -> None:
    rows = pa.table({"k": [1, 2, 3]})
    target = {"table": "daily", "format": "box", "place": {}}
    assert output("{format: box, table: daily}") == target
    published = publish_rows(store, [rows], "daily", format="box")
    assert store.folders("boxes") == ["crate", "daily"]
    assert not store.folders("results")
    assert find_stored(store, "daily", Access()).current() == published.version
    columns = (Field("k", INT), Field("v", INT))
    planned = PlannedTable(name="daily", columns=columns, partition_by=("k",), format="box")
    assert planned.table_columns == columns  # published tables have those of folders last
    with pytest.raises(PublishError, match="'daily' is of the format 'box', not 'published'"):
        publish_rows(store, [rows], "daily")


def test_results_of_any_format_wait_for_their_checks(store: ObjectStore) -> None:
    rows = pa.table({"k": [1, 2, 3]})
    staged = stage_rows(store, rows, "daily", format="box")
    assert isinstance(staged, Staged)
    table = find_stored(store, "daily", Access())
    assert table.current() is None
    again = stage_rows(store, rows, "daily", format="box")
    assert isinstance(again, Staged)
    assert again.publish().num_rows == 3
    with pytest.raises(StagedGoneError):
        staged.publish()


def output(text: str) -> dict[str, object]:
    """Where the result of a query with this output goes."""
    sql = f"/*\noutput: {text}\n*/\nSELECT 1 AS k"
    target = publish_target(Query(name="q", sql=sql, front_matter=parse_front_matter(sql)), None)
    return {key: getattr(target, key) for key in ("table", "format", "place")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{format: bix}", "'bix' is not a format that results are published in"),
        ("{format: box, keep_versions: 3}", "a table of the format 'box' has no 'keep_versions'"),
        ("{catalog: lake}", "a table of the format 'published' has no 'catalog'; remove it"),
        ("{location: /lake}", "a table of the format 'published' has no 'location'"),
    ],
)
def test_an_output_that_does_not_fit_the_format_is_refused(text: str, message: str) -> None:
    with pytest.raises(FrontMatterError, match=re.escape(message)):
        output(text)
