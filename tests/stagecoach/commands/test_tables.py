"""Published tables at the command line and in sessions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import stagecoach
from stagecoach.commands.main import cli
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.formats.publishing import PublishError, PublishTarget
from stagecoach.infra.formats.staged_version import StagedVersion
from stagecoach.infra.publishing.accepted import is_accepted
from stagecoach.infra.publishing.publish import Staged, publish
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.errors import AnalysisError
from tests.infra.formats.lake_tables.lakes import FORMATS, make_lake
from tests.infra.formats.published.outputs import (
    SETTINGS,
    fields_of,
    head_output,
    no_spark,
    stage_rows,
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog of one table, and a storage with two published ones, one of the same name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pets").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "pets" / "a.parquet")
    (tmp_path / "catalog.yaml").write_text("tables: {pets: {location: pets}}")
    store = LocalStore(str(tmp_path / "st"))
    publish_rows(store, pa.table({"n": [1, 2, 3]}), "Daily", "first")
    publish_rows(store, pa.table({"n": [4, 5]}), "Daily", "second")
    publish_rows(store, pa.table({"other": [1]}), "pets", "third")
    return tmp_path


def publish_rows(
    store: LocalStore, rows: pa.Table, target: str | PublishTarget, run_id: str
) -> None:
    publish(
        head_output(store, [rows]),
        fields_of(rows),
        PublishTarget(table=target) if isinstance(target, str) else target,
        store=store,
        settings=SETTINGS,
        spark=no_spark,
        run_id=run_id,
    )


def run(*args: str, stdin: str | None = None) -> Result:
    command = [*args, "--catalog", "catalog.yaml", "--storage", "st"]
    return CliRunner().invoke(cli, command, input=stdin)


def test_a_session_reads_what_is_published(project: Path) -> None:
    session = stagecoach.connect("catalog.yaml", "st")
    graph = session.plan("SELECT n FROM daily", name="daily").graph
    assert graph.query == "daily_query"
    assert [name for name, _ in graph.tables] == ["Daily"]
    assert graph.head.estimated_rows == 2
    # The catalog file wins.
    assert [f.name for f in session.plan("SELECT * FROM pets").graph.result] == ["id"]
    with pytest.raises(AnalysisError, match=r"did you mean 'daily'\?"):
        session.plan("SELECT * FROM dayly")


def test_the_storage_is_not_listed_for_tables_of_the_catalog(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> list[str]:
        raise AssertionError

    monkeypatch.setattr(LocalStore, "folders", refuse)
    stagecoach.connect("catalog.yaml", "st").plan("SELECT id FROM pets")
    assert run("tables", "pets").exit_code == 0


def test_tables_are_listed_with_their_versions(project: Path) -> None:
    text = run("tables").stdout
    assert [line.split()[0] for line in text.splitlines() if line[0] != " "] == ["pets", "Daily"]
    assert "published: version 2 of 20" in text
    assert "by run second" in text
    shown = json.loads(run("tables", "daily", "--format", "json").stdout)["tables"]
    assert shown[0]["version"]["number"] == 2
    assert (shown[0]["rows"], shown[0]["version"]["run_id"]) == (2, "second")


def test_a_table_is_cleared_when_asked_for(project: Path) -> None:
    store = LocalStore(str(project / "st"))
    other = PublishTarget(table="Daily", mode="append")
    with pytest.raises(PublishError, match=r"with `stagecoach tables clear Daily` and publish all"):
        publish_rows(store, pa.table({"other": [1]}), other, "third")
    asked = run("tables", "clear", "daily", stdin="n\n")
    assert "clear table 'Daily' of 2 rows? [y/N]" in asked.output
    assert (asked.exit_code, read_current(store, "Daily").num_rows) == (1, 2)
    cleared = run("tables", "clear", "daily", "--yes")
    assert cleared.stdout == "cleared Daily, version 3; publish all of it again\n"
    assert "no data yet" in run("tables", "daily").stderr
    publish_rows(store, pa.table({"other": [1]}), other, "third")
    assert read_current(store, "Daily").num_rows == 1
    for command in ("clear", "publish", "discard"):
        missing = run("tables", command, "pets")
        assert missing.exit_code == 2
        assert "no project has published a table 'pets' (published: Daily)" in missing.stderr


def test_versions_of_a_table(project: Path) -> None:
    lines = run("tables", "daily", "--versions").stdout.splitlines()
    assert lines[0] == "Daily"
    assert [line.split()[0] for line in lines[1:]] == ["2", "1"]
    assert lines[1].endswith("run second")
    kept = json.loads(run("tables", "--versions", "--format", "json").stdout)["versions"]
    assert [version["rows"] for version in kept["Daily"]] == [2, 3]
    missing = run("tables", "nothing", "--versions")
    assert missing.exit_code == 2
    assert "no project has published a table 'nothing' (published: Daily)" in missing.stderr


def test_an_estimated_number_of_rows_is_marked(project: Path) -> None:
    (project / "told.csv").write_text("\n".join(str(n) for n in range(1_000)))
    told = "  told: {location: told.csv, format: csv, columns: {n: INT}, options: {mode: DROPMALFORMED}}\n"
    (project / "catalog.yaml").write_text(f"tables:\n  pets: {{location: pets}}\n{told}")
    pets, _, guessed, _ = run("tables", "pets", "told").stdout.splitlines()
    assert pets.split()[:3] == ["pets", "2", "rows"]
    assert guessed.split()[:2] == ["told", "≈"]
    shown = json.loads(run("tables", "pets", "told", "--format", "json").stdout)["tables"]
    assert [table["rows_estimated"] for table in shown] == [False, True]


def test_declared_columns_are_shown_with_and_without_data(project: Path) -> None:
    declared = "{id: bigint not null, name: {type: string, comment: of the \\e pet}}"
    (project / "catalog.yaml").write_text(
        f"tables:\n  pets: {{location: pets, columns: {declared}}}\n"
        f"  later: {{location: later, columns: {declared}}}\n"
    )
    found = run("tables", "pets", "later")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert lines[0].split()[:3] == ["pets", "2", "rows"]
    assert lines[1:3] == ["    id bigint NOT NULL, name string", "    name: of the \\e pet"]
    assert lines[3:] == ["later  (no data yet)", *lines[1:3]]
    shown = json.loads(run("tables", "later", "--format", "json").stdout)["tables"]
    assert shown[0]["rows"] is None
    assert shown[0]["columns"] == [
        {"name": "id", "type": "bigint", "nullable": False},
        {"name": "name", "type": "string", "comment": "of the \\e pet"},
    ]


def test_comments_of_a_published_table_are_shown(project: Path) -> None:
    store = LocalStore(str(project / "st"))
    rows, target = pa.table({"n": [1], "m": [2]}), PublishTarget(table="noted")
    publish_rows(store, rows, target, "first")
    assert read_current(store, "noted").comments == ()
    assert b'"format_version": 2' in store.read_bytes("results/noted/versions/000000000001.json")
    publish_rows(store, rows.slice(0, 0), replace(target, comments=(("n", "how many"),)), "second")
    assert read_current(store, "noted").comments == (("n", "how many"),)
    lines = run("tables", "noted").stdout.splitlines()
    assert lines[1:3] == ["    n bigint, m bigint", "    n: how many"]
    shown = json.loads(run("tables", "noted", "--format", "json").stdout)["tables"]
    assert shown[0]["columns"][0] == {"name": "n", "type": "bigint", "comment": "how many"}


def stage(value: int, **target: object) -> StagedVersion:
    """A result that waits in the storage of the project."""
    staged = stage_rows(LocalStore("st"), pa.table({"n": [value]}), "Daily", run_id="r", **target)
    assert isinstance(staged, Staged)
    return staged.version


def test_what_is_staged_is_shown_read_and_published(project: Path) -> None:
    assert run("tables", "show", "--staged").output == "nothing is staged\n"
    assert (
        "error: nothing is staged; `stagecoach tables show"
        in run("tables", "publish", "daily").output
    )
    staged = stage(7)
    shown = run("tables", "daily", "--staged").output
    assert shown.startswith(f"Daily\n  {staged.id}  {staged.staged_at}  replace ")
    assert " 1 row " in shown
    assert shown.endswith("run r\n")
    found = json.loads(run("tables", "daily", "--staged", "--format", "json").output)
    assert [item["id"] for item in found["staged"]["Daily"]] == [staged.id]
    session = stagecoach.connect("catalog.yaml", "st")
    for text in ("`daily@staged`", f"`daily@staged-{staged.id}`", "daily VERSION AS OF 'staged'"):
        planned = session.plan(f"SELECT n FROM {text}", name="q").graph
        assert planned.head.estimated_rows == 1, text
    version = read_current(LocalStore("st"), "Daily")
    assert version is not None
    assert version.num_rows == 2
    result = run("tables", "publish", "daily")
    assert result.output.startswith(f"published {staged.id} of Daily: 1 row, version 4;")
    assert is_accepted(LocalStore("st"), "Daily", staged.fingerprint)
    version = read_current(LocalStore("st"), "Daily")
    assert version is not None
    assert (version.num_rows, version.staged) == (1, ())
    assert "  3  " not in run("tables", "daily", "--versions").output  # it only staged


def test_one_of_several_is_discarded_by_its_id(project: Path) -> None:
    one, other = stage(7, mode="append"), stage(8, mode="append")
    result = run("tables", "discard", "daily")
    assert result.exit_code != 0
    assert "several results are staged; name one:" in result.output
    assert one.id in result.output
    assert run("tables", "discard", "daily", one.id).output.startswith(f"discarded {one.id}")
    assert other.id in run("tables", "daily", "--staged").output
    assert one.id not in run("tables", "daily", "--staged").output
    assert f"'{one.id}' is not staged" in run("tables", "publish", "daily", one.id).output


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_staged_for_a_lake_is_shown_read_and_decided(
    project: Path, tmp_path: Path, name: str
) -> None:
    lake = replace(make_lake(name, tmp_path).lake, store=LocalStore(str(project / "st")))
    lake.publish(pa.table({"k": [1]}))
    one, other = (lake.stage(pa.table({"k": [k]}), mode="append").version for k in (2, 3))
    table = one.table
    shown = run("tables", table, "--staged").output.splitlines()
    assert [line.split()[0] for line in shown] == [table, one.id, other.id]
    session = stagecoach.connect("catalog.yaml", "st")
    for wanted in ("staged", f"staged-{one.id}"):
        planned = session.plan(f"SELECT k FROM `{table}@{wanted}`", name="q").graph
        assert planned.head.estimated_rows == 2
    assert run("tables", "discard", table, one.id).output.startswith(f"discarded {one.id}")
    result = run("tables", "publish", table)
    assert result.output.startswith(f"published {other.id} of {table}: 1 row, version ")
    assert is_accepted(LocalStore("st"), table, other.fingerprint)
    assert lake.keys() == [1, 3]
    assert run("tables", table, "--staged").output == "nothing is staged\n"
