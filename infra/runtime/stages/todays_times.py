"""Outputs that hold only for the day on which they were made.

Spark reads a text such as `12:30` as a time of the day on which it runs. DuckDB never does so: it
leaves such a text to Spark. So if Spark has run a fragment that reads times from text, its output
is valid only on that day. The commit records the day in its `ancestry`, next to the contents of the
stages upstream, so everything that is computed from the output is tied to the same day.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.runtime.planning.fingerprint import digest
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.planner.plan.expressions import Call, Cast, Expression
from stagecoach.planner.plan.physical import PhysicalPlan, ScanExec
from stagecoach.planner.plan.stages import Stage, StageGraph
from stagecoach.planner.text.time_zones import zone_info
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType

TODAY = "today"
"""Key of the day in a commit's ancestry."""

_TEXTS = ("string", "variant")
_TEXT_FORMATS = ("csv", "json")
_WORDS = re.compile(
    r"timestamp|\b(from_(csv|json)|hour|minute|second|extract|date_?part|date_trunc|date_format"
    r"|from_utc\w*|to_utc\w*|convert_timezone|(session_)?window)\b",
    re.IGNORECASE,
)
"""What reads a time from a text, in the text of a query: types, casts and functions of times."""


def today(time_zone: str) -> str:
    """Return the date in a time zone, ISO 8601."""
    return datetime.datetime.now(zone_info(time_zone)).date().isoformat()


def may_read_today(stage: Stage, graph: StageGraph, snapshot: Snapshot) -> bool:
    """Whether what Spark makes of a stage may have times of the day on which it runs.

    Args:
        stage: The stage.
        graph: Its query.
        snapshot: The tables.
    """
    if stage.sql is not None:
        return _WORDS.search(stage.sql) is not None or any(
            _is_text(name, snapshot) and any(_has_time(field.dtype) for field in fields)
            for name, fields in graph.tables
        )
    return any(
        _scans_text_times(node, snapshot)
        or any(_reads_time(part) for expr in node.expressions for part in walk(expr))
        for node in walk(stage.fragment)
    )


def earlier_day(ancestry: Mapping[str, str], day: str) -> dict[str, str]:
    """Return an ancestry that also has a day; of two days the earlier, which is over first."""
    return {**ancestry, TODAY: min(day, ancestry.get(TODAY, day))} if day else {**ancestry}


def identity_of_rows(manifest: Manifest) -> str:
    """Return what stands for the rows of an output in a table that they are published to.

    That is the fingerprint, unless the rows may have been others on another day.
    """
    if TODAY not in manifest.ancestry:
        return manifest.fingerprint
    return digest([manifest.fingerprint, manifest.content_hash])


def _scans_text_times(node: PhysicalPlan, snapshot: Snapshot) -> bool:
    is_text = isinstance(node, ScanExec) and _is_text(node.table, snapshot)
    return is_text and any(_has_time(column.dtype) for column in node.columns)


def _is_text(table: str, snapshot: Snapshot) -> bool:
    return snapshot.table(table).format in _TEXT_FORMATS


def _reads_time(expr: Expression) -> bool:
    """Whether an expression makes a time with a zone from text."""
    if isinstance(expr, Cast):
        return _has_time(expr.dtype) and _has(expr.arg.dtype, _TEXTS)
    if isinstance(expr, Call):
        return _has_time(expr.dtype) and any(_has(arg.dtype, _TEXTS) for arg in expr.args)
    return False


def _has_time(dtype: DataType) -> bool:
    return _has(dtype, ("timestamp",))


def _has(dtype: DataType, kinds: tuple[str, ...]) -> bool:
    return dtype.kind in kinds or any(_has(field.dtype, kinds) for field in dtype.fields)
