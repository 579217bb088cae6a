"""Functions of JSON over Arrow columns, for texts that DuckDB reads or writes otherwise than Spark.

Worker code; `java_functions` registers it. All raise `UnclearJsonError` where only Spark knows the
result: an error of the query to DuckDB, so that Spark runs the stage. Proven beside Spark in
`test_odd_json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from stagecoach.infra.engines.duckdb.java_json_paths import json_path, members_of, value_at
from stagecoach.infra.engines.duckdb.java_json_reader import (
    BrokenJsonError,
    Members,
    UnclearJsonError,
    Value,
    read_json,
)
from stagecoach.infra.engines.duckdb.java_json_writer import JsonStyle

T = TypeVar("T")

# What Java writes of half a character, in bytes.
_HALF = re.compile("[\ud800-\udfff]")


def json_objects(
    texts: pa.ChunkedArray, paths: pa.ChunkedArray, fewest: pa.ChunkedArray
) -> pa.Array:
    """`get_json_object`: what is at a path.

    Args:
        texts: JSON.
        paths: Paths in Spark's syntax.
        fewest: See `JsonStyle.fewest`.
    """
    rows = zip(*_lists(texts, paths, fewest), strict=True)
    return pa.array([_object(text, path, digits) for text, path, digits in rows], pa.string())


def _object(text: str | None, path: str | None, fewest: int | None) -> str | None:
    steps = None if path is None else json_path(path)
    if text is None or steps is None:
        return None
    return _judged(lambda: value_at(read_json(text), steps, JsonStyle(fewest)))


def json_tuple_members(
    texts: pa.ChunkedArray,
    names: pa.ChunkedArray,
    position: pa.ChunkedArray,
    fewest: pa.ChunkedArray,
) -> pa.Array:
    """One column of `json_tuple`.

    Args:
        texts: JSON.
        names: All names of members: what cannot be written of one makes all columns NULL.
        position: Which of the names is wanted, from 0.
        fewest: See `JsonStyle.fewest`.
    """
    rows = zip(*_lists(texts, names, position, fewest), strict=True)
    return pa.array([_member(*row) for row in rows], pa.string())


def _member(text: str | None, names: list[str], position: int, fewest: int | None) -> str | None:
    value = _read(text)
    if not isinstance(value, Members):
        return None
    found = _judged(lambda: members_of(value, names, JsonStyle(fewest)))
    return found[position] if found else None


def json_array_lengths(texts: pa.ChunkedArray) -> pa.Array:
    """`json_array_length`: NULL for a text that is not an array."""
    values = map(_read, texts.to_pylist())
    return pa.array([len(v) if isinstance(v, list) else None for v in values], pa.int32())


def json_object_names(texts: pa.ChunkedArray) -> pa.Array:
    """`json_object_keys`: NULL for a text that is not an object."""
    values = map(_read, texts.to_pylist())
    return pa.array(
        [[_HALF.sub("?", n) for n, _ in v] if isinstance(v, Members) else None for v in values],
        pa.list_(pa.string()),
    )


def _read(text: str | None) -> Value:
    return None if text is None else _judged(lambda: read_json(text))


def _judged(compute: Callable[[], T]) -> T | None:
    """What is computed; NULL for a broken text."""
    try:
        return compute()
    except BrokenJsonError:
        return None
    except RecursionError:
        # Its traceback has a line for each level.
        raise UnclearJsonError("the text has very many levels") from None


def _lists(*columns: pa.ChunkedArray) -> list[list[Any]]:
    return [column.to_pylist() for column in columns]
