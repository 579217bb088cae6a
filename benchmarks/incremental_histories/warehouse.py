"""Tables in a folder whose files are added, removed and replaced at random."""

from __future__ import annotations

import datetime
import decimal
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_DAY = datetime.date(2026, 1, 1)
_AMOUNT = pa.decimal128(12, 2)
_SALES = pa.schema(
    [
        ("k", pa.int64()),
        ("day", pa.date32()),
        ("shop", pa.int32()),
        ("amount", _AMOUNT),
        ("weight", pa.float64()),
        ("note", pa.string()),
    ]
)
_SHOPS = pa.schema([("shop", pa.int32()), ("country", pa.string())])
_MAX_ROWS = {"sales": 60, "shops": 12}
_SCHEMAS = {"sales": _SALES, "shops": _SHOPS}


class Warehouse:
    """The tables `sales`, of many files, and `shops`, of few.

    Args:
        folder: Where they are written; must be empty.
        rng: Makes every choice.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder = folder
        self._rng = rng
        self._files: dict[str, list[str]] = {"sales": [], "shops": []}
        self._keys = 0
        for table in self._files:
            (folder / table).mkdir()
        lines = (f"  {table}: {{location: {table}}}\n" for table in self._files)
        self.catalog = folder / "catalog.yaml"
        self.catalog.write_text(f"tables:\n{''.join(lines)}", encoding="utf-8")
        self.add("sales", rng.randint(1, 12))
        self.add("shops", rng.randint(1, 2))

    def location(self, table: str) -> Path:
        """The folder of a table."""
        return self._folder / table

    def change(self) -> str:
        """Change the tables by one step; return what it was, in words."""
        rng = self._rng
        kind = rng.choices(
            ("add", "remove", "replace", "move", "shops", "nothing"), (6, 2, 3, 1, 1, 1)
        )[0]
        files = self._files["sales"]
        match kind:
            case "add":
                return f"add {self.add('sales', rng.choice((1, 1, 1, 2, 5)))}"
            case "remove" if len(files) > 1:
                gone = rng.sample(
                    files, rng.randint(1, len(files) - 1 if rng.random() < 0.1 else 1)
                )
                for name in gone:
                    self._path("sales", name).unlink()
                    files.remove(name)
                return f"remove {gone}"
            case "replace":
                name = rng.choice(files)
                self._write("sales", name)
                return f"replace {name}"
            case "move":
                old = files.pop(rng.randrange(len(files)))
                name = self._new_name()
                self._path("sales", old).rename(self._path("sales", name))
                files.append(name)
                return f"rename {old} to {name}"
            case "shops" if rng.random() < 0.5:
                return f"add {self.add('shops', 1)} to shops"
            case "shops":
                name = rng.choice(self._files["shops"])
                self._write("shops", name)
                return f"replace {name} of shops"
        return "nothing"

    def add(self, table: str, count: int) -> list[str]:
        """Add files; return their names."""
        names = [self._new_name() for _ in range(count)]
        for name in names:
            self._write(table, name)
        self._files[table] += names
        return names

    def _new_name(self) -> str:
        self._keys += 1
        return f"{self._rng.randrange(1 << 20):05x}-{self._keys}.parquet"

    def _path(self, table: str, name: str) -> Path:
        return self.location(table) / name

    def _write(self, table: str, name: str) -> None:
        rng = self._rng
        count = rng.choice((0, 1, rng.randint(1, _MAX_ROWS[table])))
        make = {"sales": self._sale, "shops": self._shop}[table]
        rows = pa.Table.from_pylist([make() for _ in range(count)], schema=_SCHEMAS[table])
        path = self._path(table, name)
        path.unlink(missing_ok=True)
        pq.write_table(rows, path, row_group_size=rng.choice((5, 20, 1000)))

    def _sale(self) -> dict[str, Any]:
        rng = self._rng
        self._keys += 1
        return {
            "k": self._keys,
            "day": rng.choice((None, _DAY + datetime.timedelta(rng.randrange(20)))),
            "shop": rng.choice((None, rng.randrange(9), rng.randrange(9))),
            "amount": rng.choice((None, decimal.Decimal(rng.randrange(-9999, 99999)) / 100)),
            # Not both zeros: DuckDB leaves their order to Spark, which histories do without.
            "weight": rng.choice((None, -0.0, float("nan"), rng.randrange(1, 40) / 8)),
            "note": rng.choice((None, "", f"n{rng.randrange(6)}", "Ünïcode")),
        }

    def _shop(self) -> dict[str, Any]:
        rng = self._rng
        return {"shop": rng.randrange(9), "country": rng.choice(("de", "fr", None))}
