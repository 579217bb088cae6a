"""Random histories of Iceberg tables: what is read is what a model of plain rows says.

A history appends, overwrites, deletes by position, by deletion vectors and by values, compacts, and
changes columns and partitions. The model applies each operation to its rows. Some histories are read
at their end, by pyiceberg too where it can; others after each step, by random queries of the table
and of its snapshots, beside plain Spark over the rows of the model.
`make iceberg-histories` tries many more.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IntegerType, StringType

from tests.infra.formats.iceberg.answers import as_set, catalog_of, rows
from tests.infra.formats.iceberg.handmade import Entry, HandmadeTable
from tests.infra.formats.lake_tables.random_queries import VALUES, State, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = int(os.environ.get("ICEBERG_FIRST_SEED", "0"))
COUNT = int(os.environ.get("ICEBERG_HISTORIES", "6"))
STEPPED = int(os.environ.get("ICEBERG_STEPPED_HISTORIES", "1"))
STEPS = int(os.environ.get("ICEBERG_STEPS", "8"))
TRANSFORMS = (("k", "identity"), ("k", "bucket[3]"), ("k", "truncate[4]"), ("s", "identity"), ("s", "truncate[1]"), ("s", "bucket[2]"))  # fmt: skip
ARROW = {
    "int": pa.int32(), "long": pa.int64(), "string": pa.string(), "double": pa.float64(),
    "decimal(12, 2)": pa.decimal128(12, 2), "date": pa.date32(), "timestamptz": pa.timestamp("us", "UTC"),
}  # fmt: skip
SPARK = {"long": "bigint", "decimal(12, 2)": "decimal(12,2)", "timestamptz": "timestamp"}


@dataclass
class Column:
    number: int
    name: str
    kind: str
    default: Any = None

    def shown(self) -> dict[str, Any]:
        more = {} if self.default is None else {"initial-default": self.default}
        return {"id": self.number, "name": self.name, "type": self.kind, **more}


@dataclass
class ModelFile:
    """A data file: its rows by field id, and which of them are left."""

    entry: Entry
    rows: list[dict[int, Any]]
    left: set[int]
    gone: set[int] = field(default_factory=set)
    vector: str | None = None


class History:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.table = HandmadeTable(folder / f"t{seed}", self.random.choice([2, 3]))
        self.columns = [Column(1, "k", "int"), Column(2, "s", "string")]
        self.spec: tuple[tuple[int, str], ...] = ()
        self.files: list[ModelFile] = []
        self.next_id = 3
        self.names = iter(f"c{i}" for i in range(100))
        self.has_keys = False
        self._schema()
        self.table.spec()

    def _schema(self) -> None:
        self.table.schema(*(column.shown() for column in self.columns))

    def value(self, column: Column) -> Any:
        if self.random.random() < 0.2:
            return None
        if column.kind == "string":
            return self.random.choice(["", "a", "ab", "b", "bc", "ü", "zz"])
        if column.kind in ("int", "long"):
            return self.random.randint(-5, 12)
        return self.random.choice(VALUES[SPARK.get(column.kind, column.kind)])

    def read(self, row: dict[int, Any], column: Column) -> Any:
        return row.get(column.number, column.default)

    def shown(self) -> list[dict[str, Any]]:
        return [
            {column.name: self.read(f.rows[i], column) for column in self.columns}
            for f in self.files
            for i in sorted(f.left)
        ]

    def state(self) -> State:
        columns = {c.name: SPARK.get(c.kind, c.kind) for c in self.columns}
        return State(columns, self.shown())

    # ------------------------------------------------------------------ operations

    def append(self) -> None:
        given = [
            {column.number: self.value(column) for column in self.columns}
            for _ in range(self.random.randint(1, 12))
        ]
        self._write(given)

    def overwrite(self) -> None:
        gone = [f.entry.path for f in self.files] + [f.vector for f in self.files if f.vector]
        self.files = []
        self._write([{c.number: self.value(c) for c in self.columns}], tuple(gone))

    def _write(self, given: list[dict[int, Any]], removed: tuple[str, ...] = ()) -> None:
        parts: dict[tuple[Any, ...], list[dict[int, Any]]] = {}
        for row in given:
            parts.setdefault(self._partition(row), []).append(row)
        made = []
        for partition, members in parts.items():
            data = {
                c.name: pa.array([self.read(row, c) for row in members], ARROW[c.kind])
                for c in self.columns
            }
            entry = self.table.data(
                pa.table(data),
                partition,
                metrics=self.random.random() < 0.7,
                group_rows=self.random.choice([2, 100]),
            )
            kept = [{c.number: self.read(row, c) for c in self.columns} for row in members]
            made.append(ModelFile(entry, kept, set(range(len(members)))))
        self.table.commit(*(f.entry for f in made), removed=removed)
        self.files += made

    def _partition(self, row: dict[int, Any]) -> tuple[Any, ...]:
        found = []
        for number, transform in self.spec:
            column = next(c for c in self.columns if c.number == number)
            kind: Any = StringType() if column.kind == "string" else IntegerType()
            found.append(parse_transform(transform).transform(kind)(self.read(row, column)))
        return tuple(found)

    def delete_positions(self) -> None:
        known = [f for f in self.files if f.left]
        if not known:
            return
        file = self.random.choice(known)
        places = self.random.sample(range(len(file.rows)), self.random.randint(1, len(file.rows)))
        if self.table.version == 3 and self.random.random() < 0.7:
            file.gone |= set(places)
            (vector,) = self.table.vectors({file.entry.path: sorted(file.gone)})
            self._commit_delete(vector, file, removed=(file.vector,) if file.vector else ())
            file.vector = vector.path
        elif file.vector is None:
            file.gone |= set(places)
            self._commit_delete(self.table.position_deletes({file.entry.path: places}), file)
        else:
            return
        file.left -= set(places)

    def _commit_delete(self, entry: Entry, file: ModelFile, removed: tuple[str, ...] = ()) -> None:
        from dataclasses import replace

        of_file = {"partition": file.entry.partition, "spec_id": file.entry.spec_id}
        self.table.commit(replace(entry, **of_file), removed=removed)  # type: ignore[arg-type]

    def delete_values(self) -> None:
        known = [column for column in self.columns if column.kind != "double"]
        chosen = self.random.sample(known, self.random.randint(1, len(known)))
        keys = [tuple(self.value(c) for c in chosen) for _ in range(self.random.randint(1, 3))]
        data = {
            c.name: pa.array([key[i] for key in keys], ARROW[c.kind]) for i, c in enumerate(chosen)
        }
        self.table.commit(self.table.equality_deletes(pa.table(data), spec_id=0))
        self.has_keys = True
        for f in self.files:
            f.left -= {i for i in f.left if tuple(self.read(f.rows[i], c) for c in chosen) in keys}

    def compact(self) -> None:
        if not self.files:
            return
        chosen = self.random.sample(self.files, self.random.randint(1, len(self.files)))
        kept = [f.rows[i] for f in chosen for i in sorted(f.left)]
        self.files = [f for f in self.files if f not in chosen]
        vectors = [f.vector for f in chosen if f.vector]
        self._write(kept, tuple([f.entry.path for f in chosen] + vectors))

    def change_columns(self) -> None:
        kind = self.random.choice(["rename", "swap", "promote", "add", "drop", "move"])
        column = self.random.choice(self.columns)
        used = {number for number, _ in self.spec}
        if kind == "rename":
            column.name = next(self.names)
        elif kind == "swap":
            other = self.random.choice(self.columns)
            column.name, other.name = other.name, column.name
        elif kind == "promote" and column.kind == "int":
            column.kind = "long"
        elif kind == "add":
            new = self.random.choice([name for name in ARROW if name != "long"])
            has_default = new == "int" and self.table.version == 3 and self.random.random() < 0.5
            default = 7 if has_default else None
            self.columns.append(Column(self.next_id, next(self.names), new, default))
            self.next_id += 1
        elif kind == "drop" and len(self.columns) > 2 and column.number not in used | {1, 2}:
            self.columns.remove(column)
        elif kind == "move":
            self.random.shuffle(self.columns)
        self._schema()

    def change_partitions(self) -> None:
        chosen = self.random.sample(TRANSFORMS, self.random.randint(0, 2))
        self.spec = tuple((1 if source == "k" else 2, transform) for source, transform in chosen)
        self.table.spec(
            *(
                {"source-id": number, "name": f"p{i}", "transform": transform}
                for i, (number, transform) in enumerate(self.spec)
            )
        )

    def step(self) -> None:
        steps = [self.append, self.append, self.append, self.delete_positions, self.delete_positions, self.delete_values,
                 self.delete_values, self.compact, self.compact, self.overwrite, self.change_columns, self.change_columns,
                 self.change_columns, self.change_partitions]  # fmt: skip
        self.random.choice(steps)()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_random_history(seed: int, tmp_path: Path) -> None:
    history = History(seed, tmp_path)
    history.append()
    for _ in range(history.random.randint(4, 14)):
        history.step()
    location = history.table.save()
    catalog = catalog_of(tmp_path, t=location)
    shown = history.shown()
    assert as_set(rows(catalog, "SELECT * FROM t", tmp_path)) == as_set(shown)
    for _ in range(4):
        simple = [c for c in history.columns if c.kind in ("int", "long", "string")]
        column = history.random.choice(simple)
        name, value = column.name, history.value(column)
        if value is None:
            where, passes = f"{name} IS NULL", [r for r in shown if r[name] is None]
        else:
            literal = f"'{value}'" if column.kind == "string" else str(value)
            operator = history.random.choice(["=", "<", ">="])
            where = f"{name} {operator} {literal}"
            known = [r for r in shown if r[name] is not None]
            passes = [
                r
                for r in known
                if {"=": r[name] == value, "<": r[name] < value, ">=": r[name] >= value}[operator]
            ]
        found = rows(catalog, f"SELECT * FROM t WHERE {where}", tmp_path)
        assert as_set(found) == as_set(passes), where
    if not history.has_keys and history.table.version == 2:
        theirs = StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
        assert as_set(theirs) == as_set(shown)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(FIRST, FIRST + STEPPED))
def test_each_step_of_a_random_history(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    plain = spark.newSession()
    history = History(seed, tmp_path)
    versions: dict[int, State] = {}
    for step in range(STEPS + 1):
        known = len(history.table.snapshots)
        history.step() if step else history.append()
        if len(history.table.snapshots) > known:
            versions[history.table.snapshots[-1]["snapshot-id"]] = history.state()
        catalog = catalog_of(tmp_path, t=history.table.save())
        check(history.random, catalog, history.state(), versions, plain, tmp_path)
