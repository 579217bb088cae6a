"""`stagecoach demo`: TPC-H query 3 from SQL text to rows, with everything that happens between."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

import stagecoach
from stagecoach import tpch
from stagecoach.arguments.options import Settings, debug_option, open_session, storage_option
from stagecoach.planner.text.sizes import format_bytes
from stagecoach.terminal.progress import make_progress
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise

if TYPE_CHECKING:
    from stagecoach.api.result import Result

QUERY = "q03"
SCALE_FACTOR = 0.1
# As over large tables: nothing is small enough to be sent to every task.
_OPTIONS: dict[str, object] = {
    "broadcast_bytes": 0,
    "force_distribution": True,
    "num_partitions": 4,
}


@click.command()
@storage_option
@click.option("--fresh", is_flag=True, help="Run every stage, even if its output exists.")
@debug_option
def demo(storage: str | None, fresh: bool, debug: bool) -> None:
    """Run TPC-H query 3 on generated data: plan, progress, rows, shuffle files.

    Run it twice: the second run finds every stage done and reuses it.
    """
    configure_logging(debug=debug)
    sql = _query_text()
    _prepare_data()
    if not debug:
        divert_noise()
    with open_session(
        str(tpch.example_catalog()), storage, Settings(dict(_OPTIONS), {})
    ) as session:
        from stagecoach.planner.explain.display import render_graph

        _heading(f"The query ({QUERY})")
        click.echo(sql.rstrip())
        planned = session.plan(sql, name=QUERY)
        _heading("Its stages")
        click.echo(render_graph(planned.graph, "text").rstrip())
        _heading("The run")
        session.check_storage()
        started = time.perf_counter()
        with make_progress(planned.graph) as progress:
            result = session.run(planned, fresh=fresh, progress=progress, debug=debug)
        seconds = time.perf_counter() - started
        _heading("The rows")
        _rows(result)
        _heading("What it left in storage")
        click.echo(f"{session.store.uri('shuffle')}")
        for stage_id in range(len(result.stages)):
            _files(result, stage_id)
        click.echo()
        click.echo(_summary(result, seconds))
    discard_log()


def _query_text() -> str:
    return (Path(stagecoach.__path__[0]) / "example" / "queries" / f"{QUERY}.sql").read_text(
        encoding="utf-8"
    )


def _prepare_data() -> None:
    if tpch.has_tables(tpch.DATA_FOLDER):
        click.echo(f"TPC-H data: {tpch.DATA_FOLDER} (already there)")
        return
    click.echo(f"Generating TPC-H data at scale factor {SCALE_FACTOR} in {tpch.DATA_FOLDER} …")
    started = time.perf_counter()
    tpch.generate(tpch.DATA_FOLDER, SCALE_FACTOR)
    size = sum(path.stat().st_size for path in tpch.DATA_FOLDER.rglob("*.parquet"))
    click.echo(f"{format_bytes(size)} in {time.perf_counter() - started:.1f} s")


def _heading(text: str) -> None:
    click.echo()
    click.secho(f"── {text} ", bold=True, nl=False)
    click.echo("─" * max(72 - len(text), 4))


def _rows(result: Result) -> None:
    from stagecoach.terminal.output import render_rows
    from stagecoach.terminal.text_tables import terminal_width

    lines = render_rows(
        result.schema,
        result.batches(),
        "table",
        num_rows=result.num_rows,
        width=terminal_width(),
    )
    for line in lines:
        click.echo(line)


def _files(result: Result, stage_id: int) -> None:
    """The map files, the index and the manifest of a stage."""
    from stagecoach.infra.storage import layout

    stage = result.graph.stages[stage_id]
    manifest = result.manifest(stage_id)
    output = f"{stage.output.kind}, {manifest.num_partitions} partition"
    output += "" if manifest.num_partitions == 1 else "s"
    click.echo()
    click.secho(f"stage {stage_id}: {stage.title}", bold=True, nl=False)
    click.echo(f"  ({output}, {manifest.num_rows:,} rows, {format_bytes(manifest.num_bytes)})")
    click.echo(f"  {layout.shuffle_prefix(manifest.fingerprint)}/")
    files = [(f.name, f.num_bytes, f"{f.num_rows:,} rows") for f in manifest.files]
    files.append((manifest.index_name, manifest.index_bytes, "where each partition lies"))
    size = result.store.size(layout.manifest(manifest.fingerprint))
    files.append(("manifest.json", size, "the commit"))
    width = max(len(name) for name, _, _ in files)
    for name, num_bytes, note in files:
        click.echo(f"    {name:<{width}}  {format_bytes(num_bytes):>8}  {note}")
    if manifest.num_partitions > 1:
        rows = ", ".join(f"{count:,}" for count in manifest.partition_rows)
        click.echo(f"    rows by partition: {rows}")


def _summary(result: Result, seconds: float) -> str:
    reused = sum(1 for stage in result.stages if stage.reused)
    count = len(result.stages)
    if reused == count:
        return f"All {count} stages were reused; nothing was computed. {seconds:.2f} s."
    if reused:
        return f"{count} stages in {seconds:.2f} s, {reused} of them reused."
    return f"{count} stages in {seconds:.2f} s. Run it again: every stage will be reused."
