"""Log lines as JSON, one object a line, with the run and stage that they belong to.

    {"time": …, "level": "INFO", "logger": "stagecoach.infra.runtime.stages.claims", "message": …,
     "run": "7f3c…", "query": "sales", "stage": 2, "attempt": 0}

A message may quote a value of the data (Spark's do) or a URL; neither belongs into the logs of a
whole company. So quoted values and credentials are replaced, and tracebacks keep their frames only.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING

from stagecoach.infra.storage import secrets
from stagecoach.infra.telemetry.stderr_handler import StderrHandler, root_handlers

if TYPE_CHECKING:
    from types import TracebackType

OURS = ("stagecoach",)
MAX_MESSAGE = 2_000

_stage: ContextVar[Mapping[str, str | int]] = ContextVar(
    "stagecoach_stage", default=MappingProxyType({})
)
_QUOTED = re.compile(
    r"(?i)\b(value|values|string|literal|input|row|key)s?\s*(?::\s*)?(['\"`])(?:(?!\2).)*\2",
    re.DOTALL,
)
_SECRET = re.compile(
    r"(?i)\b([\w.-]*(?:secret|password|passwd|token|access[_.-]?key|credential)[\w.-]*)"
    r"(['\"]?\s*[=:]\s*)(['\"]?)[^\s'\",;}&]+"
)
_AWS_KEY = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")


@contextmanager
def stage_context(*, run: str, query: str, stage: int, attempt: int) -> Iterator[None]:
    """Say in every line of this thread which stage it is about, while the block runs."""
    token = _stage.set({"run": run, "query": query, "stage": stage, "attempt": attempt})
    try:
        yield
    finally:
        _stage.reset(token)


def json_handler() -> logging.Handler:
    """Writes lines of our loggers as JSON to whatever `sys.stderr` is at that moment."""
    handler = StderrHandler()
    handler.setFormatter(json_formatter())
    handler.addFilter(is_ours)
    handler.setLevel(logging.INFO)
    return handler


def json_formatter() -> logging.Formatter:
    """Turns a record into one line of JSON."""
    from pythonjsonlogger.json import JsonFormatter

    class Formatter(JsonFormatter):
        """Adds the stage at hand, and takes out what must not be told."""

        def process_log_record(self, log_data: dict[str, object]) -> dict[str, object]:
            """The object of a line."""
            log_data["message"] = redacted(str(log_data.get("message", "")))
            return {**log_data, **_stage.get()}

        def formatException(self, ei: object) -> str:  # logging's own name
            """Where an error came from, without its message."""
            return _frames(ei if isinstance(ei, tuple) else (None, None, None))

    return Formatter(
        "%(levelname)s %(name)s %(message)s",
        rename_fields={"levelname": "level", "name": "logger"},
        timestamp="time",
        json_ensure_ascii=False,
    )


def log_as_json() -> None:
    """Let our loggers write JSON lines; once a process, and not where there is such a handler."""
    if root_handlers():
        return
    logging.getLogger().addHandler(json_handler())
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)


def is_ours(record: logging.LogRecord) -> bool:
    """Whether one of our modules wrote it."""
    return record.name.split(".")[0] in OURS


def redacted(text: str) -> str:
    """A message in one line of bounded length, without credentials and values of the data."""
    text = _AWS_KEY.sub("***", _SECRET.sub(r"\1\2\3***", secrets.redact(text)))
    text = " ".join(_QUOTED.sub(r"\1 \2…\2", text).split())
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def _frames(
    error: tuple[type[BaseException] | None, BaseException | None, TracebackType | None],
) -> str:
    kind, _, where = error
    name = kind.__name__ if kind is not None else "error"
    frames = [f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(where)]
    return " > ".join([*frames, name])
