"""Random histories of Delta tables: after each step, random queries give the rows that plain Spark
gives over rows kept by hand.

One kind of history is written by deltalake. Another is published, with deltalake as the other writer
of the table. The third is made by hand, for what deltalake does not write: deletion vectors, column
mapping, widened types and other checkpoints.
`make delta-histories` tries many more.
"""

from __future__ import annotations

import datetime as dt
import itertools
import os
import random
import shutil
from dataclasses import dataclass
from dataclasses import field as attribute
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from stagecoach.infra.formats.publishing import PartitionWindow, PublishError
from stagecoach.infra.storage.stores import open_store
from tests.infra.formats.delta.handmade import Action, HandmadeTable, catalog_of, field, struct
from tests.infra.formats.delta.lake import DeltaLake
from tests.infra.formats.lake_tables.random_queries import VALUES, State, check, value
from tests.infra.publishing.merge_model import Model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COUNT = int(os.environ.get("DELTA_HISTORIES", "2"))
STEPS = int(os.environ.get("DELTA_STEPS", "5"))
ARROW = {
    "int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "double": pa.float64(), "decimal(12,2)": pa.decimal128(12, 2),
    "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "struct<a: int, b: string>": pa.struct([("a", pa.int32()), ("b", pa.string())]),
}  # fmt: skip
DELTA = {"int": "integer", "bigint": "long"}
EXAMPLES = settings(
    max_examples=COUNT,
    deadline=None,
    derandomize=COUNT < 10,
    database=None,
    phases=[Phase.generate],  # shrinking takes minutes; a failure names its query
    suppress_health_check=list(HealthCheck),
)
CHANCE = st.randoms(use_true_random=False)


class WrittenHistory:
    """A table that deltalake writes, and its rows."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.chance = chance
        self.folder = folder / "t"
        self.columns = {"k": "int", "s": "string", "x": "double", "at": "timestamp", "st": "struct<a: int, b: string>"}  # fmt: skip
        self.partitioned = chance.choice([[], ["s"], ["day"], ["k", "s"]])
        if "day" in self.partitioned or chance.random() < 0.5:
            self.columns["day"] = "date"
        self.rows: list[dict[str, Any]] = []
        self.names = iter(f"c{i}" for i in range(100))
        self.versions: dict[int, State] = {}
        self.write(self.made(), mode="append")

    def made(self) -> list[dict[str, Any]]:
        count = self.chance.randint(0, 8)
        found = [{n: value(self.chance, kind) for n, kind in self.columns.items()} for _ in range(count)]  # fmt: skip
        if "s" in self.partitioned:  # an empty value of a partition is NULL
            found = [{**row, "s": row["s"] or None} for row in found]
        return found

    def write(self, rows: list[dict[str, Any]], **how: Any) -> None:
        kinds = pa.schema([(n, ARROW[kind]) for n, kind in self.columns.items()])
        write_deltalake(self.folder, pa.Table.from_pylist(rows, kinds), partition_by=self.partitioned or None, **how)  # fmt: skip
        self.rows = rows if how["mode"] == "overwrite" else self.rows + rows

    def append(self) -> None:
        self.write(self.made(), mode="append")

    def overwrite(self) -> None:
        self.write(self.made(), mode="overwrite")

    def add_column(self) -> None:
        name = next(self.names)
        self.rows = [{**row, name: None} for row in self.rows]
        self.columns[name] = self.chance.choice(["int", "string", "decimal(12,2)", "date"])
        self.write(self.made(), mode="append", schema_mode="merge")

    def delete(self) -> None:
        low = self.chance.randint(-3, 8)
        DeltaTable(self.folder).delete(f"k < {low}")
        self.rows = [row for row in self.rows if row["k"] is None or row["k"] >= low]

    def update(self) -> None:
        text = self.chance.choice(["a", "b", "ü%"])
        DeltaTable(self.folder).update(updates={"k": "5"}, predicate=f"s = '{text}'")
        self.rows = [{**row, "k": 5} if row["s"] == text else row for row in self.rows]

    def merge(self) -> None:
        rows = list({row["k"]: row for row in self.made() if row["k"] is not None}.values())
        kinds = pa.schema([(n, ARROW[kind]) for n, kind in self.columns.items()])
        source = pa.Table.from_pylist(rows, kinds)
        merger = DeltaTable(self.folder).merge(source, "t.k = u.k", source_alias="u", target_alias="t")  # fmt: skip
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        new = {row["k"]: row for row in rows}
        known = {row["k"] for row in self.rows}
        self.rows = [new.get(row["k"], row) for row in self.rows] + [r for r in rows if r["k"] not in known]  # fmt: skip

    def compact(self) -> None:
        DeltaTable(self.folder).optimize.compact()

    def checkpoint(self) -> None:
        DeltaTable(self.folder).create_checkpoint()

    def restore(self) -> None:
        number, state = self.chance.choice(list(self.versions.items()))
        if number < self.version() and state.columns == self.columns:
            DeltaTable(self.folder).restore(number)
            self.rows = [dict(row) for row in state.rows]

    def steps(self) -> list[Any]:
        return [self.append, self.append, self.overwrite, self.add_column, self.delete, self.update, self.merge, self.compact, self.checkpoint, self.restore]  # fmt: skip

    def version(self) -> int:
        return int(DeltaTable(self.folder).version())

    def state(self) -> State:
        return State(dict(self.columns), self.rows)


class PublishedHistory(WrittenHistory):
    """A table that results are published to, beside deltalake, and its rows."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.lake = DeltaLake(folder, open_store(folder / "root"), str(folder / "t"))
        self.runs = itertools.count()
        super().__init__(chance, folder)

    def write(self, rows: list[dict[str, Any]], **how: Any) -> None:
        mode = {"append": "append", "overwrite": "replace"}[how["mode"]]
        is_there = DeltaTable.is_deltatable(str(self.folder))
        # A result with more columns than the table has is not published.
        if is_there and ("schema_mode" in how or self.chance.random() < 0.3):
            super().write(rows, **how)
            names = [field.name for field in DeltaTable(self.folder).schema().fields]
            self.columns = {name: self.columns[name] for name in names}
            return
        self.publish(rows, mode=mode, partition_by=tuple(self.partitioned))
        self.rows = rows if mode == "replace" else self.rows + rows

    def publish(self, rows: list[dict[str, Any]], **target: Any) -> None:
        """Publish rows; a run that is repeated finds them."""
        kinds = {**{n: ARROW[kind] for n, kind in self.columns.items()}, "gone": pa.bool_()}
        names = [*self.columns, *(["gone"] if "delete_column" in target else [])]
        cut = self.chance.randint(0, len(rows))
        schema = pa.schema([(n, kinds[n]) for n in names])
        parts = [pa.Table.from_pylist(some, schema) for some in (rows[:cut], rows[cut:])]
        target |= {"name": str(next(self.runs)), "target_file_bytes": 1}
        assert not self.lake.publish(parts, **target).reused
        if self.chance.random() < 0.3:
            assert self.lake.publish(parts, **target).reused

    def replace_days(self) -> None:
        if "day" not in self.columns:
            return self.append()
        days = self.chance.sample(list(VALUES["date"]), 2)
        rows = [{**row, "day": self.chance.choice(days)} for row in self.made()]
        windows = tuple(PartitionWindow(str(d), d, d + dt.timedelta(1)) for d in days)
        keys = tuple(map(str, days))
        target = {"partition_column": "day", "partition_keys": keys, "windows": windows}
        try:
            self.publish(rows, mode="replace_partition", **target)
        except PublishError as error:
            assert "has rows of the partitions of this run and others" in str(error)
            assert "day" not in self.partitioned
            return None
        self.rows = [row for row in self.rows if row["day"] not in days] + rows
        return None

    def merge(self) -> None:
        rows = list({row["k"]: row for row in self.made()}.values())
        result = [{**row, "gone": self.chance.random() < 0.3} for row in rows]
        self.publish(result, mode="merge", key=("k",), delete_column="gone")
        model = Model(("k",), self.rows)
        model.merge(result, "gone")
        self.rows = model.rows

    def steps(self) -> list[Any]:
        return [*super().steps(), self.replace_days, self.replace_days, self.merge, self.merge]


@dataclass
class Column:
    number: int
    name: str
    kind: str
    members: list[str] = attribute(default_factory=lambda: ["a", "b"])


@dataclass(eq=False)
class ModelFile:
    """A data file: its rows by column number, and which of them are left."""

    add: Action
    rows: list[dict[int, Any]]
    left: set[int]


class HandmadeHistory:
    """A table whose log is written by hand, and its rows."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.chance = chance
        self.mode = chance.choice(["none", "name", "id"])
        conf = {} if self.mode == "none" else {"delta.columnMapping.mode": self.mode}
        features = ["deletionVectors", "typeWidening", "v2Checkpoint"]
        self.table = HandmadeTable(folder / "t", features + ["columnMapping"] * bool(conf), conf)
        self.folder = self.table.folder
        self.columns = [Column(1, "k", "int"), Column(2, "s", "string"), Column(3, "x", "double"), Column(4, "at", "timestamp"), Column(5, "st", "struct<a: int, b: string>")]  # fmt: skip
        self.partition = chance.choice([None, 1, 2])
        self.next_number = 6
        self.names = iter(f"c{i}" for i in range(100))
        self.files: list[ModelFile] = []
        self.versions: dict[int, State] = {}
        self.change_schema()
        self.append()

    def physical(self, column: Column) -> str:
        return column.name if self.mode == "none" else f"col-{column.number}"

    def change_schema(self) -> None:
        def shown(name: str, kind: Any, number: int) -> Action:
            ids = {} if self.mode == "none" else {"id_": number, "physical": f"col-{number}"}
            return field(name, kind, **ids)

        fields = []
        for c in self.columns:
            kind: Any = DELTA.get(c.kind, c.kind)
            if c.kind.startswith("struct"):
                kind = struct(shown("a", "integer", 100), shown("b", "string", 101))
            fields.append(shown(c.name, kind, c.number))
        partitioned = [c.name for c in self.columns if c.number == self.partition]
        self.table.schema(*fields, partitioned=partitioned)

    def append(self) -> None:
        count = self.chance.randint(1, 9)
        rows = [{c.number: value(self.chance, c.kind) for c in self.columns} for _ in range(count)]
        if self.partition == 2:
            rows = [{**row, 2: row[2] or None} for row in rows]
        self.write(rows)

    def write(self, rows: list[dict[int, Any]], removed: list[ModelFile] | None = None) -> None:
        parts: dict[Any, list[dict[int, Any]]] = {}
        for row in rows:
            parts.setdefault(row.get(self.partition) if self.partition else None, []).append(row)
        made = [self._file(part, members) for part, members in parts.items()]
        gone = removed or []
        self.table.commit(*(f.add for f in made), removed=[f.add for f in gone])
        self.files = [f for f in self.files if f not in gone] + made

    def _file(self, part: Any, rows: list[dict[int, Any]]) -> ModelFile:
        arrays, fields = [], []
        for c in self.columns:
            if c.number == self.partition:
                continue
            kind, values = ARROW[c.kind], [row.get(c.number) for row in rows]
            if c.kind.startswith("struct") and self.mode != "none":
                members = [pa.field(f"col-{n}", t, metadata={"PARQUET:field_id": str(n)}) for n, t in ((100, pa.int32()), (101, pa.string()))]  # fmt: skip
                kind = pa.struct(members)
                values = [v and {"col-100": v["a"], "col-101": v["b"]} for v in values]
            arrays.append(pa.array(values, kind))
            fields.append(pa.field(self.physical(c), kind, metadata={"PARQUET:field_id": str(c.number)}))  # fmt: skip
        partition = {}
        if self.partition:
            name = next(self.physical(c) for c in self.columns if c.number == self.partition)
            partition = {name: None if part is None else str(part)}
        data = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
        add = self.table.data(data, partition, group_rows=self.chance.choice([2, 100]))
        return ModelFile(add, rows, set(range(len(rows))))

    def delete(self) -> None:
        known = [f for f in self.files if f.left]
        if known:
            file = self.chance.choice(known)
            gone = self.chance.sample(sorted(file.left), self.chance.randint(1, len(file.left)))
            file.left -= set(gone)
            positions = sorted(set(range(len(file.rows))) - file.left)
            file.add = self.table.delete(file.add, positions, self.chance.choice("upi"))

    def compact(self) -> None:
        if self.files:
            chosen = self.chance.sample(self.files, self.chance.randint(1, len(self.files)))
            self.write([f.rows[i] for f in chosen for i in sorted(f.left)], chosen)

    def checkpoint(self) -> None:
        self.table.checkpoint(self.chance.choice(["classic", "parts", "json", "sidecar"]))
        if self.chance.random() < 0.3:
            self.table.forget(below=self.table.version)
            self.versions.clear()

    def change_columns(self) -> None:
        kind = self.chance.choice(["rename", "swap", "promote", "add", "drop", "move"])
        column = self.chance.choice(self.columns)
        if kind == "promote" and column.kind == "int" and column.number != self.partition:
            column.kind = "bigint"
        elif kind == "add":
            new = self.chance.choice(["int", "string", "decimal(12,2)", "date"])
            self.columns.append(Column(self.next_number, next(self.names), new))
            self.next_number += 1
        elif kind == "move":
            self.chance.shuffle(self.columns)
        elif self.mode == "none":
            return
        elif kind == "rename":
            column.name = next(self.names)
        elif kind == "swap":
            other = self.chance.choice(self.columns)
            column.name, other.name = other.name, column.name
        elif kind == "drop" and column.number not in (1, 2, self.partition):
            self.columns.remove(column)
        self.change_schema()
        self.table.commit()

    def steps(self) -> list[Any]:
        return [self.append, self.append, self.delete, self.delete, self.delete, self.compact, self.checkpoint, self.change_columns, self.change_columns]  # fmt: skip

    def version(self) -> int:
        return self.table.version

    def state(self) -> State:
        columns = {c.name: c.kind for c in self.columns}
        rows = [
            {c.name: f.rows[i].get(c.number) for c in self.columns}
            for f in self.files
            for i in sorted(f.left)
        ]
        return State(columns, rows)


@pytest.mark.parametrize("kind", [WrittenHistory, PublishedHistory, HandmadeHistory])
def test_random_histories(kind: Any, spark: SparkSession, tmp_path: Path) -> None:
    plain = spark.newSession()

    @EXAMPLES
    @given(CHANCE)
    def tried(chance: random.Random) -> None:
        folder = tmp_path / "history"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        history = kind(chance, folder)
        for step in range(STEPS + 1):
            if step:
                chance.choice(history.steps())()
            history.versions[history.version()] = history.state()
            catalog = catalog_of(folder, t=history.folder)
            check(chance, catalog, history.state(), history.versions, plain, folder)

    tried()
