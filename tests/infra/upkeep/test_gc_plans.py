"""gc of plans and of Spark's analyses of plans: they do not stay for ever, and those in use stay."""

from __future__ import annotations

import datetime
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stagecoach.infra.runtime.records.pointers import StagePointer, write_pointer
from stagecoach.infra.runtime.records.run_marks import mark_begun, mark_ended
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.upkeep.gc import GcReport, collect_garbage
from stagecoach.infra.upkeep.run_needs import RunNeeds, Runs
from stagecoach.infra.upkeep.usage import storage_usage
from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.serde import dump_graph
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.types import INT, Field
from tests.infra.upkeep.test_gc import HOUR, NOW, WEEK, set_age

TABLE = TableInfo("t", (Field("a", INT),))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


@functools.cache
def graph(number: int) -> StageGraph:
    sql = f"SELECT a + {number} AS a FROM t"
    return plan_query(sql, MappingCatalog([TABLE]), PlannerOptions(), name="q")


def put(store: LocalStore, key: str, text: str, age: datetime.timedelta) -> str:
    store.write_bytes(key, text.encode())
    moment = (NOW - age).timestamp()
    os.utime(store.uri(key), (moment, moment))
    return key


def keep_plan(store: LocalStore, query: str, number: int, age: datetime.timedelta) -> str:
    """A plan that a query keeps, last written `age` before NOW."""
    key = layout.pinned_plan(query, f"{number:032x}")
    return put(store, key, dump_graph(graph(number)), age)


def keep_analysis(store: LocalStore, query: str, number: int, age: datetime.timedelta) -> str:
    """What Spark said of that plan."""
    key = layout.analysis(f"{query.encode().hex()}{number:032x}")
    found = {"columns": [["a", "int"]], "plan": graph(number).plan_hash, "query": query}
    return put(store, key, json.dumps(found), age)


def add_run(store: LocalStore, run_id: str, number: int, age: datetime.timedelta) -> None:
    """A run in progress over that plan."""
    mark_begun(store, run_id, run_id)
    pointer = StagePointer(expected="0" * 64, fingerprint="0" * 64, plan=graph(number).plan_hash)
    write_pointer(store, run_id, 0, pointer)
    set_age(store, layout.run_prefix(run_id), age)


def left(store: LocalStore) -> set[str]:
    return {*store.list("plans"), *store.list("analysis")}


def removed(report: GcReport) -> set[str]:
    return {plan.stored.key for plan in (*report.plans, *report.analyses)}


@pytest.mark.parametrize("keep", [keep_plan, keep_analysis])
def test_the_newest_of_each_query_stays_and_old_ones_go(
    store: LocalStore, keep: Callable[..., str]
) -> None:
    old = {keep(store, "q", 1, 3 * WEEK), keep(store, "q", 2, 4 * WEEK)}
    newest = {keep(store, "q", 3, 2 * WEEK), keep(store, "r", 1, 9 * WEEK)}
    new = {keep(store, "s", 1, HOUR), keep(store, "s", 2, 2 * HOUR)}
    planned = collect_garbage(store, older_than=WEEK, now=NOW, dry_run=True)
    assert left(store) == old | newest | new
    assert removed(planned) == old
    assert planned.num_objects == 2
    assert planned.num_bytes == sum(store.size(key) for key in old)
    assert collect_garbage(store, older_than=WEEK, now=NOW) == planned
    assert left(store) == newest | new


def test_what_a_run_of_late_or_in_progress_has_pinned_stays(store: LocalStore) -> None:
    for keep in (keep_plan, keep_analysis):
        for number in range(1, 6):
            keep(store, "q", number, number * 2 * WEEK)
    add_run(store, "late", 2, 2 * HOUR)
    mark_ended(store, "late", "late")
    set_age(store, layout.run_prefix("late"), 2 * HOUR)
    add_run(store, "live", 3, HOUR)
    add_run(store, "over", 4, 2 * WEEK)
    planned = collect_garbage(store, older_than=WEEK, now=NOW, dry_run=True)
    assert collect_garbage(store, older_than=WEEK, now=NOW) == planned
    assert {key.rsplit("/", 1)[-1][-6:-5] for key in left(store)} == {"1", "2", "3"}
    assert len(left(store)) == 6


def test_what_was_written_since_a_run_in_progress_began_stays(store: LocalStore) -> None:
    """The run has yet to pin it, or another one loads its plan just now."""
    add_run(store, "live", 9, 2 * HOUR)
    before = {keep_plan(store, "q", 1, 3 * HOUR), keep_analysis(store, "q", 1, 3 * HOUR)}
    for number in (2, 3):
        keep_plan(store, "q", number, HOUR)
        keep_analysis(store, "q", number, HOUR)
    report = collect_garbage(store, older_than=datetime.timedelta(), now=NOW)
    assert removed(report) == before
    assert len(left(store)) == 4


@pytest.mark.parametrize("how", ["pinned", "written"])
def test_what_comes_to_be_needed_while_it_goes_stays(
    how: str, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {keep_plan(store, "q", 1, 3 * WEEK), keep_analysis(store, "q", 1, 3 * WEEK)}
    gone = {keep_plan(store, "q", 2, 3 * WEEK), keep_analysis(store, "q", 2, 3 * WEEK)}
    newest = {keep_plan(store, "q", 3, 2 * WEEK), keep_analysis(store, "q", 3, 2 * WEEK)}
    needs, looks = Runs.needs, list[RunNeeds]()

    def come_first(self: Runs) -> RunNeeds:
        if len(looks) == 1:  # the listing is over
            if how == "pinned":
                add_run(store, "live", 1, HOUR)
            else:
                keep_plan(store, "q", 1, HOUR)
                keep_analysis(store, "q", 1, HOUR)
        looks.append(needs(self))
        return looks[-1]

    monkeypatch.setattr(Runs, "needs", come_first)
    report = collect_garbage(store, older_than=WEEK, now=NOW)
    assert len(looks) > 1
    assert removed(report) == gone
    assert left(store) == wanted | newest


def test_what_cannot_be_read_goes_and_what_is_not_ours_stays(
    store: LocalStore, caplog: pytest.LogCaptureFixture
) -> None:
    newest = {keep_plan(store, "q", 1, 2 * WEEK), keep_analysis(store, "q", 1, 2 * WEEK)}
    garbage = {
        put(store, layout.pinned_plan("q", "ab" * 16), "{", 3 * WEEK),
        put(store, layout.pinned_plan("q", "cd" * 16), '{"format_version": 99}', 3 * WEEK),
        put(store, "plans/q/.tmp-0123", "half of it", WEEK + HOUR),
        put(store, f"plans/q/{'ef' * 16}.json.tmp-0123", "half of it", WEEK + HOUR),
        # As an earlier version wrote it: which query's it is, nobody knows.
        put(store, layout.analysis("ab" * 32), '{"columns": []}', WEEK + HOUR),
        put(store, layout.analysis("cd" * 32), "[", 3 * WEEK),
        put(store, "analysis/.tmp-0123", "half of it", 3 * WEEK),
    }
    foreign = {
        put(store, key, "{}", 9 * WEEK)
        for key in ("plans/notes.json", "plans/q/notes.txt", "analysis/q/notes.json")
    }
    assert removed(collect_garbage(store, older_than=WEEK, now=NOW)) == garbage
    assert left(store) == newest | foreign
    assert all(f"{store.uri(key)} is not ours and stays" in caplog.text for key in foreign)


def test_a_plan_that_another_collection_removes_is_no_error(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        keep_plan(store, "q", number, number * 2 * WEEK)
        keep_analysis(store, "q", number, number * 2 * WEEK)
    read = LocalStore.read_bytes

    def remove_first(self: LocalStore, key: str, *args: int) -> bytes:
        self.delete([key])
        return read(self, key, *args)

    monkeypatch.setattr(LocalStore, "read_bytes", remove_first)
    assert removed(collect_garbage(store, older_than=WEEK, now=NOW)) == set()


def test_usage_tells_of_plans(store: LocalStore) -> None:
    keys = [keep_plan(store, query, number, HOUR) for query in "qr" for number in (1, 2)]
    analysis = keep_analysis(store, "q", 1, HOUR)
    found = storage_usage(store)
    assert (found.plans.num_items, found.plans.num_objects) == (2, 4)
    assert found.plans.num_bytes == sum(map(store.size, keys))
    assert (found.analyses.num_objects, found.analyses.num_bytes) == (1, store.size(analysis))
    assert found.others == ()
    assert found.total.num_objects == 5
