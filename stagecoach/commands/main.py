"""The command `stagecoach` and its error handling.

Exit codes: 0; 1 where a run failed; 2 where nothing was run because the command, the SQL or the
catalog is wrong; 130 and 143 where Ctrl-C or SIGTERM ended it. Errors go to standard error as one
block each, without a traceback.
"""

from __future__ import annotations

import errno
import importlib
import importlib.metadata
from collections.abc import Mapping

import click

from stagecoach.arguments.options import DEBUG_KEY
from stagecoach.terminal import interrupts
from stagecoach.terminal.errors import describe_error, exit_code, traceback_text
from stagecoach.terminal.streams import discard_log, log_path, use_log_format

_SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Projects": {
        "init": "Start a project, or add to one",
        "new": "Write a query file that explains all keys of front matter",
        "check": "Find mistakes in queries without running them",
        "test": "Run the tests of queries: given rows, expected rows",
        "compile": "Write the plans of queries as files, or check those files",
    },
    "Queries": {
        "query": "Run queries and show or write their rows",
        "shell": "Run queries at a prompt",
        "explain": "Show the stages of a query, and why it has them",
        "replay": "Run the stages of an earlier run again; trace rows",
    },
    "Tables and storage": {
        "tables": "Show, add, publish and write tables",
        "storage": "Show and verify what is stored",
        "gc": "Remove what no run needs any more",
    },
    "Services": {
        "ui": "Open Dagster's web UI over the project",
        "serve": "Answer SQL over Arrow Flight SQL",
        "warm": "Start a Spark that later commands use",
    },
    "This machine": {
        "demo": "Run a query over generated data and show all of it",
        "doctor": "Look for what would keep runs from working",
        "config": "Show settings and options, and where they come from",
        "completion": "Print the script that completes commands in a shell",
    },
}
"""The commands, in the order in which one needs them, and what `stagecoach --help` says of each."""
_FUNCTIONS = {"compile": "compile_"}
"""Functions of commands whose names cannot be names of Python functions."""
_NAME_WIDTH = max(len(name) for section in _SECTIONS.values() for name in section)


class _Cli(click.Group):
    """Turns whatever a command raises into one readable block and an exit code.

    A command is imported when it is asked for: none waits for what another one needs.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in _SECTIONS.values() for name in section]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Summaries of our own: nothing is imported for them, and none is cut.
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(_NAME_WIDTH), c) for name, c in commands.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"stagecoach.commands.{cmd_name}")
        command = getattr(module, _FUNCTIONS.get(cmd_name, cmd_name))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in (known := self.list_commands(ctx)) and not name.startswith("-"):
            from stagecoach.planner.option_values import there_are

            ctx.fail(f"there is no command '{name}'; {there_are(name, known)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.exceptions.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            # `query | head` is no failure; click ends the process quietly.
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise
            if ctx.meta.get(DEBUG_KEY):
                click.echo(traceback_text(), err=True)
            code = exit_code(error)
            if interrupts.was_interrupted():
                discard_log()
                ctx.exit(code)  # "Cancelling…" is printed; other errors follow from that
            click.echo(describe_error(error), err=True)
            if code == 1 and (path := log_path()):
                click.echo(f"Spark's log: {path}", err=True)
            ctx.exit(code)
        discard_log()
        return result


@click.group(
    cls=_Cli,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(importlib.metadata.version("stagecoach"), prog_name="stagecoach")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    envvar="STAGECOACH_LOG_FORMAT",
    default="text",
    show_default=True,
    help="Format of log lines: text, or one JSON object per line.",
)
def cli(log_format: str) -> None:
    """Run Spark SQL as a graph of stages: one Dagster asset, one Spark job, one shuffle each.

    A query is a .sql file with one SELECT. A catalog file names the tables: Parquet, CSV, JSON and
    ORC files, Iceberg and Delta tables. A failed run resumes at the failed stage, and an unchanged
    stage is not run again.

    `stagecoach init` starts a project; `stagecoach COMMAND --help` explains a command.
    """
    use_log_format(log_format)


def main() -> None:
    """Run the command line and end the process; `stagecoach.__main__` handles signals earlier."""
    with interrupts.handled():
        cli(prog_name="stagecoach")


if __name__ == "__main__":
    main()
