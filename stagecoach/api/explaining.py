"""The text of an EXPLAIN statement, and a result that holds it as a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stagecoach.api.result import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.planner.explain.describe import Plan
    from stagecoach.planner.options import PlanPhase
    from stagecoach.planner.plan.stages import StageGraph
    from stagecoach.planner.planning import PlanPhases
    from stagecoach.planner.syntax.explain_statement import ExplainMode
    from stagecoach.planner.types import Field

COLUMN = "plan"


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanResult(Result):
    """The result of an EXPLAIN statement: one row, whose column `plan` is the text.

    Args:
        text: The plan.
    """

    text: str

    @property
    def num_rows(self) -> int:
        """One."""
        return 1

    @property
    def columns(self) -> tuple[Field, ...]:
        """The column `plan`, as Spark's EXPLAIN has it."""
        from stagecoach.planner.types import STRING, Field

        return (Field(COLUMN, STRING),)

    @property
    def schema(self) -> pa.Schema:
        """The column `plan`, which is never NULL."""
        import pyarrow as pa

        return pa.schema([pa.field(COLUMN, pa.string(), nullable=False)])

    def to_batches(
        self, max_rows: int | None = None, *, memory_bytes: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the one row."""
        import pyarrow as pa

        del max_rows, memory_bytes
        yield pa.RecordBatch.from_arrays([pa.array([self.text])], schema=self.schema)

    def show(self, limit: int | None = None) -> None:
        """Print the text as it is: a plan is not a table."""
        import click

        del limit
        click.echo(self.text.rstrip("\n"))


def without_explain(sql: str) -> str:
    """The query of an EXPLAIN statement; any other text as it is.

    Raises:
        SqlError: EXPLAIN CODEGEN.
    """
    from stagecoach.planner.syntax.explain_statement import split_explain

    statement = split_explain(sql)
    return sql if statement is None else statement.sql


def phases_text(
    phases: PlanPhases,
    plan: PlanPhase | Literal["all"] = "stages",
    format: str = "text",
    *,
    details: bool = False,
) -> str:
    """The plans of one phase or of all.

    Raises:
        UnsupportedSqlError: There is no such plan, because the query is not staged.
        OptionError: The plan cannot be had in that format.
    """
    from stagecoach.planner.errors import UnsupportedSqlError
    from stagecoach.planner.explain.display import render_phases

    if plan not in ("stages", "all") and plan not in phases.plans:
        raise UnsupportedSqlError(
            f"{phases.reason}, so Spark runs the query as one stage and there is no {plan} plan; "
            "explain its stages instead"
        )
    shown: dict[str, Plan | StageGraph] = {}
    for name, found in phases.plans.items():
        if plan in (name, "all"):
            shown[name] = found
    if plan in ("stages", "all"):
        shown["stages"] = phases.graph
    return render_phases(shown, format, sizes=phases.sizes, details=details)


def statement_text(phases: PlanPhases, mode: ExplainMode) -> str:
    """What an EXPLAIN statement shows.

    `EXPLAIN` shows the stages, `FORMATTED` their SQL and engines too, `EXTENDED` the plans of all
    phases, and `COST` the optimized plan with its estimates besides the stages.
    """
    from stagecoach.planner.explain.display import render_phases

    match mode:
        case "extended":
            return phases_text(phases, "all")
        case "formatted":
            return phases_text(phases, "stages", details=True)
        case "cost" if phases.plans:
            shown: Mapping[str, Plan | StageGraph] = {
                "optimized": phases.plans["optimized"],
                "stages": phases.graph,
            }
            return render_phases(shown, sizes=phases.sizes)
    return phases_text(phases)
