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

_MODULES: Mapping[str, tuple[str, str]] = {
    "demo": ("stagecoach.commands.demo", "demo"),
    "init": ("stagecoach.commands.init", "init"),
    "doctor": ("stagecoach.commands.doctor", "doctor"),
    "new": ("stagecoach.commands.new", "new"),
    "check": ("stagecoach.commands.check", "check"),
    "test": ("stagecoach.commands.test", "test"),
    "query": ("stagecoach.commands.query", "query"),
    "shell": ("stagecoach.commands.shell", "shell"),
    "explain": ("stagecoach.commands.explain", "explain"),
    "replay": ("stagecoach.commands.replay", "replay"),
    "completion": ("stagecoach.commands.completion", "completion"),
    "compile": ("stagecoach.commands.compile", "compile_"),
    "tables": ("stagecoach.commands.tables", "tables"),
    "warm": ("stagecoach.commands.warm", "warm"),
    "ui": ("stagecoach.commands.ui", "ui"),
    "serve": ("stagecoach.commands.serve", "serve"),
    "gc": ("stagecoach.commands.gc", "gc"),
    "storage": ("stagecoach.commands.storage", "storage"),
    "config": ("stagecoach.commands.config", "config"),
}


class _Cli(click.Group):
    """Turns whatever a command raises into one readable block and an exit code.

    A command is imported when it is asked for: none waits for what another one needs.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (place := _MODULES.get(cmd_name)) is None:
            return None
        module, attribute = place
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

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

    A query is a .sql file with one SELECT; tables are Parquet files that a catalog names. A failed
    run resumes at the failed stage, and an unchanged stage is not run again.
    """
    use_log_format(log_format)


def main() -> None:
    """Run the command line and end the process; `stagecoach.__main__` handles signals earlier."""
    with interrupts.handled():
        cli(prog_name="stagecoach")


if __name__ == "__main__":
    main()
