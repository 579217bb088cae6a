"""Texts of numbers by formats over Arrow columns. Worker code; `java_functions` registers it."""

from __future__ import annotations

import pyarrow as pa

from stagecoach.planner.text.number_formats import number_format


def number_texts(numbers: pa.ChunkedArray, formats: pa.ChunkedArray) -> pa.Array:
    """Decimal numbers by a format, which is the same for all."""
    found = number_format(formats[0].as_py()) if len(formats) else None
    assert found is not None or not len(formats), formats[0]
    return pa.array([found.text(n) for n in numbers.to_pylist()] if found else [], pa.string())
