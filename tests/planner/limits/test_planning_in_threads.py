"""Threads that plan at once: none stops another for longer than it plans itself."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import LookedUpCatalog, MappingCatalog, TableInfo
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.planning import plan_query
from tests.planner.catalogs import table

# In a process of its own, whose threads may wait for each other without end. The sums are planned
# on a small stack up to some length, and hashing their stages is what needs a large one.
PROGRAM = """
from concurrent.futures import ThreadPoolExecutor
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.planning import plan_query
from tests.planner.catalogs import table

catalog = MappingCatalog([table("t", "a bigint")])

def deep(number):
    terms = "+".join(["a"] * (235 + number))
    return len(plan_query(f"SELECT {terms} AS s FROM t", catalog).head.plan_hash)

def flat(number):
    return len(plan_query(f"SELECT a + {number} AS s FROM t", catalog).head.plan_hash)

with ThreadPoolExecutor(3) as pool:
    work = [pool.submit(deep, number) for number in range(30)]
    for number in range(150):
        work.insert(number, pool.submit(flat, number))
    print({future.result() for future in work})
"""


def test_deep_and_flat_queries_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "{64}\n", done.stderr[-2000:]


class SlowCatalog(MappingCatalog):
    """One whose tables take until `answer` is set."""

    def __init__(self, tables: Sequence[TableInfo]) -> None:
        super().__init__(tables)
        self.asked, self.answer = threading.Event(), threading.Event()

    def table(self, name: str) -> TableInfo | None:
        self.asked.set()
        assert self.answer.wait(60)
        return super().table(name)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t",
        "WITH t AS (SELECT a FROM t) SELECT a FROM t",
        # Only Spark parses it.
        "SELECT * FROM (FROM t |> SELECT a)",
    ],
)
def test_a_slow_table_holds_up_no_other_query(sql: str) -> None:
    slow, fast = SlowCatalog([table("t", "a bigint")]), MappingCatalog([table("t", "a bigint")])
    # A text that no other test has parsed, because those are kept.
    deep = f"SELECT {'(' * 100}a + {abs(hash(sql)) % 10**6}{')' * 100} AS s FROM t"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(plan_query, sql, slow)
        assert slow.asked.wait(60)
        for text in (deep, "SELECT a FROM t"):
            assert len(plan_query(text, fast).stages) == 1
        assert not waiting.done()
        slow.answer.set()
        assert len(waiting.result().stages) == 1


class CountingCatalog(MappingCatalog):
    """One that notes what it is asked; `bad` cannot be read."""

    def __init__(self, tables: Sequence[TableInfo]) -> None:
        super().__init__(tables)
        self.asked: list[str] = []

    def table(self, name: str) -> TableInfo | None:
        self.asked.append(name)
        if name == "bad":
            raise CatalogError("it cannot be read")
        return super().table(name)


def test_tables_are_looked_up_once_and_a_cte_of_their_name_hides_them() -> None:
    catalog = CountingCatalog([table("t", "a bigint"), table("u", "a bigint")])
    plan_query("WITH bad AS (SELECT a FROM u) SELECT t.a FROM t JOIN bad ON t.a = bad.a", catalog)
    assert sorted(catalog.asked) == ["bad", "t", "u"]
    with pytest.raises(CatalogError, match="it cannot be read"):
        plan_query("SELECT * FROM bad", catalog)
    assert catalog.asked[3:] == ["bad"]


def test_a_catalog_that_was_asked_answers_as_it_did() -> None:
    catalog = CountingCatalog([table("t", "a bigint"), table("u", "a bigint")])
    known = LookedUpCatalog(catalog, ["t", "bad", "none"])
    assert known.table("t") is catalog.table("t")
    assert known.table("none") is None
    assert known.table("u") is catalog.table("u")
    with pytest.raises(CatalogError, match="it cannot be read"):
        known.table("bad")
    assert known.table_names() == ["t", "u"]
    assert (known.function("f"), known.function_names()) == (None, [])


class Lazy:
    """Waits until another instance has its value."""

    def __init__(self, other: Lazy | None = None) -> None:
        self._other = other
        self.is_done = threading.Event()

    @cached_property
    def value(self) -> object:
        """What it is."""
        if self._other is not None:
            assert self._other.is_done.wait(60)
        self.is_done.set()
        return object()


def test_a_property_waits_for_no_other_instance() -> None:
    second = Lazy()
    first = Lazy(second)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: first.value)
        assert second.value is second.value
        assert waiting.result() is first.value
    assert Lazy.value.__doc__ == "What it is."


def test_threads_get_the_same_value() -> None:
    barrier = threading.Barrier(4)

    class Slow:
        @cached_property
        def value(self) -> object:
            barrier.wait(60)
            return object()

    made = Slow()
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(lambda: made.value) for _ in range(4)]
        assert len({id(one.result()) for one in found}) == 1
