"""Queries by seed, over tables that are written once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.random_queries.grammar import Library, WideGrammar
from benchmarks.random_queries.shrink import Shrinker, Shrunk
from benchmarks.random_queries.tables import all_rows, write_tables
from benchmarks.random_queries.templates import (
    aggregate_templates,
    column_kinds,
    scalar_templates,
    window_templates,
)
from benchmarks.random_queries.trial import BAD, Trial, Verdict, Way
from tests.differential.spark_answers import plain_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Campaign:
    """Runs the query of a seed.

    Args:
        spark: A classic session; the campaign has a session of its own in it.
        folder: Where tables are written.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        rows = all_rows()
        tables = write_tables(folder, rows)
        session = plain_session(spark, tables)
        self._trial = Trial(session, tables)
        self._shrinker = Shrinker(session, folder / "shrunk", rows)
        catalog = tables.catalog
        columns = {name: column_kinds(catalog, name) for name in tables.files}
        self._library = Library(
            columns,
            scalar_templates(catalog),
            aggregate_templates(catalog),
            window_templates(catalog),
        )

    def run(self, seed: int, *, shrinks: bool = True) -> dict[str, Any]:
        """What came of the query of a seed, as an entry of the log."""
        sql, way = WideGrammar(seed, self._library).query(), Way.of(seed)
        verdict = self._trial.run(sql, way)
        entry: dict[str, Any] = {"seed": seed, **vars(verdict)}
        if verdict.outcome not in ("equal", "raises"):
            entry["sql"] = sql
        if verdict.outcome in BAD and shrinks:
            entry["shrunk"] = vars(self._shrinker.shrink(sql, way, verdict))
        return entry

    def verdict(self, sql: str, way: Way) -> Verdict:
        """How a query of one's own ends."""
        return self._trial.run(sql, way)

    def shrunk(self, sql: str, way: Way) -> Shrunk:
        """A small query that ends as this one does."""
        return self._shrinker.shrink(sql, way, self.verdict(sql, way))
