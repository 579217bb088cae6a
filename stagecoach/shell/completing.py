"""Completes names in the shell, by prompt_toolkit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion

from stagecoach.shell.names import Names
from stagecoach.shell.statements import COMMAND_MARK

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

_WITH_TABLE = (".schema",)


class ShellCompleter(Completer):
    """Completes SQL by the names of a session, and the shell's own commands.

    Args:
        names: The names of the session.
        commands: The commands with their help.
    """

    def __init__(self, names: Names, commands: Mapping[str, str]) -> None:
        self._names = names
        self._commands = commands

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield what may stand at the cursor."""
        text = document.text_before_cursor
        if text.startswith(COMMAND_MARK):
            yield from self._of_command(text)
            return
        word = document.get_word_before_cursor()
        if not word.isidentifier():
            word = ""
        before = text[: len(text) - len(word)]
        # What follows the cursor may name the tables.
        after = document.text_after_cursor
        seen = set()
        for name, what in self._names.after(before, word):
            if name.lower() not in seen:
                seen.add(name.lower())
                yield Completion(name, start_position=-len(word), display_meta=what)
        if word and after:
            for name, what in self._names.after(f"{before} {after} ", word):
                if what.startswith("column") and name.lower() not in seen:
                    yield Completion(name, start_position=-len(word), display_meta=what)

    def _of_command(self, text: str) -> Iterable[Completion]:
        command, space, rest = text.partition(" ")
        if not space:
            for name, meaning in self._commands.items():
                if name.startswith(command):
                    yield Completion(name, start_position=-len(command), display_meta=meaning)
        elif command in _WITH_TABLE:
            for name in self._names.tables():
                if name.lower().startswith(rest.lower()):
                    yield Completion(name, start_position=-len(rest), display_meta="table")
