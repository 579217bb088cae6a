"""The result of a query, as Arrow, as a data frame, as rows or as a table.

What is found lost or damaged while it is read is made again in the same call; see
`stagecoach.api.head_output`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.errors import OptionError

if TYPE_CHECKING:
    import os

    import pandas as pd  # type: ignore[import-untyped]  # its stubs are another package
    import polars as pl
    import pyarrow as pa

    from stagecoach.api.exporting import WrittenTable
    from stagecoach.api.head_output import HeadOutput
    from stagecoach.assets.report.metadata import StageMetadata
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.runtime.records.pointers import StagePointer
    from stagecoach.infra.runtime.stages.own_commits import KnownOutput
    from stagecoach.infra.shuffle.manifest import Manifest
    from stagecoach.infra.storage.object_store import ObjectStore
    from stagecoach.planner.plan.stages import StageGraph
    from stagecoach.planner.types import Field
    from stagecoach.terminal.result_files import FileFormat

_SHOWN_COLUMNS = 8
_SHOWN_ROWS = 20


@dataclass(frozen=True, kw_only=True, repr=False)
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
        known: The output of the head stage, by who has just made it; None to look it up.
    """

    graph: StageGraph
    run_id: str
    stages: tuple[StageMetadata, ...]
    store: ObjectStore
    settings: EngineSettings | None = field(default=None, compare=False)
    run_again: Callable[[], str] | None = field(default=None, compare=False)
    known: KnownOutput | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        rows = self.stages[-1].rows if self.stages else None
        count = "" if rows is None else f"{rows:,} row{'' if rows == 1 else 's'} of "
        shown = [f"{column.name} {column.dtype}" for column in self.columns[:_SHOWN_COLUMNS]]
        if left := len(self.columns) - len(shown):
            shown.append(f"… {left:,} more")
        return f"<Result of {self.graph.query}: {count}{', '.join(shown) or 'no columns'}>"

    def _repr_html_(self) -> str:
        """The first rows as a table, for notebooks."""
        from stagecoach.terminal.output import html_rows

        return html_rows(
            self.schema,
            self.batches(),
            columns=self.columns,
            limit=_SHOWN_ROWS,
            num_rows=self.num_rows,
            time_zone=self.graph.time_zone,
        )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as tuples of Python values, timestamps in the session time zone.

        A date or timestamp outside the years 1 to 9999, which Python cannot hold, is Spark's text.
        """
        from stagecoach.terminal.output import take_rows

        return take_rows(self.batches(), time_zone=self.graph.time_zone)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows by Arrow's C interface: DuckDB, polars and others read a result directly."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    @cached_property
    def _head(self) -> HeadOutput:
        from stagecoach.api.head_output import HeadOutput

        return HeadOutput(
            store=self.store,
            run_id=self.run_id,
            stage=f"{self.graph.query}/stage_{len(self.stages) - 1}",
            fingerprint=self.stages[-1].fingerprint or "",
            run_again=self.run_again,
            known=None if self.known is None else self.known.manifest,
            contents={} if self.known is None else self.known.contents,
        )

    @cached_property
    def columns(self) -> tuple[Field, ...]:
        """Columns of the result, with Spark's names and types."""
        from stagecoach.infra.runtime.records.pointers import read_pointer

        if self.known is not None:
            pointer: StagePointer | None = self.known.pointer
        else:
            pointer = read_pointer(self.store, self.run_id, self.graph.head.stage_id)
        return pointer.fields if pointer and pointer.columns else self.graph.result

    @property
    def num_rows(self) -> int:
        """Rows of the result."""
        manifest = self._head.manifest() if self.known is None else self.known.manifest
        return manifest.num_rows

    @property
    def schema(self) -> pa.Schema:
        """Columns of the result, with Spark's names and the Arrow types of Spark's types."""
        from stagecoach.planner.types import arrow_schema

        # Not the plan's: where Spark ran the whole query, Spark alone knew the columns.
        return arrow_schema(self.columns)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in the result's order, each once.

        Raises:
            ShuffleReadError: Rows are lost and cannot be made again.
            ResultChangedError: They were lost after some of them were given, and came out in
                another order when they were made again.
        """
        yield from self.to_batches()

    def to_batches(
        self, max_rows: int | None = None, *, memory_bytes: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow batches, which are read while they are asked for.

        However large the result is, a reader that keeps none of them takes little more memory than
        `memory_bytes` and one batch.

        Args:
            max_rows: Most rows of a batch; by default batches are as they are stored.
            memory_bytes: Stored bytes that are read ahead at most; 128 MiB by default.

        Raises:
            ShuffleReadError, ResultChangedError: As `batches`.
        """
        from stagecoach.infra.shuffle.fetch import DEFAULT_MEMORY_BYTES

        if max_rows is not None and max_rows < 1:
            raise ValueError(f"max_rows is {max_rows}; give a number above 0")
        found = self._head.batches(self.columns, memory_bytes=memory_bytes or DEFAULT_MEMORY_BYTES)
        for batch in found:
            step = max_rows or max(batch.num_rows, 1)
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows; it reads them while they are asked for."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        import pyarrow as pa

        from stagecoach.api.errors import ResultChangedError

        try:
            return pa.Table.from_batches(self.batches(), schema=self.schema)
        except ResultChangedError:  # nobody has seen a row yet
            return pa.Table.from_batches(self.batches(), schema=self.schema)

    def write(self, path: str | os.PathLike[str], file_format: FileFormat | None = None) -> int:
        """Write all rows as one local file, which appears whole or not at all; return their number.

        CSV has a header, quotes as in RFC 4180, nothing for NULL and `""` for an empty text; JSON
        has an object on each line. Both are UTF-8, with timestamps in the session time zone.

        Args:
            path: The file; an existing one is replaced, and keeps its mode.
            file_format: `parquet`, `csv`, `json` or `arrow`; by default what the name ends in:
                `.parquet` or nothing, `.csv`, `.json`, `.jsonl`, `.ndjson`, `.arrow`.

        Raises:
            OptionError: The file ending is not known.
            StorageError: The file cannot be written.
            ShuffleReadError: Rows are lost and cannot be made again.
        """
        from pathlib import Path

        from stagecoach.api.errors import ResultChangedError
        from stagecoach.terminal.result_files import FILE_FORMATS, write_result

        if file_format is not None and file_format not in FILE_FORMATS:
            raise ValueError(f"{file_format!r} is none of {', '.join(FILE_FORMATS)}")

        def write() -> int:
            zone = self.graph.time_zone
            batches = self.batches()
            return write_result(
                Path(path),
                self.schema,
                batches,
                file_format=file_format,
                columns=self.columns,
                time_zone=zone,
            )

        try:
            return write()
        except ResultChangedError:  # nothing has appeared yet
            return write()

    def write_table(self, **output: Any) -> WrittenTable:
        """Write all rows as a table: Iceberg, Delta, or one of the storage that queries can read.

        A result that the table has already is not written again, so a call can be repeated.

        Args:
            output: `format`, `table`, `catalog`, `location`, `mode` (`replace`, `append`, `merge`),
                `key`, `delete_column` and `partition_by`, as in the `output` of front matter.

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
            self.columns,
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

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a polars data frame.

        Raises:
            ConfigError: The extra `polars` is not installed.
            OptionError: Two columns have the same name, which polars does not allow.
        """
        from stagecoach.infra.host.extras import require_extra

        require_extra("polars", "polars", "Result.to_polars")
        import polars as pl

        names = [column.name for column in self.columns]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise OptionError(
                f"two columns are called '{twice}', which polars does not allow; "
                "name them apart with AS"
            )
        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def show(self, limit: int | None = None) -> None:
        """Print the rows as a table, 100 of them unless told otherwise."""
        import click

        from stagecoach.terminal.output import render_rows
        from stagecoach.terminal.text_tables import terminal_width

        lines = render_rows(
            self.schema,
            self.batches(),
            "table",
            columns=self.columns,
            limit=limit,
            num_rows=self.num_rows,
            time_zone=self.graph.time_zone,
            width=terminal_width(),
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
