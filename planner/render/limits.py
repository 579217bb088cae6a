"""Limit how deeply the SQL of a stage may be nested.

A query with a deeper stage runs on Spark as the user's own text. The SQL that we write is harder
for an engine than that text: each implicit cast adds a level, and a spelling that names an argument
twice doubles the text at each level.
"""

from __future__ import annotations

from stagecoach.planner.engines.registry import SPARK
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import depth, walk

MAX_DEPTH = 250
"""Operators and expressions on one path."""
TOO_DEEP = "the query is nested too deeply to be staged"
# Deeper expressions are rendered while the query is planned, because the text may be too long.
_SHALLOW = 10


def check_text(stages: tuple[Stage, ...]) -> None:
    """Check that the SQL of each stage can be written and parsed.

    Raises:
        UnsupportedSqlError: The SQL of a stage is too deep or too long.
    """
    for stage in stages:
        operators = depth(stage.fragment)
        expressions = (e for node in walk(stage.fragment) for e in node.expressions)
        deepest = max((depth(e) for e in expressions), default=0)
        if operators + deepest > MAX_DEPTH:
            raise UnsupportedSqlError(TOO_DEEP)
        if deepest > _SHALLOW:
            # Spark runs the stage if a task engine fails on the data.
            for engine in sorted({stage.engine, SPARK}):
                render_fragment(stage, engine, None)
