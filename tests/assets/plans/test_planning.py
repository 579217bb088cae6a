"""A project planned as a whole: what a query makes is a table for the next one."""

import dataclasses
import logging
import os
from datetime import timedelta
from pathlib import Path

import pytest

from stagecoach.assets.plans.compiled import CompiledPlans
from stagecoach.assets.plans.files import compile_query
from stagecoach.assets.plans.pinned import PinnedPlans, magnitude
from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.plans.planner import planner_of
from stagecoach.assets.plans.planning import PlannedProject, plan_project
from stagecoach.assets.plans.staleness import check_plan
from stagecoach.assets.project.dependencies import order_queries
from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.assets.project.queries import ProjectError, Query
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.infra.storage.stores import open_store
from stagecoach.infra.upkeep.gc import collect_garbage
from stagecoach.planner.catalog import Catalog, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.errors import CatalogError, PlanningTimeoutError
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.serde import dump_graph, seal
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.types import DATE, INT, STRING, Field, parse_type

OPTIONS = PlannerOptions()
COLUMNS = (Field("id", INT), Field("day", DATE), Field("kind", STRING))
PARTITIONS = "partitions: {by: daily, start: 2024-01-01, column: day}"


def base(rows: int = 1000) -> MappingCatalog:
    return MappingCatalog([TableInfo("orders", COLUMNS, TableStats(rows, rows * 20))])


def query(name: str, sql: str, front_matter: str = "") -> Query:
    text = f"/*\n{front_matter}\n*/\n{sql}" if front_matter else sql
    path = Path(f"{name}.sql")
    return Query(name=name, sql=text, path=path, front_matter=parse_front_matter(text))


def plan(*queries: Query, catalog: Catalog | None = None) -> PlannedProject:
    order = order_queries(queries)
    return plan_project(order, catalog or base(), planner_of(OPTIONS))


def test_a_reader_sees_the_planned_columns_of_what_it_reads() -> None:
    planned = plan(
        query("b", "SELECT kind, total / 2 AS half FROM a"),
        query("a", "SELECT kind, sum(id) AS total FROM orders GROUP BY kind"),
    )
    assert not planned.mistakes
    assert [item.query.name for item in planned.queries] == ["a", "b"]
    assert planned.queries[1].graph.tables == (
        ("a", (Field("kind", STRING), Field("total", parse_type("bigint")))),
    )
    assert all(item.publishes for item in planned.queries)
    assert planned.tables[0].estimated_rows == planned.queries[0].graph.head.estimated_rows


class Told:
    """An arbiter that knows the columns of every query."""

    def check(self, graph: StageGraph) -> tuple[Field, ...]:
        return (Field("id", INT), Field("share", parse_type("double")))


def test_a_reader_sees_the_columns_of_a_query_that_spark_runs_whole() -> None:
    whole = query("a", "SELECT id, rand() AS share FROM orders", "checks: [{not_null: [share]}]")
    reader = query("b", "SELECT id, sum(share) AS total FROM a GROUP BY id")
    order = order_queries([whole, reader])
    planned = plan_project(order, base(), planner_of(OPTIONS, Told()))
    assert not planned.mistakes and not planned.blocked
    first, second = (item.graph for item in planned.queries)
    assert first.fallback_reason is not None
    assert second.fallback_reason is None
    assert second.tables == (("a", first.result),)
    wrong = query("c", "SELECT shre FROM a")
    planned = plan_project(order_queries([whole, wrong]), base(), planner_of(OPTIONS, Told()))
    assert "did you mean 'share'" in planned.mistakes[0]


def test_a_compiled_plan_is_written_again_once_its_columns_are_known(tmp_path: Path) -> None:
    whole = query("a", "SELECT id, rand() AS share FROM orders")
    path = tmp_path / "a.json"
    before, after = (compile_query(whole, base(), OPTIONS, arbiter=a) for a in (None, Told()))
    path.write_text(before.to_text(), encoding="utf-8")
    found = check_plan(path, after, base(), OPTIONS)
    assert (found.status, found.is_as_written) == ("fresh", False)
    path.write_text(after.to_text(), encoding="utf-8")
    # Where no Spark is asked, the columns that are known stay.
    for now in (before, after):
        assert check_plan(path, now, base(), OPTIONS).reasons == ()
    assert CompiledPlans(planner_of(OPTIONS), tmp_path)(whole, base()).result == after.graph.result


def test_partition_folders_stand_last_for_readers() -> None:
    planned = plan(
        query("a", "SELECT day, id FROM orders", "output: {partition_by: [day]}"),
        query("b", "SELECT * FROM a"),
    )
    assert [f.name for f in planned.queries[1].graph.result] == ["id", "day"]


def test_all_mistakes_are_told_with_their_places() -> None:
    planned = plan(
        query("a", "SELECT nope FROM orders"),
        query("b", "SELECT id\nFROM orders WHERE knd = 'x'"),
        query("c", "SELECT id, id FROM orders"),
        query("d", "SELECT * FROM orders", PARTITIONS),
        query("e", "SELECT id FROM orders", "checks: [{not_null: [idd]}]"),
        query("f", "SELECT id FROM orders", "checks: [{no_rows: {name: n, sql: SELECT x FROM f}}]"),
    )
    text = "\n".join(planned.mistakes)
    assert "a.sql" in text
    assert "'nope'" in text
    assert "line 2" in text
    assert "c.sql: the result has the columns 'id' and 'id'" in text
    assert "f.sql: check 'n': [UNRESOLVED_COLUMN.WITH_SUGGESTION] column 'x' not found" in text
    assert "does not use :partition_start" in text
    assert "did you mean 'id'" in text
    assert "'x'" in text
    assert len(planned.mistakes) == 6


def test_what_reads_a_query_with_mistakes_is_blocked_not_wrong() -> None:
    planned = plan(query("a", "SELECT nope FROM orders"), query("b", "SELECT * FROM a"))
    assert len(planned.mistakes) == 1
    assert [(q.name, reason) for q, reason in planned.blocked] == [
        ("b", "it reads 'a': a.sql has mistakes")
    ]


def test_missing_data_blocks_all_readers() -> None:
    class Broken(MappingCatalog):
        def table(self, name: str) -> TableInfo | None:
            if name == "gone":
                raise CatalogError("no files")
            return super().table(name)

    planned = plan(
        query("a", "SELECT * FROM gone"),
        query("b", "SELECT * FROM a"),
        query("c", "SELECT id FROM orders"),
        catalog=Broken([TableInfo("orders", COLUMNS)]),
    )
    assert [q.name for q, _ in planned.blocked] == ["a", "b"]
    assert "it reads 'a': no files" in planned.blocked[1][1]
    assert [item.query.name for item in planned.queries] == ["c"]


def test_checks_are_planned_over_the_querys_own_table() -> None:
    planned = plan(
        query(
            "a",
            "SELECT id, day FROM orders WHERE day = :partition_start",
            f"{PARTITIONS}\nchecks:\n  - not_null: [id]\n  - freshness: {{within: 1h}}",
        )
    )
    assert not planned.mistakes
    (check,) = planned.checks["a"]
    assert check.graph.query == "a.not_null_id"
    assert [p.name for p in check.graph.parameters] == ["partition_start", "partition_end"]
    assert [name for name, _ in check.graph.tables] == ["a"]


# ---------------------------------------------------------------- plans that are kept


class Counting:
    """Counts how often a query is planned."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, asked: Query, catalog: Catalog) -> StageGraph:
        self.count += 1
        return planner_of(OPTIONS)(asked, catalog)


def test_a_plan_is_kept_until_what_it_is_made_of_changes(tmp_path: Path) -> None:
    counting = Counting()
    plans = PinnedPlans(counting, open_store(tmp_path), OPTIONS)
    asked = query("a", "SELECT kind, count(*) AS n FROM orders GROUP BY kind")
    first = plans(asked, base(1000))
    assert plans(asked, base(1000)) == first
    assert plans(asked, base(1020)) == first
    assert counting.count == 1
    plans(asked, base(100_000))
    assert counting.count == 2
    plans(query("a", f"{asked.sql} -- other"), base(1000))
    assert counting.count == 3
    other = MappingCatalog([TableInfo("orders", COLUMNS[::-1], TableStats(1000, 20_000))])
    plans(asked, other)
    assert counting.count == 4


def test_a_plan_that_was_not_made_in_time_is_kept_for_the_day(tmp_path: Path) -> None:
    slow, fast, store = Counting(), Counting(), open_store(tmp_path)
    asked = query("a", "SELECT kind, count(*) AS n FROM orders GROUP BY kind")

    def too_slow(asked: Query, catalog: Catalog) -> StageGraph:
        reason = "planning took longer than 30 seconds; simplify the query"
        graph = slow(asked, catalog)
        stage = dataclasses.replace(graph.head, stage_id=0, engine="spark", sql=asked.sql)
        return dataclasses.replace(graph, stages=(stage,), fallback_reason=reason)

    def pinned(plan: PlanQuery, day: str) -> StageGraph:
        return PinnedPlans(plan, store, OPTIONS, day=day)(asked, base())

    late = pinned(too_slow, "2024-01-01")
    assert late.fallback_reason is not None
    assert pinned(fast, "2024-01-01") == late, "all processes of a day have one plan"
    assert (slow.count, fast.count) == (1, 0)
    staged = pinned(fast, "2024-01-02")
    assert staged.fallback_reason is None
    assert pinned(too_slow, "2024-01-03") == staged, "a plan that was made is kept"
    assert (slow.count, fast.count) == (1, 1)


def test_a_plan_that_was_made_before_there_was_data_is_used_for_a_week(tmp_path: Path) -> None:
    asked = query("a", "SELECT kind, count(*) AS n FROM orders GROUP BY kind")
    store = open_store(tmp_path)

    def load(day: str, rows: int | None) -> int:
        stats = None if rows is None else TableStats(rows, rows * 20)
        counting = Counting()
        catalog = MappingCatalog([TableInfo("orders", COLUMNS, stats, is_declared=True)])
        PinnedPlans(counting, store, OPTIONS, day=day)(asked, catalog)
        return counting.count

    assert load("2024-01-01", None) == 1
    # The run that makes the data sees the same stages before and after it.
    assert load("2024-01-01", 100_000) == 0
    assert load("2024-01-07", 1_000_000_000) == 0
    assert load("2024-01-08", 100_000) == 1
    assert load("2024-01-08", 100_000) == 0
    assert load("2024-01-08", 1_000_000_000) == 1
    # Whoever removes the data starts again.
    assert load("2024-01-09", None) == 1
    assert load("2024-01-10", None) == 0
    assert load("2024-01-10", 100_000) == 0
    assert load("2024-01-16", 100_000) == 0, "it was planned for this size on January 8"


def test_a_plan_with_a_longer_timeout_is_made_anew(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    asked = query("a", "SELECT kind, count(*) AS n FROM orders GROUP BY kind")

    def too_slow(asked: Query, catalog: Catalog) -> StageGraph:
        graph = planner_of(OPTIONS)(asked, catalog)
        return dataclasses.replace(graph, fallback_reason="planning took longer than 30 seconds")

    late = PinnedPlans(too_slow, store, OPTIONS, day="2024-01-01")(asked, base())
    more_time = PlannerOptions(timeout_seconds=300)
    made = PinnedPlans(Counting(), store, more_time, day="2024-01-01")(asked, base())
    assert (late.fallback_reason is None, made.fallback_reason) == (False, None)
    # A plan that was made in time fits whatever the timeout is.
    assert PinnedPlans(too_slow, store, OPTIONS, day="2024-01-01")(asked, base()) == made


def test_a_query_that_is_not_planned_in_time_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = query("a", "SELECT kind FROM orders")
    graph = planner_of(OPTIONS)(asked, base())
    late = dataclasses.replace(graph, fallback_reason="planning took longer than 30 seconds")
    monkeypatch.setattr("stagecoach.assets.plans.files.planner_of", lambda *_: lambda q, c: late)
    with pytest.raises(PlanningTimeoutError, match="query 'a': planning took longer"):
        compile_query(asked, base(), OPTIONS)


def test_a_damaged_plan_is_planned_anew(tmp_path: Path) -> None:
    counting = Counting()
    store = open_store(tmp_path)
    plans = PinnedPlans(counting, store, OPTIONS)
    asked = query("a", "SELECT id FROM orders")
    plans(asked, base())
    (path,) = (tmp_path / "plans").rglob("*.json")
    path.write_text("{")
    assert plans(asked, base()).result == (Field("id", INT),)
    assert counting.count == 2
    plans(asked, base())
    assert counting.count == 2


def test_a_plan_in_use_is_written_again_once_a_day_so_that_gc_keeps_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    used, newest = (query("a", f"SELECT id + {n} AS n FROM orders") for n in (1, 2))

    def load(day: str, *queries: Query) -> int:
        """How many of them a code location plans that is loaded on this day."""
        counting = Counting()
        plans = PinnedPlans(counting, store, OPTIONS, day=day)
        assert [plans(asked, base()).sql for asked in queries] == [asked.sql for asked in queries]
        return counting.count

    assert load("2024-01-01", used) == 1
    (key,) = store.list("plans")
    text = store.read_bytes(key)
    assert load("2024-01-01", newest) == 1
    os.utime(store.uri(key), (0.0, 0.0))
    assert load("2024-01-01", used) == 0
    assert store.read_bytes(key) == text
    assert os.stat(store.uri(key)).st_mtime == 0
    assert load("2024-01-02", used) == 0
    later = text.decode().replace("2024-01-01", "2024-01-02")
    assert store.read_bytes(key) == seal(later).encode()
    assert not collect_garbage(store, older_than=timedelta(days=7)).plans
    os.utime(store.uri(key), (0.0, 0.0))
    (gone,) = collect_garbage(store, older_than=timedelta(days=7)).plans
    assert (gone.query, gone.plan_hash) == ("a", planner_of(OPTIONS)(used, base()).plan_hash)
    assert load("2024-01-02", used, newest) == 1
    assert load("2024-01-02", used, newest) == 0


def test_a_plan_that_cannot_be_written_again_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(tmp_path)
    counting = Counting()
    asked = query("a", "SELECT id FROM orders")
    PinnedPlans(counting, store, OPTIONS, day="2024-01-01")(asked, base())

    def refuse(*_: object) -> None:
        raise StorageError("read-only")

    monkeypatch.setattr(LocalStore, "write_bytes", refuse)
    PinnedPlans(counting, store, OPTIONS, day="2024-01-02")(asked, base())
    assert counting.count == 1
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_magnitudes_are_steps_of_eight() -> None:
    assert magnitude(0) == magnitude(3)
    assert magnitude(1000) != magnitude(20_000)


def test_a_compiled_plan_is_used_without_looking_at_its_tables(tmp_path: Path) -> None:
    asked = query("a", "SELECT id FROM orders")
    graph = planner_of(OPTIONS)(asked, base())
    (tmp_path / "a.json").write_text(dump_graph(graph))
    counting = Counting()
    plans = CompiledPlans(counting, tmp_path)

    class Untouched(MappingCatalog):
        def table(self, name: str) -> TableInfo | None:
            raise AssertionError(name)

    assert plans(asked, Untouched([])) == graph
    assert counting.count == 0
    plans(query("a", "SELECT id FROM orders --"), base())
    plans(query("b", "SELECT id FROM orders"), base())
    assert counting.count == 2


def test_a_compiled_reader_of_another_type_is_refused_with_the_path(tmp_path: Path) -> None:
    reader = query("b", "SELECT x FROM a")
    old = plan(query("a", "SELECT id AS x FROM orders"), reader).queries[1].graph
    (tmp_path / "b.json").write_text(dump_graph(old))
    order = order_queries([query("a", "SELECT kind AS x FROM orders"), reader])
    made = plan_project(order, base(), CompiledPlans(planner_of(OPTIONS), tmp_path))
    (mistake,) = made.mistakes
    assert "column 'x' of table 'a' was int and is string; b.sql read(s) it" in mistake
    assert "stagecoach compile" in mistake


def test_project_errors_are_of_the_project() -> None:
    with pytest.raises(ProjectError):
        order_queries([query("a", "SELECT * FROM a")])


def test_front_matter_decides_whether_a_plan_is_incremental(tmp_path: Path) -> None:
    text = "SELECT day, count(*) AS n FROM orders GROUP BY day"
    asked, plain = query("a", text, "incremental: true"), query("a", text)
    tables, plan_of = base(10_000_000), planner_of(OPTIONS)
    assert any(stage.incremental for stage in plan_of(asked, tables).stages)
    assert not any(stage.incremental for stage in plan_of(plain, tables).stages)
    pinned = PinnedPlans(plan_of, LocalStore(str(tmp_path)), OPTIONS)
    assert pinned.key(asked, tables) != pinned.key(plain, tables)
    compiled = compile_query(asked, tables, OPTIONS)
    options = compiled.notes["options"]
    assert isinstance(options, dict)
    assert options["incremental"] == "true"
