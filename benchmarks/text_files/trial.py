"""One generated file, read by a task's reader and by `spark.read`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.text_files.files import Case
from stagecoach.infra.errors import QueryError
from stagecoach.infra.formats.protocol import Access, TableSource
from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import whole_table
from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.formats.units import ScanSlice, ScanUnit
from stagecoach.infra.integrity.local import FileChecks
from stagecoach.infra.reading.format_input import RowsInput, input_from_dict, input_to_dict
from stagecoach.infra.reading.inputs import conform, leaf_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EQUAL, LEFT, DIFFERS = "equal", "left to Spark", "differs"


@dataclass(frozen=True)
class Outcome:
    """What came of a file.

    Args:
        kind: `EQUAL`, `LEFT` or `DIFFERS`.
        detail: Why Spark must read it, or both answers.
    """

    kind: str
    detail: str = ""


def try_case(spark: SparkSession, case: Case, folder: Path) -> Outcome:
    """Read a file both ways and compare the rows, and their number with what a plan counts on."""
    path = folder / case.name
    path.write_bytes(case.content)
    counted = _counted_rows(case, path)
    left = None
    try:
        rows = read_here(case, path, folder)
    except QueryError as error:
        left = Outcome(LEFT, str(error).splitlines()[0][:100])
        if counted is None:
            return left
    spark.conf.set("spark.sql.session.timeZone", case.time_zone)
    try:
        answer = read_by_spark(spark, case, path)
    except Exception as error:  # noqa: BLE001 -- whatever Spark raises is its answer
        theirs: object = str(error).splitlines()[0]
    else:
        if counted not in (None, answer.num_rows):
            return Outcome(DIFFERS, f"counted rows: {counted}\nof Spark:     {answer.num_rows}")
        theirs = answer.to_pylist() if left is None else None
    if left is not None:
        return left
    ours = rows.to_pylist()
    if repr(ours) == repr(theirs):
        return Outcome(EQUAL)
    return Outcome(DIFFERS, f"ours:  {ours!r}\nSpark: {theirs!r}")


def read_here(case: Case, path: Path, folder: Path) -> pa.Table:
    """Return the rows as tasks read them, each range of the file by itself.

    Raises:
        QueryError: Spark must read the file.
    """
    found = table_format(case.format)
    table = _state(case, path).snapshot
    fields = [f for name in case.selected for f in table.columns if f.name == name]
    scan = found.plan_scan(whole_table("t", fields, case.time_zone), table)
    schema = None
    batches: list[pa.RecordBatch] = []
    for share in _shares(scan.units, case.cuts):
        bound = scan.bind(share)
        assert isinstance(bound, RowsInput)
        schema = leaf_schema(bound.columns)
        bound = input_from_dict(input_to_dict(bound))
        assert isinstance(bound, RowsInput)
        reached = bound.reached({}, 1 << 27, FileChecks(folder=str(folder / "spill")))
        batches += [conform(b.select(schema.names), schema) for b in reached.batches()]
    assert schema is not None
    return pa.Table.from_batches(batches, schema)


def _counted_rows(case: Case, path: Path) -> int | None:
    """The rows that a plan counts on, None where it estimates them."""
    stats = _state(case, path).info.stats
    return None if stats is None or stats.is_estimate else stats.num_rows


def _state(case: Case, path: Path) -> TableState:
    found = table_format(case.format)
    body = {"columns": dict(case.columns), "options": dict(case.options)}
    declaration = found.declare("table 't'", body)
    source = TableSource(name="t", location=str(path), format=case.format, declaration=declaration)
    return found.open(source, Access()).state()


def _shares(units: Sequence[ScanUnit], cuts: Sequence[float]) -> list[ScanSlice]:
    """The file in ranges; rows of a small file are too few to cut it anywhere, so it gets more."""
    if not cuts or not sum(unit.num_rows for unit in units):
        return [ScanSlice(tuple(units))]
    (unit,) = units
    places = [0, *(int(cut * unit.num_rows) for cut in cuts), unit.num_rows]
    sizes = [(a, b) for a, b in pairwise(places) if a < b]
    return [ScanSlice((ScanUnit(unit.uri, ((b - a, 1),), a, unit.num_rows - b),)) for a, b in sizes]


def read_by_spark(spark: SparkSession, case: Case, path: Path) -> pa.Table:
    """Return the rows as Spark reads them."""
    ddl = ", ".join(f"`{name}` {dtype}" for name, dtype in case.columns.items())
    reader = spark.read.schema(ddl).options(**dict(case.options)).format(case.format)
    return reader.load(str(path)).select(*case.selected).toArrow()
