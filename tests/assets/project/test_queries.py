"""Folders of queries: names that Dagster can hold, front matter, and one error for all clashes."""

from pathlib import Path

import dagster as dg
import pytest

from stagecoach.assets.project.front_matter import FrontMatter, FrontMatterError, parse_front_matter
from stagecoach.assets.project.queries import ProjectError, load_project, name_problem


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)
    return folder


def test_queries_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", a="SELECT 1")
    write(tmp_path, b="SELECT 2")
    (tmp_path / "notes.txt").write_text("not a query")
    project = load_project(tmp_path)
    assert [q.name for q in project.queries] == ["a", "b"]
    assert project.query("b").sql == "SELECT 2"
    with pytest.raises(ProjectError, match=r"no query 'c'.*there are: a, b"):
        project.query("c")


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="is not a folder"):
        load_project(tmp_path / "nothing")


def test_all_problems_are_one_error(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", a="SELECT 1")
    write(tmp_path, a="SELECT 2", b__c="SELECT 3", T="SELECT 4", d="/* owners: [me] */ SELECT 5")
    (tmp_path / "e-f.sql").write_text("SELECT 6")
    (tmp_path / "run_a.sql").write_text("SELECT 7")
    (tmp_path / "g.sql").write_bytes(b"SELECT '\xff'")
    with pytest.raises(ProjectError) as caught:
        load_project(tmp_path, tables=["t"])
    message = str(caught.value)
    assert "7 problem(s)" in message
    for part in (
        "sub/a.sql:1:1: the name 'a' is also used by",
        "contains '__'",
        "'T' is also used by the table 't'",
        "owner 'me'",
        "'e-f' cannot be the name of an asset",
        "'run_a' is also used by the job of",
        "g.sql:1:1: 'utf-8' codec",
    ):
        assert part in message


@pytest.mark.parametrize("name", ["q01", "Sales_2024", "a", "x" * 100, "q_1"])
def test_good_names_are_names_of_assets_and_jobs(name: str) -> None:
    assert name_problem(name) is None

    @dg.asset(key=[name], group_name=name)
    def one() -> None: ...

    job = dg.define_asset_job(f"run_{name}", selection=[dg.AssetKey([name])])
    assert dg.Definitions(assets=[one], jobs=[job]).resolve_job_def(f"run_{name}")


@pytest.mark.parametrize(
    "name",
    ["", "1q", "_q", "a-b", "a.b", "a b", "a/b", "a$", "ä", "a__b", "type", "class", "x" * 101],
)
def test_bad_names(name: str) -> None:
    assert name_problem(name) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "/*\ndescription: d\nowners: ['team:x', a@b.org]\ntags: {k: v}\nparameters: {p: 3}\n*/\nSELECT 1",
        "-- description: d\n-- owners: ['team:x', a@b.org]\n-- tags: {k: v}\n-- parameters: {p: 3}\nSELECT 1",
        "\n/*\n---\ndescription: d\nowners: ['team:x', a@b.org]\ntags: {k: v}\nparameters: {p: {default: 3}}\n---\nfree text: [\n*/ SELECT 1",
        "-- ---\n-- description: d\n-- owners: ['team:x', a@b.org]\n-- tags: {k: v}\n-- parameters:\n--   p: 3\n-- ---\nSELECT 1",
    ],
)
def test_front_matter_in_every_form(sql: str) -> None:
    found = parse_front_matter(sql)
    assert found.description == "d"
    assert found.owners == ("team:x", "a@b.org")
    assert dict(found.tags) == {"k": "v"}
    assert found.parameter_defaults == {"p": "3"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "",
        "-- TPC-H: query 1\nSELECT 1",
        "/* a note: with [a bracket */ SELECT 1",
        "-- just words\nSELECT 1",
        "SELECT 1 -- description: too late",
        "/**/ SELECT 1",
        "/*\n---\n---\n*/ SELECT 1",
    ],
)
def test_ordinary_comments_are_no_front_matter(sql: str) -> None:
    assert parse_front_matter(sql) == FrontMatter()


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("description: [", "not YAML"),
        ("description: d\nowner: x", "unknown key 'owner'"),
        ("description: 3", "description must be a text"),
        ("owners: [me]", "owner 'me'"),
        ("owners: {a: b}", "owner"),
        ("tags: 3", "tags must be a mapping"),
        ("tags: {a b: c}", "tag 'a b: c'"),
        ("tags: {dagster/x: c}", "Dagster's own"),
        ("tags: {a: [1]}", "must be a single value"),
        ("parameters: [a]", "parameters must be a mapping"),
        ("parameters: {a-b: 1}", "parameter 'a-b'"),
        ("parameters: {a: {defualt: 1}}", "unknown key 'defualt'"),
        ("parameters: {a: {type: dato}}", "type 'dato' is not supported"),
        ("---\n- a", "must be a mapping"),
    ],
)
def test_front_matter_that_cannot_be_used(yaml: str, message: str) -> None:
    with pytest.raises(FrontMatterError, match=message):
        parse_front_matter(f"/*\n{yaml}\n*/\nSELECT 1")


def test_defaults_are_spelled_as_in_sql() -> None:
    text = (
        "/*\nparameters: {d: 1998-09-02, t: 1998-09-02 10:00:00, b: true, n: 1.50, s: x, r: }\n*/"
    )
    assert parse_front_matter(text).parameter_defaults == {
        "d": "1998-09-02",
        "t": "1998-09-02 10:00:00",
        "b": "true",
        "n": "1.5",
        "s": "x",
        "r": None,
    }


def test_parameter_types_are_declared_or_those_of_the_defaults() -> None:
    text = (
        "/*\nparameters: {d: 1998-09-02, b: true, n: 1, m: 3000000000, f: 1.5, s: x, r: , "
        "p: {type: 'DECIMAL(15, 2)', default: 0.05}, q: {type: date}}\n*/"
    )
    assert parse_front_matter(text).parameter_types == {
        "d": "date",
        "b": "boolean",
        "n": "int",
        "m": "bigint",
        "f": "double",
        "s": "string",
        "r": "string",
        "p": "decimal(15,2)",
        "q": "date",
    }
