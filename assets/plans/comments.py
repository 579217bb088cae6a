"""Comments of columns on their way from base tables to the tables that queries make.

A column of a result that comes from a single column of the same name and type has its comment.
"""

from collections.abc import Callable, Mapping

from stagecoach.assets.plans.planned import PlannedQuery
from stagecoach.assets.plans.shown import ShownPlan
from stagecoach.planner.lineage.model import TableColumn
from stagecoach.planner.types import Field

Comments = Mapping[str, str]
"""Comments of a table's columns, by name."""
_MOST_SOURCES = 4


def result_comments(planned: PlannedQuery, comments_of: Callable[[str], Comments]) -> Comments:
    """Return the comments of the columns of a query's result.

    Args:
        planned: The query; what is shown of its plan is made if one of its tables has comments.
        comments_of: Gives the comments of a table's columns.
    """
    graph = planned.graph
    known: dict[tuple[str, str], tuple[Field, str]] = {}
    for name, columns in graph.tables:
        texts = comments_of(name)
        for column in columns if texts else ():
            if text := texts.get(column.name):
                known[name, column.name] = column, text
    if not known:
        return {}
    plan, head = planned.shown, graph.head.stage_id
    found: dict[str, str] = {}
    for position, field in enumerate(graph.result):
        source = _only_source(plan, head, position)
        if source is None or (source.table, source.column) not in known:
            continue
        column, text = known[source.table, source.column]
        if _is_same(column, field):
            found[field.name] = text
    return found


def shown_comments(planned: PlannedQuery) -> Comments:
    """Return what Dagster shows of the result's columns.

    That is the comment, or where the values come from. Only comments are kept with a table.
    """
    columns = planned.shown.base_columns or ()
    found: dict[str, str] = {}
    for field, column in zip(planned.graph.result, columns, strict=False):  # none of a whole query
        names = [str(source) for source in column.sources]
        if names:
            more = ", …" if len(names) > _MOST_SOURCES else ""
            found[field.name] = f"from {', '.join(names[:_MOST_SOURCES])}{more}"
    return {**found, **planned.comments}


def _is_same(column: Field, field: Field) -> bool:
    return column.name.lower() == field.name.lower() and column.dtype == field.dtype


def _only_source(plan: ShownPlan, stage_id: int, position: int) -> TableColumn | None:
    """The column of a table that alone gives a column of a stage its values, or None."""
    while True:
        columns = plan.stage(stage_id).columns
        if columns is None or len(columns[position].sources) != 1:
            return None
        (source,) = columns[position].sources
        if isinstance(source, TableColumn):
            return source
        stage_id, position = source.stage_id, source.position
