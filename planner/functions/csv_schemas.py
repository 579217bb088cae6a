"""The schema of a line of CSV, which is a constant, as Spark infers it.

Source: Spark's `CSVInferSchema`.
"""

from __future__ import annotations

import datetime as dt
import re

from stagecoach.planner.functions import csv_options
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.plan.expressions import Call, Literal

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_FRACTION = re.compile(r"[+-]?[0-9]{1,9}\.[0-9]{1,6}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}")
# Begins like no number and no time.
_WORDS = re.compile(r"[A-HJ-MO-Za-z_][A-Za-z_ ]*")


def schema_of_csv(node: Call) -> str:
    """SCHEMA_OF_CSV of a literal."""
    schema = _schema(node)
    assert schema is not None, node
    return quoted(schema)


def refuse_schema_of_csv(node: Call) -> str | None:
    """Only lines each of whose fields is plainly of one type."""
    return None if _schema(node) else "the schema of this line is not proven"


def _schema(node: Call) -> str | None:
    options = csv_options.read(node, 1)
    line = node.args[0]
    if options is None or not isinstance(line, Literal) or not isinstance(line.value, str):
        return None
    if not line.value or any(c in line.value for c in options.quote + options.escape + "\r\n"):
        return None
    fields = line.value.split(options.separator)
    types = ["STRING" if f in ("", options.null_value) else _type(f) for f in fields]
    if None in types or len(types) > csv_options.MOST_COLUMNS:
        return None
    return f"STRUCT<{', '.join(f'_c{i}: {t}' for i, t in enumerate(types))}>"


def _type(text: str) -> str | None:
    """The type of a field; None where it is not proven."""
    if _WHOLE.fullmatch(text):
        return "INT" if -(1 << 31) <= int(text) < 1 << 31 else "BIGINT"
    if _FRACTION.fullmatch(text):
        return "DOUBLE"
    if text.lower() in ("true", "false"):
        return "BOOLEAN"
    if _DAY.fullmatch(text):
        return "DATE" if _is_moment(text) else None
    if _MOMENT.fullmatch(text):
        return "TIMESTAMP" if _is_moment(text) else None
    return "STRING" if _WORDS.fullmatch(text) else None


def _is_moment(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
