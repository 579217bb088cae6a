"""`stagecoach shell`: queries one after the other, typed at a prompt."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stagecoach.arguments.options import SessionRequest, session_options
from stagecoach.terminal import interrupts
from stagecoach.terminal.output import FORMATS, Format
from stagecoach.terminal.streams import discard_log, divert_noise


@click.command()
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="Output format of rows; .format changes it.",
)
@click.option(
    "--history",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the history.  [default: stagecoach/shell_history in $XDG_STATE_HOME]",
)
@session_options("Do not show progress.")
def shell(given: SessionRequest, *, output_format: Format, history: Path | None) -> None:
    """Run queries at a prompt, over one warm session.

    A statement ends with ;. Tab completes tables, columns and functions; Ctrl-C cancels the running
    query; .help lists the commands. Without a terminal, standard input is run as a script.
    """
    from stagecoach.shell.shell import Shell

    is_script = not sys.stdin.isatty()
    if not given.debug:
        divert_noise()
    with given.open() as session:
        state = Shell(
            session,
            params=dict(given.params),
            quiet=given.quiet or is_script,
            debug=given.debug,
            format=output_format,
            timing=not is_script,
        )
        if is_script:
            if code := state.run_script(sys.stdin.read(), "standard input"):
                raise click.exceptions.Exit(code)
            return
        from stagecoach.shell.prompt import history_path, make_prompt

        session.expect_spark(fresh=True)
        read = make_prompt(state, history or history_path())
        click.echo("A statement ends with ;  .help lists the commands.", err=True)
        with interrupts.raised():
            state.run(read)
    discard_log()
