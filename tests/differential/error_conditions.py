"""Writes `error_conditions.csv`: which of Spark's error conditions a SELECT of ours can raise.

The names are those of the installed Spark. A condition is `query` if `error_queries.sql` has a
query for it, `no` if a rule below says why no SELECT over tables of the catalog raises it, and
`open` if one may, but there is no query.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import re
import zipfile
from pathlib import Path

import pyspark

HERE = Path(__file__).parent
FILE = HERE / "error_conditions.csv"
QUERIES = HERE / "error_queries.sql"
RULES = HERE / "error_condition_rules.csv"


def of_spark() -> list[str]:
    """The conditions of the installed Spark, each with its subclass, in the order of their names."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-common-utils_*.jar")
    with zipfile.ZipFile(jar) as archive:
        found = json.loads(archive.read("error/error-conditions.json"))
    names: list[str] = []
    for name, condition in found.items():
        below = condition.get("subClass")
        names += [f"{name}.{sub}" for sub in below] if below else [name]
    return sorted(names)


def queries() -> list[tuple[str, str]]:
    """Condition and text of each query."""
    found, condition = [], ""
    for line in QUERIES.read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith("-- "):
            condition = line.removeprefix("-- ")
        else:
            found.append((condition, line))
    return found


@functools.cache
def rules() -> tuple[tuple[re.Pattern[str], str, str], ...]:
    """Pattern, kind (`no` or `open`) and reason of each rule; the first that fits counts."""
    with RULES.open(encoding="utf-8", newline="") as file:
        return tuple(
            (re.compile(row["pattern"]), row["select"], row["reason"])
            for row in csv.DictReader(file)
        )


def classified(name: str) -> tuple[str, str]:
    """What a condition without a query is, and why.

    Raises:
        LookupError: No rule fits: a SELECT may raise it, so add a query, or a rule.
    """
    for pattern, kind, reason in rules():
        if pattern.match(name):
            return kind, reason
    raise LookupError(f"no query and no rule for {name}")


def listed() -> str:
    """The text of the file."""
    proven = {condition for condition, _ in queries()}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("condition", "select", "reason"))
    for name in of_spark():
        writer.writerow((name, "query", "") if name in proven else (name, *classified(name)))
    return text.getvalue()


if __name__ == "__main__":
    FILE.write_text(listed(), encoding="utf-8")
