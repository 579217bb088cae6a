"""`stagecoach completion`: prints the script by which a shell completes commands and options."""

from __future__ import annotations

import click

VARIABLE = "_STAGECOACH_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and files in a shell.

    For bash, put eval "$(stagecoach completion bash)" into ~/.bashrc, and likewise for zsh into
    ~/.zshrc; for fish, write it to ~/.config/fish/completions/stagecoach.fish.
    """
    from click.shell_completion import get_completion_class

    from stagecoach.commands.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "stagecoach", VARIABLE).source())
