"""Shrink a query that differs: first its text, then the rows of its tables.

Any step that leaves the same kind of difference is kept, and what is left is tried again: the
greedy form of delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing
input", 2002). Spark decides what is a query.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.random_queries.smaller_texts import smaller_texts
from benchmarks.random_queries.tables import Rows, write_tables
from benchmarks.random_queries.trial import Trial, Verdict, Way, with_options
from stagecoach.planner.options import PlannerOptions
from tests.differential.spark_answers import plain_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 90.0
_SHOWN = 4_000


@dataclass(frozen=True)
class Shrunk:
    """A query that still differs.

    Attributes:
        sql: Its text.
        rows: The rows of its tables, if fewer are enough; else how many there are.
        detail: What differs.
    """

    sql: str
    rows: str
    detail: str


class Shrinker:
    """Makes queries that differ smaller.

    Args:
        spark: Plain Spark with views of the tables.
        folder: Where smaller tables are written.
        rows: The rows of the tables, by file.
    """

    def __init__(
        self, spark: SparkSession, folder: Path, rows: Mapping[str, Sequence[Rows]]
    ) -> None:
        self._spark, self._folder, self._rows = spark, folder, rows
        self._written = 0
        self._deadline = 0.0

    def shrink(self, sql: str, way: Way, verdict: Verdict) -> Shrunk:
        """A small query over few rows that ends like this one, as far as time allows."""
        self._deadline = time.monotonic() + _SECONDS
        trial = self._trial(self._rows)
        way = self._simplest_way(trial, sql, way, verdict)
        sql, verdict = self._smaller_text(trial, sql, way, verdict)
        rows, verdict = self._fewer_rows(sql, way, verdict)
        shown = repr({name: [r for part in parts for r in part] for name, parts in rows.items()})
        if len(shown) > _SHOWN:
            shown = f"{len(shown)} characters"
        return Shrunk(sql, shown, verdict.detail)

    def _trial(self, rows: Mapping[str, Sequence[Rows]]) -> Trial:
        self._written += 1
        tables = write_tables(self._folder / str(self._written), rows)
        return Trial(plain_session(self._spark, tables), tables)

    def _has_time(self) -> bool:
        return time.monotonic() < self._deadline

    @staticmethod
    def _simplest_way(trial: Trial, sql: str, way: Way, verdict: Verdict) -> Way:
        simpler = [replace(way, mix=None), replace(way, stored=None)]
        simpler.append(replace(way, mix=None, stored=None))
        simpler += [with_options(w, num_partitions=1) for w in (way, *simpler)]
        simpler.append(Way(PlannerOptions(single_task_bytes=1 << 60)))
        for candidate in reversed(simpler):
            if trial.run(sql, candidate).outcome == verdict.outcome:
                return candidate
        return way

    def _smaller_text(
        self, trial: Trial, sql: str, way: Way, verdict: Verdict
    ) -> tuple[str, Verdict]:
        shrunk = True
        while shrunk and self._has_time():
            shrunk = False
            for candidate in smaller_texts(sql):
                if not self._has_time():
                    break
                if len(candidate) >= len(sql):
                    continue
                found = trial.run(candidate, way)
                if found.outcome == verdict.outcome:
                    sql, verdict, shrunk = candidate, found, True
                    break
        return sql, verdict

    def _fewer_rows(
        self, sql: str, way: Way, verdict: Verdict
    ) -> tuple[Mapping[str, Sequence[Rows]], Verdict]:
        rows = {
            name: [list(part) for part in parts]
            for name, parts in self._rows.items()
            if re.search(rf"\b{name}\b", sql)
        }
        self._deadline = time.monotonic() + _SECONDS / 2
        for name in rows:
            size = max(map(len, rows[name]))
            while size and self._has_time():
                kept = False
                for candidate in _without(rows, name, size):
                    found = self._trial(candidate).run(sql, way)
                    if found.outcome == verdict.outcome:
                        rows, verdict, kept = candidate, found, True
                        break
                    if not self._has_time():
                        break
                if not kept:
                    size //= 2
        return rows, verdict


def _without(
    rows: Mapping[str, list[Rows]], name: str, size: int
) -> Iterator[dict[str, list[Rows]]]:
    """The tables without so many consecutive rows of one file, for each such run of rows."""
    for number, part in enumerate(rows[name]):
        for start in range(0, len(part), size):
            parts = [*rows[name]]
            parts[number] = part[:start] + part[start + size :]
            yield {**rows, name: parts}
