"""What goes wrong with the code of a function: it cannot be used, or it raises.

Worker code. Spark passes on the text of an error, not its class, so an error that crosses Spark is
written into the text as JSON between two marks.
"""

from __future__ import annotations

import json
import os
import traceback
from dataclasses import dataclass
from types import TracebackType

from stagecoach.infra.errors import FunctionError
from stagecoach.infra.storage import secrets
from stagecoach.planner.project_function import ProjectFunction

_OPEN, _CLOSE = "<<stagecoach-function:", ":stagecoach-function>>"
_FOLDER = os.path.dirname(__file__)
_MAX_FRAMES = 20
_MAX_TEXT = 6_000


class FunctionRaisedError(Exception):
    """The code of a function raised, or gave something that is not what it declares.

    Args:
        function: The function.
        problem: What it raised, in one line.
        trace: The traceback from the function's own frame on; empty if there is none.
    """

    def __init__(self, function: ProjectFunction, problem: str, trace: str = "") -> None:
        super().__init__(f"function '{function.name}' ({function.python}) {problem}")
        self.trace = trace

    @classmethod
    def of(cls, function: ProjectFunction, error: Exception) -> FunctionRaisedError:
        """The error for what the code raised."""
        text = str(error).strip()
        lines = secrets.redact(text).splitlines() or [""]
        told = f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__
        inner = _after_ours(error.__traceback__)
        trace = "".join(traceback.format_exception(type(error), error, inner, limit=-_MAX_FRAMES))
        return cls(function, f"raised {told}", secrets.redact(trace)[-_MAX_TEXT:])


@dataclass(frozen=True)
class FunctionProblem:
    """An error of a function as it came through Spark.

    Args:
        text: The error; its first line can be read by itself.
        unusable: The arguments of the `FunctionError`, if the code cannot be used at all.
    """

    text: str
    unusable: tuple[str, str, str] | None = None


def marked(error: FunctionRaisedError | FunctionError) -> str:
    """The error as a text that `problem_in` finds again in what Spark says."""
    if isinstance(error, FunctionError):
        body = {"text": str(error), "unusable": list(error.args)}
    else:
        body = {"text": f"{error}\n{error.trace}".strip()}
    return f"{_OPEN}{json.dumps(body)}{_CLOSE}"


def problem_in(text: str) -> FunctionProblem | None:
    """The error of a function in a text of Spark's, or None."""
    _, found, rest = text.partition(_OPEN)
    body, closed, _ = rest.partition(_CLOSE)
    if not found or not closed:
        return None
    try:
        values = json.loads(body)
    except ValueError:  # cut off on its way
        return None
    unusable = tuple(values["unusable"]) if "unusable" in values else None
    return FunctionProblem(values["text"], unusable)


def _after_ours(found: TracebackType | None) -> TracebackType | None:
    """The traceback below the frames of this package."""
    inner = found
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_FOLDER):
        inner = inner.tb_next
    return inner or found
