"""Options with which a JVM of Spark starts, so that its first seconds cost less.

They go before those of the user, which win. Each saves at least 0.3 s of a query that starts a
Spark of its own (`docs/measurements.md`, "Starting Spark").
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager
from pathlib import Path

from stagecoach.infra.host.variables import variable_set
from stagecoach.infra.spark.class_data import SUBMIT_VARIABLE, archive_options

# The optimizing compiler begins when a method has run forty times as often as Java's own thresholds
# say, or a loop ten times. What starts Spark and its jobs would keep it busy for the first thousand
# jobs, which take a sixth longer meanwhile; the loops of a long stage get there all the same.
_THRESHOLDS = {
    "Tier4InvocationThreshold": 200_000,
    "Tier4MinInvocationThreshold": 24_000,
    "Tier4CompileThreshold": 600_000,
    "Tier4BackEdgeThreshold": 400_000,
}
# Not every Java has these options, and one that does not would refuse to start.
COMPILE_LATER = " ".join(
    ("-XX:+IgnoreUnrecognizedVMOptions", *(f"-XX:{name}={n}" for name, n in _THRESHOLDS.items()))
)


def java_options_set(home: Path) -> AbstractContextManager[None]:
    """Have a JVM of Spark that this process starts in the block start with these options.

    Afterwards the environment is as before: by it, processes find a warm Spark of their like.

    Args:
        home: The JAVA_HOME that it will start on.
    """
    return variable_set(SUBMIT_VARIABLE, _with_options(os.environ, home))


def set_java_options(environment: MutableMapping[str, str], home: Path) -> None:
    """Have the next JVM of Spark that gets this environment start with these options.

    Args:
        environment: Of a process that starts one; what it says of Java comes last, and wins.
        home: The JAVA_HOME that it will start on.
    """
    environment[SUBMIT_VARIABLE] = _with_options(environment, home)


def _with_options(environment: Mapping[str, str], home: Path) -> str:
    """The variable's value with these options before those that it has."""
    given = environment.get(SUBMIT_VARIABLE, "")
    options = f"{COMPILE_LATER} {archive_options(home)}".strip()
    return given if options in given else f"{options} {given}".strip()
