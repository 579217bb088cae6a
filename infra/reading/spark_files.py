"""Files that Spark reads by itself, with a reader and options of its own.

Worker code.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.planner.types import Field


@dataclass(frozen=True, kw_only=True)
class SparkFiles:
    """A scan by `spark.read.format(…).options(…).schema(…).load(…)`.

    Args:
        columns: Columns to give.
        reader: What Spark calls the format.
        options: Of the reader, by Spark's names.
        fields: All columns of the files in their order, then those of partition folders.
        files: What is read; each is read whole.
    """

    columns: tuple[LeafColumn, ...]
    reader: str
    options: tuple[tuple[str, str], ...]
    fields: tuple[Field, ...]
    files: tuple[DataFile, ...]
