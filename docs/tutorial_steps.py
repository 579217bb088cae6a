"""Read the steps of a page such as docs/learn/tutorial.md: its files and commands, in order.

A test and the screenshots follow the same steps as a reader. A fenced block with a title is the
file of that name in the tutorial's project. A block of `console` has commands, each after `$ `,
with their output. They exit with an error where the title says that the command fails.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "learn" / "tutorial.md"
_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_FAILS = "This command fails"
_LEFT_OUT = "…"
_OF_THE_SHELL = ("PWD", "OLDPWD", "SHLVL", "_")


@dataclass(frozen=True, kw_only=True)
class FileStep:
    """A file that the reader writes."""

    path: str
    text: str

    def write(self, folder: Path) -> None:
        """Write it, as the reader does."""
        target = folder / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.text, encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class CommandStep:
    """A command that the reader runs, and the lines that the page shows of its output."""

    command: str
    output: tuple[str, ...]
    fails: bool

    def run(
        self, folder: Path, environment: MutableMapping[str, str], *, seconds: float = 240
    ) -> str:
        """Run it and return what it printed.

        Args:
            folder: The current folder.
            environment: Its variables; one that the command sets is there afterwards.
            seconds: After which it is killed.

        Raises:
            AssertionError: It failed, or did not though it should, or printed something else.
        """
        with tempfile.NamedTemporaryFile() as variables:
            done = subprocess.run(
                ["bash", "-c", f'{self.command}\nend=$?; env -0 > "$0"; exit $end', variables.name],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
            for line in variables.read().decode().split("\0"):
                name, _, value = line.partition("=")
                if name and name not in _OF_THE_SHELL:
                    environment[name] = value
        printed = done.stdout + done.stderr
        if (done.returncode != 0) != self.fails:
            raise AssertionError(f"$ {self.command}\nexit {done.returncode}\n{printed[-3000:]}")
        if missing := self.missing(printed):
            shown = "\n".join(missing)
            raise AssertionError(
                f"$ {self.command}\ndoes not print\n{shown}\nbut\n{printed[-3000:]}"
            )
        return printed

    def missing(self, printed: str) -> list[str]:
        """Lines of the page that are not in the output; `…` stands for any text."""
        words = " ".join(printed.split())
        return [line for line in self.output if not re.search(_pattern(line), words)]

    @property
    def program(self) -> str:
        """What is called."""
        return shlex.split(self.command)[0]


Step = FileStep | CommandStep


def steps(page: Path = PAGE) -> list[Step]:
    """All of the page, from top to bottom."""
    found: list[Step] = []
    for language, title, body in _FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            found += _commands(body, fails=title == _FAILS)
        elif title:
            found.append(FileStep(path=title, text=body))
    return found


def _commands(body: str, *, fails: bool) -> Iterator[CommandStep]:
    joined = body.replace("\\\n", " ")
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, *output = part.splitlines()
        shown = tuple(line for line in output if line.strip().strip(_LEFT_OUT))
        yield CommandStep(command=" ".join(command.split()), output=shown, fails=fails)


def _pattern(line: str) -> str:
    parts = (re.escape(" ".join(part.split())) for part in line.split(_LEFT_OUT))
    return ".*?".join(parts)
