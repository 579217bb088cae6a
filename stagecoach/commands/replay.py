"""`stagecoach replay`: runs the stages of an earlier run again, over exactly what they read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stagecoach.arguments.options import (
    catalog_option,
    debug_option,
    read_settings,
    remote_option,
    storage_option,
)
from stagecoach.arguments.project_files import project_option
from stagecoach.terminal.errors import EXIT_FAILED
from stagecoach.terminal.streams import configure_logging, discard_log, divert_noise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from stagecoach.assets.project.queries import Query
    from stagecoach.assets.replay.stages import StageReplay
    from stagecoach.infra.replay.recorded_run import RecordedRun
    from stagecoach.infra.replay.row_tracing import TracedStage
    from stagecoach.infra.replay.stage_rows import StageRows
    from stagecoach.planner.plan.stages import Stage
    from stagecoach.planner.types import Field


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--stage",
    "stages",
    metavar="N",
    type=int,
    multiple=True,
    help="Replay only this stage; may be repeated.  [default: all]",
)
@click.option(
    "--where",
    metavar="PREDICATE",
    help="Trace the rows of the result for which this SQL predicate over its columns is true.",
)
@click.option(
    "--check",
    metavar="NAME",
    help="Trace the rows of the result that fail this check of the query.",
)
@click.option(
    "--rows",
    "shown",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Most rows that are shown of each input.",
)
@click.option("--no-spark", is_flag=True, help="Do not start Spark: replay on DuckDB alone.")
@click.option(
    "--max-bytes",
    metavar="BYTES",
    type=click.IntRange(min=1),
    default=1 << 30,
    show_default=True,
    help="Most bytes of rows that are held in memory for a stage; a larger one is not compared.",
)
@project_option
@catalog_option
@storage_option
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--master", metavar="MASTER", help="Spark master of this process.")
@remote_option
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set engine.NAME or a Spark setting spark.…; may be repeated.",
)
@debug_option
def replay(
    *,
    run_id: str,
    stages: tuple[int, ...],
    where: str | None,
    check: str | None,
    shown: int,
    no_spark: bool,
    max_bytes: int,
    project: Path,
    catalog: str,
    storage: str | None,
    as_json: bool,
    master: str | None,
    remote: str | None,
    assignments: tuple[str, ...],
    debug: bool,
) -> None:
    """Run the stages of an earlier run again, each over exactly what it read then.

    RUN is the id of a run as Dagster and `runs/` in the storage show it, or its first characters.
    A published TABLE is the run that made its newest version, TABLE@staged the one whose result
    waits after failed checks.
    Each stage runs in this process and on Spark over the committed outputs and the files of the
    run's snapshot. Its rows are compared with those of the run, and the first stage in which
    DuckDB and Spark differ is named. Nothing is written. The exit code is 1 if rows differ, or if
    a stage cannot be replayed.

    With --where or --check, chosen rows of the result are traced back: for each stage, the rows of
    its inputs that contribute to them are shown.
    """
    from stagecoach.api.replaying import open_recorded_run, spark_of
    from stagecoach.assets.replay.stages import StageReplayer
    from stagecoach.infra.replay.stage_rows import StageRows
    from stagecoach.terminal.replay_text import run_lines, stage_lines, summary_lines

    if where is not None and check is not None:
        raise click.UsageError("--where and --check choose the same rows; leave one of them out")
    configure_logging(debug=debug)
    if not no_spark and not debug:
        divert_noise()
    settings = read_settings(assignments, master=master, remote=remote)
    run = open_recorded_run(run_id, storage, settings.engine, catalog)
    chosen = _stages(run, stages)
    session = None if no_spark else spark_of(run)
    replayer = StageReplayer(rows=StageRows(run=run, max_bytes=max_bytes), session=session)
    choice = None  # before anything is computed: a mistake in it is told at once
    if where is not None or check is not None:
        choice = _choose(replayer.rows, where, check, project, catalog)
    if not as_json:
        for line in run_lines(run):
            click.echo(line)
    replays: list[StageReplay] = []
    for replayed in replayer.replay(chosen):
        replays.append(replayed)
        for line in [] if as_json else stage_lines(replayed, run.graph.time_zone):
            click.echo(line)
    if not as_json:
        for line in summary_lines(replays, asked_spark=not no_spark):
            click.echo(line)
    traced = [] if choice is None else _traced(run, choice, chosen)
    if as_json:
        found = _as_json(run, replays, choice, traced, shown)
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif choice is not None:
        for line in _trace_lines(run, choice, traced, shown):
            click.echo(line)
    discard_log()
    if any(replayed.differences or replayed.has_failed for replayed in replays):
        raise click.exceptions.Exit(EXIT_FAILED)


def _stages(run: RecordedRun, numbers: Sequence[int]) -> Sequence[Stage]:
    """The stages that are asked for, in order.

    Raises:
        click.BadParameter: There is no such stage.
    """
    known = run.graph.stages
    for number in numbers:
        if not 0 <= number < len(known):
            raise click.BadParameter(
                f"the query '{run.graph.query}' has no stage {number}; its stages are 0 to "
                f"{len(known) - 1}",
                param_hint="'--stage'",
            )
    return [stage for stage in known if not numbers or stage.stage_id in numbers]


# ---------------------------------------------------------------- tracing rows


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """Chosen rows of the result.

    Args:
        fields: Columns of the result.
        rows: The rows.
        total: Rows of the result.
        why: What they have in common.
    """

    fields: tuple[Field, ...]
    rows: pa.Table
    total: int
    why: str


def _choose(
    rows: StageRows, where: str | None, check: str | None, project: Path, catalog: str
) -> _Choice:
    """Choose rows of the result.

    Raises:
        StagecoachError: The run has no result, or the predicate or the check is wrong.
    """
    from stagecoach.assets.replay.chosen_rows import ResultRows
    from stagecoach.assets.replay.stages import stage_fields
    from stagecoach.infra.replay.recorded_run import NotReplayableError

    run = rows.run
    head = run.graph.head
    found = rows.committed(head)
    if found is None:
        name = run.stage_name(head.stage_id)
        raise NotReplayableError(f"run '{run.run_id}' has no result: {name} did not finish")
    fields = stage_fields(run, head)
    result = ResultRows(run=run, fields=fields, rows=found)
    if check is not None:
        chosen = result.failing(_query(project, catalog, run.graph.query), check)
        why = f"of check '{check}'"
    else:
        assert where is not None
        chosen, why = result.where(where), f"with {where}"
    return _Choice(fields=fields, rows=chosen, total=found.num_rows, why=why)


def _traced(run: RecordedRun, choice: _Choice, stages: Sequence[Stage]) -> Sequence[TracedStage]:
    """What contributes to chosen rows, in these stages, the head first.

    Raises:
        StagecoachError: An input is lost.
    """
    from stagecoach.infra.replay.row_tracing import trace_run

    if not choice.rows.num_rows:
        return []
    return [found for found in trace_run(run, choice.rows) if found.stage in stages]


def _query(project: Path, catalog: str, name: str) -> Query:
    """The query of that name in the project; its checks may use the macros of the catalog.

    Raises:
        click.UsageError: There is none.
    """
    from stagecoach.assets.project.queries import read_queries
    from stagecoach.infra.catalog.catalog import load_catalog

    macros = load_catalog(catalog).macros if Path(catalog).is_file() else None
    queries, _, _ = read_queries(sorted(project.rglob("*.sql")), macros)
    found = next((query for query in queries if query.name == name), None)
    if found is None:
        raise click.UsageError(
            f"there is no query '{name}' in {project}, whose check is asked for; name the folder "
            "of queries with --project, or choose rows with --where"
        )
    return found


def _trace_lines(
    run: RecordedRun, choice: _Choice, traced: Sequence[TracedStage], shown: int
) -> Iterator[str]:
    from stagecoach.terminal.replay_text import chosen_lines, trace_lines

    zone = run.graph.time_zone
    yield from chosen_lines(choice.rows, choice.fields, choice.total, choice.why, shown, zone)
    for found in traced:
        yield from trace_lines(found, shown, zone)


# ---------------------------------------------------------------- JSON


def _as_json(
    run: RecordedRun,
    replays: Sequence[StageReplay],
    choice: _Choice | None,
    traced: Sequence[TracedStage],
    shown: int,
) -> dict[str, object]:
    first = next((r.stage.stage_id for r in replays if r.engines_differ), None)
    found: dict[str, object] = {
        "run": run.run_id,
        "query": run.graph.query,
        "first_stage_where_engines_differ": first,
        "stages": [_stage_json(found) for found in replays],
    }
    if choice is not None:
        zone = run.graph.time_zone
        found["chosen"] = {
            "num_rows": choice.rows.num_rows,
            "rows": _rows_json(choice.rows, choice.fields, shown, zone),
        }
        found["traced"] = [_traced_json(stage, shown, zone) for stage in traced]
    return found


def _traced_json(found: TracedStage, shown: int, time_zone: str) -> dict[str, object]:
    from stagecoach.terminal.replay_text import leaf_columns, leaf_name

    return {
        "stage": found.stage.stage_id,
        "problem": found.problem or None,
        "inputs": [
            {
                "input": leaf_name(leaf),
                "num_rows": leaf.num_rows,
                "total_rows": leaf.total_rows,
                "by": sorted({name for names in leaf.by.values() for name in names}),
                "notes": list(leaf.notes),
                "rows": _rows_json(leaf.rows, leaf_columns(leaf), shown, time_zone),
            }
            for leaf in found.leaves
        ],
    }


def _rows_json(
    rows: pa.Table, fields: Sequence[Field], shown: int, time_zone: str
) -> list[dict[str, object]]:
    from stagecoach.terminal.output import render_rows

    named = rows.rename_columns([field.name for field in fields]).slice(0, shown)
    if not named.num_columns:
        return []
    lines = render_rows(
        named.schema, named.to_batches(), "json", columns=fields, time_zone=time_zone
    )
    return [json.loads(line) for line in lines]


def _stage_json(found: StageReplay) -> dict[str, object]:
    sides = (found.committed, found.native, found.spark)
    return {
        "stage": found.stage.stage_id,
        "title": found.stage.title,
        "sides": [
            {
                "name": side.name,
                "rows": None if side.rows is None else side.rows.num_rows,
                "seconds": round(side.seconds, 3),
                "problem": side.problem or None,
            }
            for side in sides
            if side.rows is not None or side.problem
        ],
        "compared_with_run": found.compared_with_run,
        "differences": [
            {"left": d.left, "right": d.right, "rows": len(d.difference.pairs)}
            for d in found.differences
        ],
        "notes": list(found.notes),
    }
