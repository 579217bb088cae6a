"""Keeps the noise of Spark, Java and Python workers off the terminal.

What Python prints still appears; what other programs write to the inherited descriptors goes to a
log file.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TextIO

import click

from stagecoach.infra.storage import secrets
from stagecoach.infra.telemetry.stderr_handler import StderrHandler, root_handlers
from stagecoach.terminal.interrupts import was_interrupted

_LOG_FOLDER = Path(".stagecoach/logs")
_MAX_WARNING = 160
_OURS = ("stagecoach",)

_log_path: Path | None = None
_as_json = False


def divert_noise() -> Path | None:
    """Send descriptors 1 and 2 to a log file; `sys.stdout` and `sys.stderr` stay where they were.

    Returns:
        The log file; None where the streams are not the process's own (in a test, for example).
    """
    global _log_path
    if _log_path is not None:
        return _log_path
    if not (_is_own(sys.stdout, 1) and _is_own(sys.stderr, 2)):
        return None
    handle, path = _open_log()
    sys.stdout.flush()
    sys.stderr.flush()
    # Python's own streams move to copies; children of this process inherit 1 and 2.
    sys.stdout = _copy(sys.stdout, 1)
    sys.stderr = _copy(sys.stderr, 2)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
    _log_path = path
    return path


def announce_spark() -> None:
    """Say that a command which seldom needs Spark waits for it, and keep its noise away."""
    divert_noise()
    atexit.register(discard_log)
    text = "asking Spark about SQL that the planner does not understand (--offline does not)"
    click.echo(text, err=True)


def log_path() -> Path | None:
    """The log file of this process, if there is one with something in it."""
    if _log_path is None or not _log_path.exists() or not _log_path.stat().st_size:
        return None
    return _log_path


def discard_log() -> None:
    """Remove the log file: the run went well, so nobody will ask for it."""
    if _log_path is not None:
        _log_path.unlink(missing_ok=True)


def use_log_format(name: str) -> None:
    """Choose what `configure_logging` shows: `text`, or `json`, which tells of every stage."""
    global _as_json
    _as_json = name == "json"


def logs_are_json() -> bool:
    """Whether `use_log_format` has chosen JSON."""
    return _as_json


def configure_logging(*, debug: bool) -> None:
    """Show warnings of our own modules on standard error, and nothing of anybody else's."""
    root = logging.getLogger()
    for earlier in root_handlers():
        root.removeHandler(earlier)
    handler = StderrHandler()
    handler.setFormatter(_Long("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    if _as_json:
        from stagecoach.infra.telemetry.logs import json_formatter

        handler.setFormatter(json_formatter())
    elif not debug:
        handler.setFormatter(_Plain())
    if not debug:
        handler.addFilter(lambda record: record.name.split(".")[0] in _OURS)
        # What ends with the process has much to say, and all of it follows from the signal.
        handler.addFilter(lambda record: not was_interrupted())
        warnings.simplefilter("ignore")
    handler.setLevel(logging.INFO if debug or _as_json else logging.WARNING)
    root.addHandler(handler)
    if debug or _as_json:
        for name in _OURS:
            logging.getLogger(name).setLevel(logging.INFO)


class _Long(logging.Formatter):
    """Everything, tracebacks included, but for secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return secrets.redact(super().format(record))


class _Plain(logging.Formatter):
    """`warning: text`, in one line of bounded length and without a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        text = " ".join(secrets.redact(record.getMessage()).split())
        clipped = text if len(text) <= _MAX_WARNING else f"{text[: _MAX_WARNING - 1]}…"
        return f"{record.levelname.lower()}: {clipped}"


def _is_own(stream: TextIO, descriptor: int) -> bool:
    try:
        return stream.fileno() == descriptor
    except (OSError, ValueError, AttributeError):
        return False


def _copy(stream: TextIO, descriptor: int) -> TextIO:
    # Not inheritable: a worker that outlives us must not keep a pipe of ours open.
    copy = os.fdopen(
        os.dup(descriptor),
        "w",
        encoding=stream.encoding,
        errors=stream.errors,
        buffering=1,
    )
    atexit.register(_close, copy)
    return copy


def _close(stream: TextIO) -> None:
    try:
        stream.close()
    except OSError:
        # The reader of a pipe went away; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _open_log() -> tuple[int, Path]:
    for folder in (_LOG_FOLDER, Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="stagecoach-", suffix=".log", dir=folder)
        except OSError:
            continue
        return handle, Path(name)
    return os.open(os.devnull, os.O_WRONLY), Path(os.devnull)
