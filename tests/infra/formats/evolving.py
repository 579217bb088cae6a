"""Answers of queries over tables whose files have different columns, by each reader in turn."""

from __future__ import annotations

import functools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.catalog.catalog import FileCatalog, load_catalog
from stagecoach.infra.engines.duckdb.engine import DuckDbEngine
from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.formats.file_pruning import row_group_test
from stagecoach.infra.formats.registry import table_format
from stagecoach.infra.formats.requests import scan_request
from stagecoach.infra.formats.snapshot import Snapshot, take_snapshot
from stagecoach.infra.formats.units import ScanSlice, ScanUnit
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import ArrowInput, ParquetInput, ScanInput
from stagecoach.infra.reading.parquet import read_parquet_batches
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.planning import plan_query
from stagecoach.planner.render.fragment import render_fragment


def write_files(folder: Path, *tables: pa.Table, rows: int = 3, columns: str = "") -> FileCatalog:
    """Write tables as `t/0.parquet`, … and return a catalog with a table `t` of these files.

    Args:
        folder: Where the catalog file goes.
        tables: Rows of the files.
        rows: Rows of a row group.
        columns: The declared columns, a line each; none for those of the files.
    """
    (folder / "t").mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / "t" / f"{number}.parquet", row_group_size=rows)
    declared = "".join(f"      {line}\n" for line in columns.splitlines())
    text = "tables:\n  t:\n    location: t\n" + (f"    columns:\n{declared}" if declared else "")
    (folder / "catalog.yaml").write_text(text)
    return load_catalog(folder / "catalog.yaml")


def answers(catalog: FileCatalog, sql: str, spill: Path) -> dict[str, pa.Table]:
    """Rows of a query of one stage over `t`, by how its files are read."""
    graph = plan_query(sql, catalog, PlannerOptions())
    (stage,) = graph.stages
    assert stage.engine == "duckdb", stage.engine_reason
    (leaf,) = stage.leaves
    assert isinstance(leaf, ScanExec)
    snapshot = Snapshot.from_json(take_snapshot(catalog, ["t"]).to_json())
    table = snapshot.table("t")
    request = scan_request(stage.fragment, leaf, table.format, {}, graph.time_zone)
    scan = table_format(table.format).plan_scan(request, table)
    whole = tuple(scan.units)
    pieces = tuple(piece for unit in whole for piece in unit.split())
    test = row_group_test(stage.fragment, leaf, table, {}, graph.time_zone)

    def read(units: tuple[ScanUnit, ...], *, by_arrow: bool) -> pa.Table:
        bound = scan.bind(ScanSlice(units))
        assert isinstance(bound, ScanInput)
        files = tuple(DataFile.from_list(file.to_list()) for file in bound.files)
        spec = ParquetInput(bound.columns, files, test=test if by_arrow else None)
        given = (
            ArrowInput(spec.columns, functools.partial(read_parquet_batches, spec))
            if by_arrow
            else spec
        )
        schema = output_schema(tuple(field.dtype for field in stage.schema))
        fragment = Fragment.of(render_fragment(stage, "duckdb", {}), [given], schema)
        folders = tuple({str(Path(file.uri).parent) for file in files})
        settings = Resources(
            time_zone=graph.time_zone,
            memory_bytes=1 << 28,
            spill_dir=str(spill),
            directories=folders,
        )
        with DuckDbEngine().run(fragment, settings) as batches:
            return pa.Table.from_batches(list(batches), schema)

    return {
        "files": read(whole, by_arrow=False),
        "row groups": read(pieces, by_arrow=False),
        "arrow": read(whole, by_arrow=True),
    }
