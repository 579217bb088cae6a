"""The prompt of the shell: history, completion, highlighting, and several lines until `;`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import HTML
from prompt_toolkit.history import FileHistory
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]  # has no stubs

from stagecoach.shell.completing import ShellCompleter
from stagecoach.shell.shell import COMMANDS, Shell
from stagecoach.shell.statements import is_complete

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output


def history_path() -> Path:
    """Where the history of all shells of a user is, by default."""
    state = os.environ.get("XDG_STATE_HOME")
    folder = Path(state) if state else Path.home() / ".local" / "state"
    return folder / "stagecoach" / "shell_history"


def make_prompt(
    shell: Shell, history: Path, *, input: Input | None = None, output: Output | None = None
) -> Callable[[], str]:
    """Return a function that reads one complete text from the terminal.

    Args:
        shell: Knows the names that are completed.
        history: The file of the history; only its owner can read it.
        input: Where keys come from; the terminal by default.
        output: Where the prompt is drawn; the terminal by default.
    """
    history.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(history, os.O_CREAT | os.O_APPEND, 0o600))
    goes_on = Condition(lambda: not is_complete(get_app().current_buffer.text))
    prompt: PromptSession[str] = PromptSession(
        HTML("<b>stagecoach&gt;</b> "),
        completer=ShellCompleter(shell.names, COMMANDS),
        complete_in_thread=True,
        complete_while_typing=False,
        history=FileHistory(str(history)),
        input=input,
        lexer=PygmentsLexer(SqlLexer),
        # Enter begins another line until the statement is complete.
        multiline=goes_on,
        output=output,
        prompt_continuation=lambda width, number, wrapped: "... ".rjust(width),
    )
    return prompt.prompt
