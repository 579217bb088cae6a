"""Looks in a task whether the machine that runs it has what our code needs, before importing it.

Other versions of DuckDB or pyarrow could give other rows or other bytes, and another version of our
code could read a task in another way. A cluster's executors are installed by somebody else and may
come at any time, so each of its Python workers looks once, before its first task.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from stagecoach.infra.spark.connect_conf import CODE_CONF, code_digest
from stagecoach.infra.spark.executor_packages import (
    COMPARED_PACKAGES,
    EXECUTOR_PACKAGES,
    executor_requirements,
    installed,
)
from stagecoach.infra.spark.session_kinds import is_connect, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EnvironmentCheck = Callable[[], str | None]
"""Says what is wrong with the machine that calls it, and what to do; None if nothing is."""

DIGITS = 16
"""Of the digest of our code, those in the name of the archive."""


def runs_on_this_machine(spark: SparkSession) -> bool:
    """Whether the tasks of a session are processes that have started from this installation."""
    if is_connect(spark):
        return spark.conf.get(CODE_CONF, "") == code_digest()
    return is_local(str(spark.sparkContext.master))


def environment_check(spark: SparkSession) -> EnvironmentCheck:
    """The check for the tasks of a session; it is pickled by value and needs nothing of ours."""
    if runs_on_this_machine(spark):
        return _nothing_to_check()
    return check_against(
        {name: found for name in COMPARED_PACKAGES if (found := installed(name)) is not None},
        code_digest()[:DIGITS],
    )


def check_against(versions: dict[str, str], code: str) -> EnvironmentCheck:
    """A check for these versions of packages and this digest of our code."""
    packages = EXECUTOR_PACKAGES
    expected = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", **versions}
    command = f"pip install {' '.join(executor_requirements())}"

    def check() -> str | None:
        import sys

        key = (*sorted(expected.items()), code)
        if sys.__dict__.get("_stagecoach_checked") == key:
            return None
        import importlib.util
        import socket
        from importlib.metadata import PackageNotFoundError, version

        found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
        for name in packages:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = ""
        where = f"machine {socket.gethostname()}, Python {sys.executable}"
        if missing := [name for name in packages if not found[name]]:
            return (
                f"an executor lacks {', '.join(missing)} ({where}); run there: {command}; if it "
                "has another Python, name that with PYSPARK_PYTHON"
            )
        for name, wanted in expected.items():
            if found[name] != wanted:
                return (
                    f"an executor has {name} {found[name]}, the driver has {wanted} ({where}); "
                    + (f"run there: {command}" if name != "python" else "use the same on both")
                )
        ours = importlib.util.find_spec("stagecoach")
        if ours is None or f"_{code}.zip" not in str(ours.origin):
            place = "nowhere" if ours is None else f"in {ours.origin}"
            return (
                f"an executor finds Stagecoach's code {place}, not in the archive of version "
                f"{code} that the driver has sent ({where}); remove it there, or restart Spark"
            )
        sys.__dict__["_stagecoach_checked"] = key
        return None

    return check


def _nothing_to_check() -> EnvironmentCheck:
    def check() -> str | None:
        return None

    return check
