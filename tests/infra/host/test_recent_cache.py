"""What is made once of immutable things: bounded, safe from several threads, never out of date."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.formats.deduplicated.table_format import chunk_table
from stagecoach.infra.formats.deduplicated.version import ChunkTableVersion, parsed_version
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.infra.formats.version_json import TableVersionError
from stagecoach.infra.host.recent_cache import RecentCache


def test_the_last_values_are_kept_within_both_bounds() -> None:
    cache: RecentCache[str] = RecentCache(max_entries=2, max_cost=10)
    made: list[str] = []

    def get(key: str) -> str:
        def make() -> str:
            made.append(key)
            return key * 2

        return cache.get(key, make, len)

    assert [get(k) for k in ("a", "b", "a", "c", "a", "b")] == ["aa", "bb", "aa", "cc", "aa", "bb"]
    assert made == ["a", "b", "c", "b"]  # b was asked for longest ago when c came
    assert (len(cache), cache.cost) == (2, 4)
    get("dddd")  # 8 of 10: only one of the others may stay
    assert (len(cache), cache.cost) == (2, 10)
    get("eeeeee")  # 12 is too much
    assert (len(cache), cache.cost) == (2, 10)
    cache.clear()
    assert (len(cache), cache.cost) == (0, 0)


def test_what_is_kept_later_has_a_bound_of_its_own() -> None:
    cache: RecentCache[str] = RecentCache(max_entries=4, max_cost=10)
    assert cache.find("a") is None
    assert cache.keep("a", "aa", 2) == "aa"
    assert cache.keep("a", "other", 5) == "aa"  # of a thread that was slower
    assert cache.keep("b", "bb", 20, max_cost=22) == "bb"
    assert (cache.find("a"), cache.find("b"), cache.cost) == ("aa", "bb", 22)
    assert cache.keep("c", "cc", 2, max_cost=1) == "cc"
    assert cache.find("c") is None
    cache.keep("d", "dd", 1)
    assert (cache.find("a"), cache.find("b"), cache.cost) == (None, None, 1)


def test_an_error_is_passed_on_and_nothing_is_kept() -> None:
    cache: RecentCache[int] = RecentCache(max_entries=2, max_cost=10)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0, lambda _: 1)
    assert cache.get("a", lambda: 7, lambda _: 1) == 7


def test_threads_that_come_together_get_the_same_value() -> None:
    cache: RecentCache[object] = RecentCache(max_entries=4, max_cost=100)
    together = threading.Barrier(8)

    def get(number: int) -> object:
        together.wait()
        return cache.get(number // 4, object, lambda _: 1)

    with ThreadPoolExecutor(8) as threads:
        for _ in range(50):
            found = list(threads.map(get, range(8)))
            assert len({id(value) for value in found}) == 2
            assert cache.cost == len(cache) == 2
            cache.clear()


@pytest.fixture
def catalog(tmp_path: Path) -> FileCatalog:
    text = "tables: {t: {kind: deduplicated, location: t, primary_key: [k]}}"
    (tmp_path / "catalog.yaml").write_text(text)
    found = load_catalog(tmp_path / "catalog.yaml")
    chunk_table(found, "t").append([pa.table({"k": [1, 2], "v": [0.5, -0.0]})])
    return found


def test_a_version_is_parsed_once_and_known_by_its_text(
    catalog: FileCatalog, tmp_path: Path
) -> None:
    table = chunk_table(catalog, "t")
    first = table.read()
    assert table.read() is first
    shutil.rmtree(tmp_path / "t")  # the same name again, for other rows
    table.append([pa.table({"k": [3]})])
    second = table.read()
    assert (first.number, first.num_rows, second.number, second.num_rows) == (1, 2, 1, 1)
    path = tmp_path / "t" / "versions" / "000000000001.json"
    text = path.read_bytes()
    assert parsed_version(text, uri="x") == ChunkTableVersion.from_json(text, uri="x") == second
    path.write_bytes(text.replace(b'"num_rows": 1', b'"num_rows": 2', 1))
    for _ in range(2):
        with pytest.raises(TableVersionError, match="damaged"):
            table.read()


def test_runs_over_one_version_share_its_snapshot(catalog: FileCatalog) -> None:
    first, second = take_snapshot(catalog, ["t"]), take_snapshot(catalog, ["T"])
    assert second.table("t") is first.table("t")
    text = first.to_json()
    assert Snapshot.from_json(text) == first
    assert Snapshot.from_json(text).to_json() == text  # what another process would write
    chunk_table(catalog, "t").append([pa.table({"k": [3]})])
    third = take_snapshot(catalog, ["t"])
    assert [len(s.table("t").detail.chunks) for s in (first, third)] == [1, 2]
    assert Snapshot.from_json(third.to_json()) == third
