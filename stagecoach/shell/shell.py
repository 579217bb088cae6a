"""Runs what is typed: statements that end with `;`, and commands that begin with a point.

The prompt is apart (`prompt.py`), so that a script runs through the same code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.planner.errors import OptionError
from stagecoach.planner.option_values import there_are
from stagecoach.planner.syntax.tokens import place_at
from stagecoach.shell.names import Names
from stagecoach.shell.statements import Piece, split_pieces
from stagecoach.terminal.errors import Source, report_error
from stagecoach.terminal.output import FORMATS, Format, render_rows
from stagecoach.terminal.progress import make_progress
from stagecoach.terminal.text_tables import terminal_width

if TYPE_CHECKING:
    from stagecoach.api.session import Session

HELP: Mapping[str, str] = {
    ".explain [SQL]": "show the plan of a query; of the last one by default",
    ".format [FORMAT]": f"show or choose how rows are printed: {', '.join(FORMATS)}",
    ".help": "show this",
    ".limit [N]": "show or choose how many rows are printed at most",
    ".param [NAME=VALUE]": "show the values of parameters, or set one",
    ".quit": "leave; so does Ctrl-D",
    ".read FILE.sql": "run the statements of a file",
    ".schema TABLE": "show the columns of a table",
    ".tables": "list the tables",
    ".timing [on|off]": "show how long a query took, or stop showing it",
}
COMMANDS: Mapping[str, str] = {name.split()[0]: meaning for name, meaning in HELP.items()}


class _Left(Exception):
    """The user leaves the shell.

    Attributes:
        code: Exit code of what failed before.
    """

    code = 0


@dataclass
class Shell:
    """The state of a shell.

    Args:
        session: Runs the queries.
        params: Values of parameters, as texts.
        quiet: Whether no progress is shown.
        debug: Whether tracebacks are shown.
        format: How rows are printed.
        limit: How many rows are printed at most; None for the default.
        timing: Whether each query's time is told.
    """

    session: Session
    params: dict[str, str] = field(default_factory=dict)
    quiet: bool = False
    debug: bool = False
    format: Format = "table"
    limit: int | None = None
    timing: bool = True
    _last: str = ""

    def __post_init__(self) -> None:
        self.names = Names(self.session)

    def run(self, read: Callable[[], str]) -> None:
        """Run what is read until the end of the input or `.quit`.

        Args:
            read: Returns a complete text; raises EOFError at the end and KeyboardInterrupt for a
                text that is given up.
        """
        while True:
            try:
                self.execute(read())
            except KeyboardInterrupt:
                continue
            except (EOFError, _Left):
                return

    def run_script(self, text: str, name: str) -> int:
        """Run all of a text and return the exit code of the first statement that fails."""
        try:
            return self._execute(text, name)
        except _Left as left:
            return left.code

    def execute(self, text: str) -> None:
        """Run a complete text; errors are reported.

        Raises:
            _Left: The user leaves.
        """
        self._execute(text, "shell")

    def _execute(self, text: str, name: str) -> int:
        """Run a text and return the exit code of the first of its pieces that fails."""
        first = 0
        for piece in split_pieces(text):
            try:
                code = self._run_piece(piece, text, name)
            except _Left as left:
                left.code = first or left.code
                raise
            first = first or code
        return first

    def _run_piece(self, piece: Piece, text: str, name: str) -> int:
        if piece.is_command:
            return self._guarded(partial(self._command, piece.text), None)
        self._last = piece.text
        source = Source(name=name, sql=text, start=place_at(text, piece.start))
        return self._guarded(partial(self._query, piece.text), source)

    def _guarded(self, work: Callable[[], int | None], source: Source | None) -> int:
        """Do something; report how it failed and return the exit code for it."""
        try:
            return work() or 0
        except _Left:
            raise
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
            return 130
        except Exception as error:  # noqa: BLE001 -- reported; the shell goes on
            return report_error(error, source, debug=self.debug)

    def _query(self, sql: str) -> None:
        from stagecoach.api.query_parameters import used_parameters

        started = time.perf_counter()
        self._refresh()
        used = used_parameters(sql)
        params = {n: v for n, v in self.params.items() if used is None or n in used}
        if (explained := self.session.explained(sql, params)) is not None:
            explained.show()
            return
        planned = self.session.plan(sql, params)
        self.session.check_storage()
        with make_progress(planned.graph, quiet=self.quiet) as progress:
            result = self.session.run(planned, progress=progress, debug=self.debug)
        seconds = time.perf_counter() - started
        lines = render_rows(
            result.schema,
            result.batches(),
            self.format,
            columns=result.columns,
            limit=self.limit,
            num_rows=result.num_rows,
            time_zone=result.graph.time_zone,
            width=terminal_width(),
        )
        for line in lines:
            click.echo(line)
        if self.timing:
            count = len(result.stages)
            reused = sum(1 for stage in result.stages if stage.reused)
            note = f", {reused} reused" if reused else ""
            stages = f"{count} stage{'' if count == 1 else 's'}{note}"
            click.echo(f"{seconds:.2f} s ({stages})", err=True)

    def _refresh(self) -> None:
        """See the tables as they are now: a shell may be open for days."""
        self.session.base_catalog.refresh()
        self.session.catalog.refresh()
        self.names.refresh()

    # ------------------------------------------------------------------ commands

    def _command(self, line: str) -> int | None:
        name, _, argument = line.strip().rstrip(";").partition(" ")
        commands: dict[str, Callable[[str], int | None]] = {
            ".explain": self._explain,
            ".exit": self._quit,
            ".format": self._format,
            ".help": self._help,
            ".limit": self._limit,
            ".param": self._param,
            ".quit": self._quit,
            ".read": self._read,
            ".schema": self._schema,
            ".tables": self._tables,
            ".timing": self._timing,
        }
        if (work := commands.get(name.lower())) is None:
            raise OptionError(f"unknown command {name}; {there_are(name, COMMANDS)}")
        return work(argument.strip())

    def _explain(self, sql: str) -> int:
        from stagecoach.api.query_parameters import used_parameters

        sql = sql or self._last
        if not sql:
            raise OptionError("no query has run yet; write .explain SELECT …")
        used = used_parameters(sql)
        params = {n: v for n, v in self.params.items() if used is None or n in used}
        return self._guarded(
            lambda: click.echo(self.session.explain(sql, params).rstrip("\n")),
            Source(name="shell", sql=sql),
        )

    def _quit(self, _: str) -> None:
        raise _Left

    def _format(self, name: str) -> None:
        chosen = next((known for known in FORMATS if known == name), None)
        if name and chosen is None:
            raise OptionError(f"'{name}' is not a format; use {', '.join(FORMATS)}")
        self.format = chosen or self.format
        click.echo(f"format: {self.format}")

    def _help(self, _: str) -> None:
        width = max(map(len, HELP))
        for name, meaning in HELP.items():
            click.echo(f"{name.ljust(width)}  {meaning}")
        click.echo("A statement ends with ; and may have several lines. Ctrl-C cancels a query.")

    def _limit(self, number: str) -> None:
        if number and not number.isdecimal():
            raise OptionError(f"'{number}' is not a number of rows")
        self.limit = int(number) if number else self.limit
        click.echo(f"limit: {'default' if self.limit is None else self.limit}")

    def _param(self, assignment: str) -> None:
        from stagecoach.api.parameters import parse_assignments

        if assignment:
            self.params |= parse_assignments([assignment])
        for name, value in self.params.items():
            click.echo(f"{name}={value}")

    def _read(self, path: str) -> int:
        if not path:
            raise OptionError("name a file: .read FILE.sql")
        return self._execute(Path(path).expanduser().read_text(encoding="utf-8-sig"), path)

    def _schema(self, table: str) -> None:
        if not table:
            raise OptionError("name a table: .schema TABLE; .tables lists them")
        self._refresh()
        info = self.session.catalog.table(table)
        if info is None:
            known = there_are(table, self.names.tables())
            raise OptionError(f"there is no table {table}; {known}")
        width = max((len(column.name) for column in info.columns), default=0)
        for column in info.columns:
            click.echo(f"{column.name.ljust(width)}  {column.dtype}")

    def _tables(self, _: str) -> None:
        self._refresh()
        for name in self.names.tables():
            click.echo(name)

    def _timing(self, switch: str) -> None:
        if switch not in ("", "on", "off"):
            raise OptionError("write .timing on or .timing off")
        self.timing = switch == "on" if switch else not self.timing
        click.echo(f"timing: {'on' if self.timing else 'off'}")
