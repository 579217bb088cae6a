"""Garbage collection as a job: offered when asked for, removes what is old, tells what it did."""

import datetime
import os
import runpy
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import pipelines
from stagecoach.assets import (
    EngineResource,
    GarbageCollection,
    StorageVerification,
    build_definitions,
)
from stagecoach.assets.automation.garbage_collection import GC_JOB, GC_OP
from stagecoach.assets.automation.verification import VERIFY_JOB
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.formats.deduplicated.compaction import compact
from stagecoach.infra.formats.deduplicated.table_format import chunk_table

OLD = datetime.timedelta(days=9).total_seconds()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "queries").mkdir()
    (tmp_path / "catalog.yaml").write_text("tables: {}\n")
    for name, age in (("old", OLD), ("late", 60.0)):
        file = tmp_path / "storage" / "shuffle" / "00" / ("ab" * 32) / f"00000-{name}.arrow"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"12345")
        moment = datetime.datetime.now().timestamp() - age
        os.utime(file, (moment, moment))
    return tmp_path


def definitions(project: Path, gc: GarbageCollection | None) -> dg.Definitions:
    return build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        storage=project / "storage",
        gc=gc,
        engine=EngineResource(
            catalog=str(project / "catalog.yaml"), storage_root=str(project / "storage")
        ),
    )


def files(project: Path) -> set[str]:
    return {path.name for path in (project / "storage").rglob("*.arrow")}


def test_a_job_and_a_schedule_only_where_they_are_asked_for(project: Path) -> None:
    found = definitions(project, None)
    assert GC_JOB not in {job.name for job in found.resolve_all_job_defs()}
    gc = GarbageCollection(older_than="8d", cron="5 4 * * *", timezone="Europe/Berlin")
    dg.Definitions.validate_loadable(definitions(project, gc))
    schedule = definitions(project, gc).resolve_schedule_def(f"{GC_JOB}_schedule")
    assert schedule.cron_schedule == "5 4 * * *"
    assert schedule.execution_timezone == "Europe/Berlin"
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_job_removes_what_is_old(project: Path, dry_run: bool) -> None:
    found = definitions(project, GarbageCollection(older_than="8d"))
    config = {"ops": {GC_OP: {"config": {"older_than": "8d", "dry_run": dry_run}}}}
    result = found.resolve_job_def(GC_JOB).execute_in_process(
        run_config=config if dry_run else None, instance=dg.DagsterInstance.ephemeral()
    )
    assert result.success
    assert files(project) == (
        {"00000-old.arrow", "00000-late.arrow"} if dry_run else {"00000-late.arrow"}
    )
    metadata = output_metadata(result)
    assert metadata["stagecoach/removed_objects"] == 1
    assert metadata["stagecoach/removed_bytes"] == 5


def test_the_job_removes_replaced_chunks_of_deduplicated_tables(project: Path) -> None:
    (project / "catalog.yaml").write_text(
        "tables:\n  m: {kind: deduplicated, location: m, primary_key: [k]}\n"
    )
    table = chunk_table(load_catalog(project / "catalog.yaml"), "m")
    for value in (1, 2):
        table.append([pa.table({"k": [1, value], "v": [value, value]})])
    compact(table)
    result = (
        definitions(project, GarbageCollection())
        .resolve_job_def(GC_JOB)
        .execute_in_process(
            run_config={"ops": {GC_OP: {"config": {"older_than": "0s"}}}},
            instance=dg.DagsterInstance.ephemeral(),
        )
    )
    metadata = output_metadata(result)
    assert metadata["stagecoach/removed_chunks"] == 2
    assert metadata["stagecoach/removed_chunk_bytes"] > 0
    left = {
        path.name for path in (project / "m").rglob("*") if path.suffix in (".arrow", ".parquet")
    }
    assert left == {chunk.name for chunk in table.read().chunks}


def output_metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """Metadata of the only output of a run."""
    [output] = [
        event.step_output_data
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.STEP_OUTPUT
    ]
    return {key: value.value for key, value in output.metadata.items()}


@pytest.mark.parametrize("given", ["nothing", "file", "variable", "old variable"])
def test_the_project_of_the_repository_collects_garbage_where_the_settings_say(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(pipelines.__path__[0])
    for name in ("STAGECOACH_SETTINGS", "STAGECOACH_STORAGE_ROOT", "STAGECOACH_STORAGE"):
        monkeypatch.delenv(name, raising=False)
    # A catalog whose tables have no data: nothing is planned, so nothing is written.
    catalog = tmp_path / "pipelines" / "catalog.yaml"
    catalog.parent.mkdir()
    shutil.copy(folder / "catalog.yaml", catalog)
    monkeypatch.setenv("STAGECOACH_CATALOG", str(catalog))
    if given == "file":
        (tmp_path / "settings.yaml").write_text("storage_root: /data/there\n")
        monkeypatch.setenv("STAGECOACH_SETTINGS", str(tmp_path / "settings.yaml"))
    elif given != "nothing":
        old = given == "old variable"
        variable = "STAGECOACH_STORAGE" if old else "STAGECOACH_STORAGE_ROOT"
        monkeypatch.setenv(variable, "/data/there")
    found: dg.Definitions = runpy.run_path(str(folder / "definitions.py"))["defs"]
    schedule = found.resolve_schedule_def(f"{GC_JOB}_schedule")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 3 * * *", "UTC")
    assert found.resources is not None
    settings = found.resources["engine"].engine_settings()
    own = str(folder.parent / ".stagecoach" / "storage")
    assert settings.storage_root == (own if given == "nothing" else "/data/there")


def test_an_age_that_is_none_is_found_when_the_project_is_loaded() -> None:
    with pytest.raises(ConfigError, match="not a valid age"):
        GarbageCollection(older_than="soon")


# ---------------------------------------------------------------- verification


def verifying(project: Path) -> dg.Definitions:
    return build_definitions(
        queries=project / "queries",
        catalog=project / "catalog.yaml",
        storage=project / "storage",
        verify=StorageVerification(cron="5 4 * * 0", timezone="Europe/Berlin"),
    )


@pytest.fixture
def stored(project: Path) -> Path:
    (project / "catalog.yaml").write_text(
        "tables:\n  m: {kind: deduplicated, location: m, primary_key: [k]}\n"
    )
    table = chunk_table(load_catalog(project / "catalog.yaml"), "m")
    table.append([pa.table({"k": [1, 2], "v": [3, 4]})], sort=True)
    return Path(table.store.uri(table.read().chunks[0].key))


def verify(project: Path) -> dg.ExecuteInProcessResult:
    return (
        verifying(project)
        .resolve_job_def(VERIFY_JOB)
        .execute_in_process(instance=dg.DagsterInstance.ephemeral(), raise_on_error=False)
    )


def test_verification_has_a_job_and_a_schedule(project: Path) -> None:
    dg.Definitions.validate_loadable(verifying(project))
    schedule = verifying(project).resolve_schedule_def(f"{VERIFY_JOB}_schedule")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("5 4 * * 0", "Europe/Berlin")
    found = definitions(project, None)
    assert VERIFY_JOB not in {job.name for job in found.resolve_all_job_defs()}


def test_what_is_whole_is_told(project: Path, stored: Path) -> None:
    result = verify(project)
    assert result.success
    metadata = output_metadata(result)
    assert metadata["stagecoach/damages"] == 0
    assert metadata["stagecoach/checked_objects"] == 3  # a chunk, a version, a hint
    assert metadata["stagecoach/checked_bytes"] > stored.stat().st_size


def test_a_run_that_finds_damage_fails_and_lists_it(project: Path, stored: Path) -> None:
    content = bytearray(stored.read_bytes())
    content[10] ^= 1
    stored.write_bytes(content)
    result = verify(project)
    assert not result.success
    (failed,) = (e for e in result.all_events if e.is_step_failure)
    failure = failed.step_failure_data.user_failure_data
    assert failure is not None
    assert failure.description == "damaged: 1 of 3 stored objects"
    (row,) = failure.metadata["stagecoach/damaged"].value.records  # type: ignore[union-attr]
    assert row.data["object"] == str(stored)
    assert row.data["place"] == "table 'm', version 1, column 'k', row group 0"
    assert "restore the file" in str(row.data["what to do"])
