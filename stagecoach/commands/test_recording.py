"""`stagecoach test --record`: writes a test of a query from rows of its tables."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stagecoach.planner.text.time_zones import zone_info

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.api.session import Session
    from stagecoach.assets.project.queries import Query
    from stagecoach.assets.query_tests.run import TestRunner
    from stagecoach.planner.types import Field

_ROWS = 5


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Which rows are recorded, and where they go.

    Args:
        masks: Columns whose values are replaced.
        rows: Most rows of a table; None for the default.
        where: Conditions on rows, `TABLE: CONDITION`.
        params: Values of parameters, `NAME=VALUE`.
        output: The file; None for `tests/QUERY.yaml`.
    """

    masks: tuple[str, ...]
    rows: int | None
    where: tuple[str, ...]
    params: tuple[str, ...]
    output: Path | None

    def refuse_given(self) -> None:
        """Refuse options that mean nothing without `--record`.

        Raises:
            click.UsageError: Naming one.
        """
        given = {
            "--mask": self.masks,
            "--rows": self.rows,
            "--where": self.where,
            "--param": self.params,
            "--output": self.output,
        }
        for name, value in given.items():
            if value:
                raise click.UsageError(f"{name} belongs to --record QUERY")

    def conditions(self) -> dict[str, str]:
        """The conditions by name of the table, in lower case.

        Raises:
            click.UsageError: One names no table.
        """
        found: dict[str, str] = {}
        for item in self.where:
            table, colon, condition = item.partition(":")
            if not colon or not table.strip() or not condition.strip():
                raise click.UsageError(
                    f"--where '{item}' is not TABLE: CONDITION, such as 'orders: o_custkey = 1'"
                )
            found[table.strip().lower()] = condition.strip()
        return found


def recording_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of `--record`: a `Recording` for `recording`."""

    @functools.wraps(command)
    def run(
        *arguments: Any,
        masks: tuple[str, ...],
        rows: int | None,
        where: tuple[str, ...],
        params: tuple[str, ...],
        output: Path | None,
        **own: Any,
    ) -> None:
        recording = Recording(masks=masks, rows=rows, where=where, params=params, output=output)
        command(*arguments, recording=recording, **own)

    options = [
        click.option(
            "--mask",
            "masks",
            metavar="COLUMN",
            multiple=True,
            help="With --record: replace the values of this column, or TABLE.COLUMN; equal values "
            "stay equal. May be repeated.",
        ),
        click.option(
            "--rows",
            metavar="N",
            type=click.IntRange(min=0),
            help=f"With --record: most rows of each table.  [default: {_ROWS}]",
        ),
        click.option(
            "--where",
            metavar="'TABLE: CONDITION'",
            multiple=True,
            help="With --record: record only rows of the table for which this SQL is true; may be "
            "repeated.",
        ),
        click.option(
            "--param",
            "params",
            metavar="NAME=VALUE",
            multiple=True,
            help="With --record: value of a parameter of the query; may be repeated.",
        ),
        click.option(
            "--output",
            metavar="FILE.yaml",
            type=click.Path(dir_okay=False, path_type=Path),
            help="With --record: the file.  [default: QUERY.yaml in the folder of tests]",
        ),
    ]
    decorated: Callable[..., None] = run
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def record_test(
    session: Session,
    runner: TestRunner,
    queries: Sequence[Query],
    name: str,
    recording: Recording,
    folder: Path,
) -> None:
    """Write a test that passes, from rows that are there now.

    Args:
        session: Reads the tables, with Spark.
        runner: Runs the query over the rows.
        queries: The queries of the project.
        name: The query.
        recording: Which rows, and where they go.
        folder: Where tests are.

    Raises:
        click.UsageError: There is no such query, or the file is there.
        RecordError: A column cannot be masked or written.
        StagecoachError: The query or the tables cannot be read.
    """
    from stagecoach.api.parameters import parse_assignments
    from stagecoach.assets.project.names import did_you_mean
    from stagecoach.assets.query_tests.record import Mask

    name = name.removesuffix(".sql").rpartition("/")[2]
    query = next((q for q in queries if q.name == name), None)
    if query is None:
        known = [q.name for q in queries]
        raise click.UsageError(f"there is no query '{name}'{did_you_mean(name, known)}")
    path = recording.output or folder / f"{name}.yaml"
    if path.exists():
        raise click.UsageError(f"{path} already exists and is not changed; give --output FILE")
    parameters = parse_assignments(recording.params)
    conditions = recording.conditions()
    reads = runner.planner.reads(query)
    if unread := [table for table in conditions if table not in {n.lower() for n in reads}]:
        fix = did_you_mean(unread[0], reads)
        raise click.UsageError(f"the query does not read the table '{unread[0]}'{fix}")
    mask = Mask(recording.masks)
    tables: dict[str, tuple[Sequence[Field], pa.Table]] = {}
    limit = _ROWS if recording.rows is None else recording.rows
    for table, fields in reads.items():
        rows = _first_rows(session, table, fields, conditions.get(table.lower()), limit)
        tables[table] = fields, mask.applied(table, fields, rows)
    mask.check_used()
    text, num_rows = _with_result(runner, query, path, tables, parameters)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    rows_read = ", ".join(f"{table} {rows.num_rows}" for table, (_, rows) in tables.items())
    given = f"rows of {rows_read}" if tables else "the query reads no table"
    click.echo(f"{path}: written; {given}; {num_rows} in the result", err=True)
    if not num_rows:
        click.echo("note: no row comes out; choose others with --where and --rows", err=True)


def _first_rows(
    session: Session, table: str, fields: Sequence[Field], condition: str | None, limit: int
) -> pa.Table:
    from stagecoach.planner.text.quoting import spark_name

    names = ", ".join(spark_name(field.name) for field in fields)
    source = ".".join(spark_name(part) for part in table.split("."))
    # On lines of its own: the condition may end in a comment.
    where = f"\nWHERE (\n{condition}\n)" if condition else ""
    sql = f"SELECT {names} FROM {source}{where}\nLIMIT {limit}"
    return session.query(sql, name=f"rows_of_{table.replace('.', '_')}", fresh=True).to_arrow()


def _with_result(
    runner: TestRunner,
    query: Query,
    path: Path,
    tables: Mapping[str, tuple[Sequence[Field], pa.Table]],
    parameters: Mapping[str, str],
) -> tuple[str, int]:
    """The text of the file, with the rows that come out, and how many these are."""
    from stagecoach.assets.query_tests.parse import parse_tests
    from stagecoach.assets.query_tests.record import RecordError, recorded_text
    from stagecoach.assets.query_tests.unit import TestCase

    zone = zone_info(runner.planner.time_zone)
    now = datetime.datetime.now(zone).replace(tzinfo=None, microsecond=0)

    def case_of(text: str) -> TestCase:
        file, places = parse_tests(text, path)
        return TestCase(file=file, index=0, path=path, places=places, query=query)

    def text_of(
        result: tuple[Sequence[Field], pa.Table] | None, clock: datetime.datetime | None
    ) -> str:
        return recorded_text(
            name=f"rows of {datetime.date.today():%Y-%m-%d}",
            tables=tables,
            parameters=parameters,
            now=clock,
            result=result or _nothing(),
        )

    empty = case_of(text_of(None, now))
    unit = runner.planner.unit(empty)
    fields, rows = runner.rows(empty, unit)
    text = text_of((fields, rows), now if unit.reads_clock else None)
    result = runner.run(case_of(text))
    if result.outcome != "passed":
        raise RecordError(
            f"the recorded test of '{query.name}' does not pass ({result.message}); its rows may "
            "come out in another order, or with other values, in each run"
        )
    return text, rows.num_rows


def _nothing() -> tuple[Sequence[Field], pa.Table]:
    import pyarrow as pa

    return (), pa.table({})
