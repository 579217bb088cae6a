"""Rows that a file of tests gives → Arrow tables with the columns of the plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from stagecoach.assets.project.front_matter.places import Location, Places
from stagecoach.assets.project.names import did_you_mean
from stagecoach.assets.query_tests.model import Expect, Given
from stagecoach.assets.query_tests.parse import QueryTestError
from stagecoach.assets.query_tests.values import CellError, column_of
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.types import Field, arrow_schema, from_arrow, to_arrow


@dataclass(frozen=True, kw_only=True)
class WrittenRows:
    """Rows as a file of tests writes them, or names a file for them.

    Args:
        source: What gives them.
        location: Where that is in the file of tests.
        places: Where the keys of the file of tests are.
        folder: Where relative paths start.
    """

    source: Given | Expect
    location: Location
    places: Places
    folder: Path

    def column_names(self) -> tuple[str, ...]:
        """The columns that at least one row names, as written."""
        if self.source.rows is not None:
            return tuple(dict.fromkeys(name for row in self.source.rows for name in row))
        if self.source.csv is not None:
            return tuple(_read_csv(self._file("csv"), self._refuse("csv")).schema.names)
        return tuple(self._parquet().schema.names)

    def parquet_fields(self) -> tuple[Field, ...] | None:
        """Names and types of a Parquet file's columns; None where rows come from elsewhere.

        Raises:
            QueryTestError: The file cannot be read, or Spark does not read one of its columns.
        """
        if self.source.parquet is None:
            return None
        try:
            return tuple(Field(f.name, from_arrow(f.type)) for f in self._parquet().schema)
        except UnsupportedSqlError as error:
            raise self._refuse("parquet")(str(error)) from error

    def table(self, fields: Sequence[Field], time_zone: str) -> pa.Table:
        """The rows with these columns; those that are not named are NULL.

        Args:
            fields: The columns.
            time_zone: Zone of timestamps that name none.

        Raises:
            QueryTestError: A column is not among them, or a value is not of its type.
        """
        schema = arrow_schema(tuple(fields))
        if self.source.parquet is not None:
            return self._of_file(fields, schema)
        if self.source.csv is not None:
            written = _read_csv(self._file("csv"), self._refuse("csv"))
            rows: Sequence[Mapping[str, Any]] = written.to_pylist()
        else:
            rows = self.source.rows or ()
        self.check_names(fields)
        arrays = []
        for f in fields:
            cells = [_cell(row, f.name) for row in rows]
            try:
                arrays.append(column_of(cells, f.dtype, time_zone))
            except CellError as error:
                raise self._at_cell(error, f.name, rows[error.row]) from error
        if not fields:
            return pa.Table.from_pylist([{}] * len(rows), schema)
        return pa.Table.from_arrays(arrays, schema=schema)

    def _of_file(self, fields: Sequence[Field], schema: pa.Schema) -> pa.Table:
        found = self._parquet()
        self.check_names(fields)
        by_name = {name.lower(): i for i, name in enumerate(found.schema.names)}
        arrays: list[Any] = []
        for f in fields:
            place = by_name.get(f.name.lower())
            if place is None:
                arrays.append(pa.nulls(found.num_rows, to_arrow(f.dtype)))
                continue
            try:
                arrays.append(found.column(place).cast(to_arrow(f.dtype)))
            except pa.ArrowException as error:
                problem = f"column '{f.name}' of {self.source.parquet} is no {f.dtype}: {error}"
                raise self._refuse("parquet")(problem) from error
        return pa.Table.from_arrays(arrays, schema=schema)

    def _parquet(self) -> pa.Table:
        import pyarrow.parquet as pq

        path = self._file("parquet")
        try:
            return pq.ParquetFile(path).read()
        except (OSError, pa.ArrowException) as error:
            raise self._refuse("parquet")(f"{path} cannot be read: {_first_line(error)}") from error

    def _file(self, key: str) -> Path:
        path = self.folder / str(getattr(self.source, key))
        if not path.is_file():
            raise self._refuse(key)(f"there is no file {path}")
        return path

    def check_names(self, fields: Sequence[Field]) -> None:
        """Refuse rows that name a column which is not among these.

        Raises:
            QueryTestError: Placed at the name.
        """
        if not self.column_names():
            return
        known = {f.name.lower() for f in fields}
        names = [f.name for f in fields]
        if twice := [name for name in known if sum(n.lower() == name for n in names) > 1]:
            message = (
                f"the column '{twice[0]}' occurs more than once in the result; give the columns "
                "names of their own, or test by 'checks'"
            )
            raise self._refuse("")(message)
        for name in self.column_names():
            if name.lower() not in known:
                raise self._at_name(name, f"there is no column '{name}'{did_you_mean(name, names)}")

    def _at_name(self, name: str, message: str) -> QueryTestError:
        for number, row in enumerate(self.source.rows or ()):
            if name in row:
                problem = self.places.problem(self._row(number, name), message, at_key=True)
                return QueryTestError([problem])
        return self._refuse("csv" if self.source.csv else "parquet")(message)

    def _at_cell(self, error: CellError, column: str, row: Mapping[str, Any]) -> QueryTestError:
        message = f"column '{column}': {error.problem}"
        if self.source.rows is None:
            return self._refuse("csv")(f"row {error.row + 1}, {message}")
        written = next((name for name in row if name.lower() == column.lower()), column)
        place = self.places.problem(self._row(error.row, written), message)
        return QueryTestError([place])

    def _row(self, number: int, column: str) -> Location:
        """Where a cell is, in the long or in the short form."""
        long = (*self.location, "rows", number, column)
        return long if long in self.places.keys else (*self.location, number, column)

    def _refuse(self, key: str) -> Callable[[str], QueryTestError]:
        location = (*self.location, key) if key else self.location
        return lambda message: QueryTestError([self.places.problem(location, message)])


def _cell(row: Mapping[str, Any], column: str) -> Any:
    if column in row:
        return row[column]
    return next((value for name, value in row.items() if name.lower() == column.lower()), None)


def _read_csv(path: Path, refuse: Callable[[str], QueryTestError]) -> pa.Table:
    """A CSV file with a header: all values as texts, an empty field as NULL."""
    import csv as texts

    import pyarrow.csv as csv

    with path.open(encoding="utf-8-sig", newline="") as file:
        names = next(texts.reader(file), [])
    if not names:
        raise refuse(f"{path} is empty; its first line must be the names of the columns")
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = csv.ParseOptions(newlines_in_values=True)
    read = csv.ReadOptions(column_names=names, skip_rows=1)
    try:
        return csv.read_csv(path, read, parse, options)
    except (OSError, pa.ArrowException) as error:
        if "Empty CSV" in str(error):
            return pa.table({name: pa.array([], pa.string()) for name in names})
        raise refuse(f"{path} cannot be read: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
