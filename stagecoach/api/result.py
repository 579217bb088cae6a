"""The result of a query, as Arrow, as pandas or as a table.

What is found lost or damaged while it is read is made again in the same call; see
`stagecoach.api.head_output`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stagecoach.planner.errors import OptionError

if TYPE_CHECKING:
    import os

    import pandas as pd  # type: ignore[import-untyped]  # its stubs are another package
    import pyarrow as pa

    from stagecoach.api.exporting import WrittenTable
    from stagecoach.api.head_output import HeadOutput
    from stagecoach.assets.report.metadata import StageMetadata
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.shuffle.manifest import Manifest
    from stagecoach.infra.storage.object_store import ObjectStore
    from stagecoach.planner.plan.stages import StageGraph
    from stagecoach.planner.types import Field
    from stagecoach.terminal.result_files import FileFormat


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a query, read from storage when it is asked for.

    Args:
        graph: The plan that was run.
        run_id: Id of the run.
        stages: What each stage tells about itself, leaves first, the head last.
        store: Where the stages' outputs are.
        settings: Of the run; None where the result cannot be written as a table.
        run_again: Runs the head stage again for the same run and returns where its output is; None
            where an output that is lost is not made again.
    """

    graph: StageGraph
    run_id: str
    stages: tuple[StageMetadata, ...]
    store: ObjectStore = field(repr=False)
    settings: EngineSettings | None = field(default=None, repr=False, compare=False)
    run_again: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _head(self) -> HeadOutput:
        from stagecoach.api.head_output import HeadOutput

        return HeadOutput(
            store=self.store,
            run_id=self.run_id,
            stage=f"{self.graph.query}/stage_{len(self.stages) - 1}",
            fingerprint=self.stages[-1].fingerprint or "",
            run_again=self.run_again,
        )

    @cached_property
    def _columns(self) -> tuple[Field, ...]:
        from stagecoach.infra.runtime.records.pointers import read_pointer

        pointer = read_pointer(self.store, self.run_id, self.graph.head.stage_id)
        return pointer.fields if pointer and pointer.columns else self.graph.result

    @property
    def num_rows(self) -> int:
        """Rows of the result."""
        return self._head.manifest().num_rows

    @property
    def schema(self) -> pa.Schema:
        """Columns of the result, with Spark's names and types."""
        from stagecoach.planner.types import arrow_schema

        # Not the plan's: where Spark ran the whole query, Spark alone knew the columns.
        return arrow_schema(self._columns)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in the result's order, each once.

        Raises:
            ShuffleReadError: Rows are lost and cannot be made again.
            ResultChangedError: They were lost after some of them were given, and came out in
                another order when they were made again.
        """
        yield from self._head.batches(self._columns)

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        import pyarrow as pa

        from stagecoach.api.head_output import ResultChangedError

        try:
            return pa.Table.from_batches(self.batches(), schema=self.schema)
        except ResultChangedError:  # nobody has seen a row yet
            return pa.Table.from_batches(self.batches(), schema=self.schema)

    def write(self, path: str | os.PathLike[str], file_format: FileFormat | None = None) -> int:
        """Write all rows as one local file, which appears whole or not at all; return their number.

        CSV has a header, quotes as in RFC 4180, nothing for NULL and `""` for an empty text; JSON
        has an object on each line. Both are UTF-8, with timestamps in the session time zone.

        Args:
            path: The file; an existing one is replaced.
            file_format: `parquet`, `csv`, `json` or `arrow`; by default what the name ends in.

        Raises:
            StorageError: The file cannot be written.
            ShuffleReadError: Rows are lost and cannot be made again.
        """
        from pathlib import Path

        from stagecoach.api.head_output import ResultChangedError
        from stagecoach.terminal.result_files import FILE_FORMATS, write_result

        if file_format is not None and file_format not in FILE_FORMATS:
            raise ValueError(f"{file_format!r} is none of {', '.join(FILE_FORMATS)}")

        def write() -> int:
            zone = self.graph.time_zone
            batches = self.batches()
            return write_result(
                Path(path), self.schema, batches, file_format=file_format, time_zone=zone
            )

        try:
            return write()
        except ResultChangedError:  # nothing has appeared yet
            return write()

    def write_table(self, **output: Any) -> WrittenTable:
        """Write all rows as a table: Iceberg, Delta, or one of the storage that queries can read.

        A result that the table has already is not written again, so a call can be repeated.

        Args:
            output: `format`, `table`, `catalog`, `location`, `mode` (`replace` or `append`) and
                `partition_by`, as in the `output` of front matter.

        Raises:
            OptionError: A key is unknown, or its value is not valid.
            PublishError: The table does not take these columns.
            ShuffleReadError: Rows are lost and cannot be made again.
            StorageError: The table cannot be written.
        """
        from stagecoach.api.exporting import read_output, write_table

        chosen = read_output(output)
        if self.settings is None:
            raise OptionError("this result cannot be written as a table: nothing was run for it")
        return write_table(
            chosen,
            self._head.manifest(),
            self._columns,
            query=self.graph.query,
            run_id=self.run_id,
            store=self.store,
            settings=self.settings,
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas data frame; duplicate column names stay."""
        table = self.to_arrow()
        numbered = table.rename_columns([str(i) for i in range(table.num_columns)])
        frame = numbered.to_pandas()
        frame.columns = list(table.schema.names)
        return frame

    def show(self, limit: int | None = None) -> None:
        """Print the rows as a table, 100 of them unless told otherwise."""
        import click

        from stagecoach.terminal.output import render_rows

        lines = render_rows(
            self.schema,
            self.batches(),
            "table",
            limit=limit,
            num_rows=self.num_rows,
            time_zone=self.graph.time_zone,
        )
        for line in lines:
            click.echo(line)

    def manifest(self, stage_id: int) -> Manifest:
        """Return the commit of a stage.

        Raises:
            StorageError: It is gone: gc removed it after the run.
        """
        if stage_id == len(self.stages) - 1:
            return self._head.manifest()
        from stagecoach.infra.errors import StorageError
        from stagecoach.infra.shuffle.commit import load_manifest

        fingerprint = self.stages[stage_id].fingerprint
        stage = f"{self.graph.query}/stage_{stage_id}"
        manifest = load_manifest(self.store, fingerprint, stage=stage) if fingerprint else None
        if manifest is None:
            raise StorageError(f"the output of {stage} is gone from storage; run the query again")
        return manifest
