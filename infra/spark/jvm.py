"""Starts the JVM of classic Spark, and says why where it does not start.

pyspark knows only that the JVM has ended (`JAVA_GATEWAY_EXITED`). Why it has is in what the JVM and
Spark's scripts print, so their output passes through this process on its way to the inherited
descriptors, and the last lines of it are kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from stagecoach.infra.errors import SparkUnavailableError, StageCanceledError
from stagecoach.infra.host.ending import is_ending
from stagecoach.infra.spark.converters import use_light_converters

_KEPT_LINES = 200
_SHOWN_LINES = 4
_DRAIN_SECONDS = 2.0
_MEMORY = "spark.driver.memory"
_STACK = re.compile(r"^\s+(at |\.\.\. \d+ more)")
_USELESS = re.compile(
    r"^(WARNING|NOTE|Picked up|#|\[.*\]\[warning\]|\[JAVA_GATEWAY_EXITED\])|^\s*$"
)
# Its class path alone has 300 files, and it opens all of them: with 256 it ended, with 320 it ran.
_FEWEST_FILES = 512


def start_session(conf: Mapping[str, str]) -> SparkSession:
    """Return a classic session, and start the JVM for it if this process has none.

    Args:
        conf: Spark's configuration. The JVM gets it as arguments, which every user of the machine
            can read.

    Raises:
        SparkUnavailableError: The machine, a setting or Java itself does not let Spark start.
        StageCanceledError: This process is being ended.
    """
    _refuse_while_ending()
    use_light_converters()
    output = _Output()
    try:
        if SparkContext._gateway is None:
            arguments = SparkConf(loadDefaults=False).setAll(list(conf.items()))
            with output.captured() as streams:
                gateway = launch_gateway(arguments, _LaunchArguments(streams))
            SparkContext._ensure_initialized(gateway=gateway)
        return SparkSession.builder.config(map=dict(conf)).getOrCreate()
    except (PySparkRuntimeError, Py4JError, OSError, EOFError) as error:
        _refuse_while_ending()
        output.drain()
        # Java's own exceptions tell more than what it prints.
        lines = [*str(error).splitlines(), *output.lines]
        raise SparkUnavailableError(describe_failure(lines, conf)) from error


def describe_failure(lines: list[str], conf: Mapping[str, str]) -> str:
    """Return why Spark does not start, and what to do about it.

    Args:
        lines: What the JVM and Spark's scripts printed.
        conf: The configuration of the JVM.
    """
    text = "\n".join(lines)
    known = next((cause for cause in _CAUSES if cause.pattern.search(text)), None)
    shown = [line.strip() for line in lines if not (_USELESS.search(line) or _STACK.match(line))]
    if known is None and _file_limit() < _FEWEST_FILES:
        # The JVM says this in many ways: a class, a security file, a message that it cannot load.
        parts, telling = ["Spark cannot start: " + _few_files(conf)], shown[:_SHOWN_LINES]
    elif known is not None:
        telling = [line for line in shown if known.pattern.search(line)] or shown
        parts = ["Spark cannot start: " + known.explain(conf)]
    else:
        telling = shown[-_SHOWN_LINES:]
        home = os.environ.get("JAVA_HOME", "")
        parts = [f"Spark cannot start: its JVM ({home}) ended before it was ready"]
    said = list(dict.fromkeys(line[:300] for line in telling))[:_SHOWN_LINES]
    return "\n".join([*parts, *(f"JVM: {line}" for line in said)])


class _LaunchArguments(dict[str, Any]):
    """Arguments for the `Popen` of pyspark's `launch_gateway`, which adds some of its own.

    Among those is a function that makes the child ignore Ctrl-C. With such a function, Python
    forks, and the child is a copy of this process until its exec: where a gRPC server runs (Flight
    SQL), gRPC's fork handlers crashed one such child in eight. Without it, Linux starts the program
    by `vfork`, which calls no handlers. A process group of its own keeps Ctrl-C from the JVM, too.
    """

    def __init__(self, streams: Mapping[str, int]) -> None:
        super().__init__(streams, process_group=0)

    def __setitem__(self, name: str, value: Any) -> None:
        if name != "preexec_fn":
            super().__setitem__(name, value)


def _refuse_while_ending() -> None:
    if is_ending():
        raise StageCanceledError("Spark is not started: the process is being ended")


class _Output:
    """What the JVM prints; it goes on to this process's own descriptors 1 and 2."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._threads: list[threading.Thread] = []

    @contextlib.contextmanager
    def captured(self) -> Iterator[Mapping[str, int]]:
        """Yield the standard output and error for a process that is started in the block."""
        # The VM prints why it cannot be created on standard output.
        inputs = {"stdout": self._pipe(1), "stderr": self._pipe(2)}
        try:
            yield inputs
        finally:
            for descriptor in inputs.values():
                os.close(descriptor)

    def drain(self) -> None:
        """Wait until a process that has ended has said all."""
        for thread in self._threads:
            thread.join(_DRAIN_SECONDS)

    def _pipe(self, target: int) -> int:
        reading, writing = os.pipe()
        thread = threading.Thread(
            target=self._pass_on, args=(reading, target), name="jvm-output", daemon=True
        )
        self._threads.append(thread)
        thread.start()
        return writing

    def _pass_on(self, source: int, target: int) -> None:
        with os.fdopen(source, "rb") as stream:
            for line in stream:
                self.lines.append(line.decode(errors="replace").rstrip())
                with contextlib.suppress(OSError):  # a closed terminal must not block the JVM
                    os.write(target, line)


@dataclass(frozen=True)
class _Cause:
    """A known reason why the JVM does not start.

    Args:
        pattern: What it prints then.
        explain: Says what is wrong and what to do, given the configuration.
    """

    pattern: re.Pattern[str]
    explain: Callable[[Mapping[str, str]], str]


def _few_files(conf: Mapping[str, str]) -> str:
    return (
        f"this process may open {_file_limit()} files at a time (`ulimit -n`), which is too few; "
        "raise the limit to 4096 or more"
    )


def _file_limit() -> int:
    # The JVM raises the soft limit to the hard one.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def _few_processes(conf: Mapping[str, str]) -> str:
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    told = "unlimited" if limit == resource.RLIM_INFINITY else f"{limit}"
    return (
        f"no more threads or processes can be started (`ulimit -u` is {told}); raise that limit, "
        "or the limit of processes or memory of the container"
    )


def _no_memory(conf: Mapping[str, str]) -> str:
    heap = conf.get(_MEMORY) or os.environ.get("SPARK_DRIVER_MEMORY") or "1g (the default)"
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    bound = "" if limit == resource.RLIM_INFINITY else f", and `ulimit -v` is {limit >> 10}"
    return (
        f"this machine does not give its JVM the memory that it asks for: {_MEMORY} is "
        f"{heap}{bound}; choose less, for example --set {_MEMORY}=1g, or raise the limit"
    )


def _bad_memory(conf: Mapping[str, str]) -> str:
    return (
        f"the size of its JVM's memory is not valid: {_MEMORY} is {conf.get(_MEMORY, 'not set')}; "
        f"write a number and a unit, for example --set {_MEMORY}=1g"
    )


def _temp_folder(conf: Mapping[str, str]) -> str:
    folder = conf.get("spark.local.dir") or os.environ.get("SPARK_LOCAL_DIRS") or _temp()
    return (
        f"the folder for temporary files is full or cannot be written: {folder}; make room, or "
        "choose another one with the variable TMPDIR (or with spark.local.dir)"
    )


def _temp() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:  # none can be written
        return os.environ.get("TMPDIR", "/tmp")


def _java(conf: Mapping[str, str]) -> str:
    home = os.environ.get("JAVA_HOME", "not set")
    return f"its Java cannot be used (JAVA_HOME is {home}); Spark needs Java 17 or newer"


_CAUSES = (
    _Cause(re.compile(r"Too many open files|error=24\b|No file descriptors"), _few_files),
    _Cause(
        re.compile(
            r"unable to create native thread|pthread_create failed|fork: .*unavailable|"
            r"Cannot create (worker )?GC thread|error=11\b|Resource temporarily unavailable"
        ),
        _few_processes,
    ),
    _Cause(re.compile(r"Invalid (maximum|initial) heap size|NumberFormatException"), _bad_memory),
    _Cause(
        re.compile(
            r"Could not reserve enough space|insufficient memory|[Cc]annot allocate memory|"
            r"exceeds the maximum representable size|OutOfMemoryError|could not allocate"
        ),
        _no_memory,
    ),
    _Cause(
        re.compile(
            r"No space left on device|Read-only file system|No usable temporary directory|"
            r"Failed to create a temp|Failed to get a temp|Disk quota exceeded|"
            r"Unable to create a temp|Failed to create a (local|root) dir"
        ),
        _temp_folder,
    ),
    _Cause(
        re.compile(
            r"UnsupportedClassVersionError|Unrecognized VM option|Unable to locate a Java|"
            r"JAVA_HOME is not set|Error: could not find (libjava|java)|/java: (No such|cannot)"
        ),
        _java,
    ),
)
