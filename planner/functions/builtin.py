"""The names of Spark's built-in functions, also of those that the planner cannot plan.

They are those of the pyspark that is installed; a test compares the file with it.
"""

from __future__ import annotations

import csv
import difflib
import functools
from collections.abc import Sequence
from importlib import resources

# Spark's grammar has these; its list of functions does not.
_OF_GRAMMAR = frozenset(
    (
        "cast",
        "cube",
        "dateadd",
        "datediff",
        "extract",
        "first",
        "grouping",
        "identifier",
        "last",
        "overlay",
        "percentile_cont",
        "percentile_disc",
        "position",
        "rollup",
        "substr",
        "substring",
        "timestampadd",
        "timestampdiff",
        "timediff",
        "trim",
        "try_cast",
    )
)


@functools.cache
def functions_by_group() -> tuple[tuple[str, str], ...]:
    """The functions and operators that Spark lists, each with its group."""
    file = resources.files(__package__).joinpath("spark_functions.csv")
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return tuple((row["function"], row["group"]) for row in rows)


def is_builtin(name: str) -> bool:
    """Whether Spark has a function of that name, in any case."""
    return name.lower() in _names()


def similar_names(name: str, others: Sequence[str] = ()) -> list[str]:
    """The functions, and others, that somebody may have meant, the likeliest first."""
    return difflib.get_close_matches(name.lower(), sorted({*_names(), *others}), n=3)


@functools.cache
def _names() -> frozenset[str]:
    return _OF_GRAMMAR | {name for name, _ in functions_by_group()}
