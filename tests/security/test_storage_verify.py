"""`stagecoach storage verify` finds every kind of damage, names it, and calls nothing else damage."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.stored_faults.warehouse import Warehouse, build_warehouse
from stagecoach.commands.main import cli
from stagecoach.infra.formats.deduplicated.operations import ChunkOperations
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.shuffle.commit import mark_lost
from stagecoach.infra.upkeep.verify.adopt import adopt_checksums
from stagecoach.infra.upkeep.verify.verification import VerifyReport, verify_storage
from stagecoach.planner.errors import CatalogError
from tests.s3_server import S3Server
from tests.s3_server import s3_server as s3_server


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return build_warehouse(tmp_path_factory.mktemp("warehouse"))


def verified(found: Warehouse, **changed: Any) -> VerifyReport:
    return verify_storage(
        found.store,
        [ChunkOperations(found.chunk_table(name)) for name in ("parquet_chunks", "arrow_chunks")],
        **changed,
    )


def test_a_whole_root_is_well(whole: Warehouse) -> None:
    report = verified(whole)
    assert not report.damages
    assert not report.foreign
    assert not report.unchecked_tables
    assert set(report.checked) >= {
        "files of published tables",
        "versions of published tables",
        "chunks of deduplicated tables",
        "versions of deduplicated tables",
        "manifests of outputs",
        "indexes of outputs",
        "files of outputs",
        "snapshots of runs",
        "pointers of runs",
        "plans",
        "analyses of plans",
    }


# What is damaged, and what is told of it.
KINDS = {
    "published file": "table 'published', version 2",
    "parquet chunk": "table 'parquet_chunks', version 2",
    "arrow chunk": "table 'arrow_chunks', version 2",
    "map file": "output of q/stage_",
    "index": "output of q/stage_",
    "manifest": "",
    "snapshot": "run ",
    "pointer": "run ",
    "published version": "table 'published', version",
    "chunk version": "table 'parquet_chunks', version",
    "plan": "query q",
    "analysis": "",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["flip", "zeros", "cut", "missing"])
def test_each_kind_of_damage_is_found_and_named(whole: Warehouse, kind: str, how: str) -> None:
    store, key = whole.victims(kind)[-1]
    path = Path(store.uri(key))
    content = path.read_bytes()
    half = len(content) // 2
    damaged = {
        "flip": content[:half] + bytes([content[half] ^ 4]) + content[half + 1 :],
        "zeros": content[:half] + bytes(min(16, len(content) - half)) + content[half + 16 :],
        "cut": content[:half],
    }
    needed = kind in ("published file", "parquet chunk", "arrow chunk", "map file", "index")
    try:
        if how == "missing":
            path.unlink()
        else:
            path.write_bytes(damaged[how])
        report = verified(whole)
    finally:
        path.write_bytes(content)
    if how == "missing" and not needed:
        return  # nothing names it: it was removed
    assert {damage.uri for damage in report.damages} == {str(path)}
    assert KINDS[kind] in report.damages[0].place
    assert all(damage.problem and damage.remedy for damage in report.damages)
    if kind.endswith("file") and kind != "map file" and how == "flip":
        assert any(damage.row_group is not None for damage in report.damages)


def test_a_hint_that_is_damaged_is_named(whole: Warehouse) -> None:
    path = Path(whole.store.uri("results/published/current.json"))
    content = path.read_bytes()
    try:
        for text in (b"{", b'{"version": 17}', b"[]"):
            path.write_bytes(text)
            (damage,) = verified(whole).damages
            assert damage.uri == str(path)
            assert "nothing is lost" in damage.remedy
    finally:
        path.write_bytes(content)


def test_only_one_table(whole: Warehouse) -> None:
    report = verified(whole, table="PUBLISHED")
    assert set(report.checked) == {"files of published tables", "versions of published tables"}
    with pytest.raises(CatalogError, match=r"there is no table 'other'.*arrow_chunks"):
        verified(whole, table="other")


def test_what_is_marked_as_lost_is_known(whole: Warehouse) -> None:
    (manifest,) = whole.manifests()[-1:]
    store, key = whole.store, f"shuffle/x/{manifest.files[0].name}"
    _, key = next((s, k) for s, k in whole.victims("map file") if manifest.fingerprint in k)
    path = Path(store.uri(key))
    content = path.read_bytes()
    mark_lost(store, manifest.fingerprint, manifest.manifest_hash)
    marks = [k for k in store.list("shuffle") if "/lost-" in k]
    try:
        path.unlink()
        assert not verified(whole).damages
    finally:
        path.write_bytes(content)
        store.delete(marks)


def test_what_gc_removes_meanwhile_is_no_damage(
    whole: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version and its files are removed between the listing and the check of the files."""
    from stagecoach.infra.formats.published import checks

    real = checks.check_parquet
    store = whole.store
    kept: dict[Path, bytes] = {}

    def removed(checked: Any, key: str, *rest: Any) -> Any:
        if "/files/" in key and not kept:
            for number in (1, 2):
                path = Path(store.uri(f"results/published/versions/{number:012d}.json"))
                kept[path] = path.read_bytes()
                path.unlink()
            path = Path(store.uri(key))
            kept[path] = path.read_bytes()
            path.unlink()
        return real(checked, key, *rest)

    monkeypatch.setattr(checks, "check_parquet", removed)
    try:
        assert not verified(whole, threads=1).damages
        assert len(kept) == 3
    finally:
        for path, content in kept.items():
            path.write_bytes(content)


# ---------------------------------------------------------------- the command


@dataclass
class Command:
    folder: Path
    store: str

    def __call__(self, *arguments: str) -> Any:
        catalog = str(self.folder / "catalog.yaml")
        line = ["storage", "verify", "--storage", self.store, "--catalog", catalog, *arguments]
        return CliRunner().invoke(cli, line)


@pytest.fixture
def command(whole: Warehouse) -> Command:
    return Command(whole.folder, whole.settings.storage_root)


def test_the_command_says_that_all_is_well(command: Command) -> None:
    result = command()
    assert result.exit_code == 0, result.output
    assert "no damage found" in result.output
    before = CliRunner().invoke(cli, ["storage", "--storage", command.store, "verify"])
    assert before.exit_code == 0
    assert CliRunner().invoke(cli, ["storage", "--storage", command.store]).exit_code == 0


def test_the_command_names_damage_and_fails(command: Command, whole: Warehouse) -> None:
    store, key = whole.victims("published file")[-1]
    path = Path(store.uri(key))
    content = path.read_bytes()
    try:
        path.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
        text = command("--table", "published")
        as_json = command("--json")
    finally:
        path.write_bytes(content)
    assert text.exit_code == as_json.exit_code == 1
    assert f"damaged: {path}" in text.output
    assert "table 'published', version 2, column 'id', row group 0" in text.output
    assert "stagecoach tables clear published" in text.output
    assert "1 damaged" in text.output
    (damage,) = json.loads(as_json.output)["damages"]
    assert (damage["uri"], damage["column"], damage["row_group"]) == (str(path), "id", 0)


# ---------------------------------------------------------------- older tables


def as_older(found: Warehouse) -> None:
    """Rewrite versions as a Stagecoach without checksums of columns wrote them."""
    for log in (found.published_log(), found.chunk_table("parquet_chunks").log):
        version: Any = log.current()
        name = "files" if isinstance(version, TableVersion) else "chunks"
        items = tuple(replace(item, checksums="") for item in getattr(version, name))
        text = replace(version, **{name: items}).to_json()
        key = next(
            k
            for k in log.store.list(f"{log.folder}/versions" if log.folder else "versions")
            if k.endswith(f"{version.number:012d}.json")
        )
        log.store.write_bytes(key, text)
        for number in log.numbers()[:-1]:
            log.store.delete([key.replace(f"{version.number:012d}", f"{number:012d}")])


@pytest.fixture
def older(tmp_path: Path) -> Warehouse:
    found = build_warehouse(tmp_path)
    as_older(found)
    return found


def test_an_older_root_is_adopted(older: Warehouse) -> None:
    command = Command(older.folder, older.settings.storage_root)
    found = command()
    assert found.exit_code == 0, found.output
    assert "2 of table 'parquet_chunks', 2 of table 'published'" in found.output
    assert "--adopt" in found.output
    rows, prints = older.answers(), older.fingerprints()
    done = command("--adopt")
    assert done.exit_code == 0, done.output
    assert "table published: 2 files got checksums in version 3" in done.output
    assert "table parquet_chunks: 2 files got checksums in version 3" in done.output
    assert "without checksums" not in done.output
    assert older.answers() == rows
    assert older.fingerprints() == prints  # so nothing is run again
    assert not adopt_checksums(older.store, [ChunkOperations(older.chunk_table("parquet_chunks"))])
    current = read_current(older.store, "published")
    assert current is not None
    assert current.mode == "adopt"


def test_damaged_files_are_not_adopted(older: Warehouse) -> None:
    store, key = older.victims("published file")[0]
    path = Path(store.uri(key))
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    result = Command(older.folder, older.settings.storage_root)("--adopt")
    assert result.exit_code == 1
    assert f"damaged: {path}" in result.output
    assert "table published: 1 files got checksums" in result.output
    current = read_current(older.store, "published")
    assert current is not None
    assert [bool(file.checksums) for file in current.files] == [False, True]


def test_a_commit_meanwhile_is_kept(older: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    from stagecoach.infra.formats.published import adoption

    real = adoption.read_whole_files

    def slow(*arguments: Any) -> Any:
        found = real(*arguments)
        older.publish_more()
        monkeypatch.setattr(adoption, "read_whole_files", real)
        return found

    monkeypatch.setattr(adoption, "read_whole_files", slow)
    done = adopt_checksums(older.store, table="published")
    current = read_current(older.store, "published")
    assert current is not None
    assert done[0].version == current.number == 4
    assert len(current.files) == 3
    assert all(file.checksums for file in current.files)


@pytest.mark.s3
def test_damage_on_s3(tmp_path: Path, s3_server: S3Server) -> None:
    root = s3_server.new_root()
    found = build_warehouse(tmp_path, root=root, options=s3_server.options)
    assert not verified(found).damages
    for kind in ("published file", "parquet chunk", "map file"):
        store, key = found.victims(kind)[-1]
        content = store.read_bytes(key)
        store.write_bytes(key, content[:150] + bytes([content[150] ^ 1]) + content[151:])
        assert {d.uri for d in verified(found).damages} == {store.uri(key)}
        store.write_bytes(key, content)
