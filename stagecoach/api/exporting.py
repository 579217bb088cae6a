"""Writes the rows of a result as a table, which is described as `output` is in front matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.planner.errors import OptionError

if TYPE_CHECKING:
    from stagecoach.assets.project.front_matter import Output
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.shuffle.manifest import Manifest
    from stagecoach.infra.storage.object_store import ObjectStore
    from stagecoach.planner.types import Field


@dataclass(frozen=True)
class WrittenTable:
    """What writing a table came to.

    Args:
        table: Its name.
        version: The version or snapshot that holds the rows.
        num_rows: Rows of the result.
        reused: Whether the table had this result already, so that nothing was written.
    """

    table: str
    version: int
    num_rows: int
    reused: bool


def read_output(values: Mapping[str, Any]) -> Output:
    """Return an output whose keys are those of front matter.

    Raises:
        OptionError: A key is unknown, or its value is not valid; all mistakes are told.
    """
    from pydantic import ValidationError

    from stagecoach.assets.project.front_matter import FrontMatter
    from stagecoach.assets.project.front_matter.messages import found_problems

    try:
        return FrontMatter.model_validate({"output": dict(values)}).output
    except ValidationError as error:
        found = "; ".join(message for _, message, _ in found_problems(error, FrontMatter))
        raise OptionError(f"the output is not valid: {found}") from error


def write_table(
    output: Output,
    manifest: Manifest,
    columns: tuple[Field, ...],
    *,
    query: str,
    run_id: str,
    store: ObjectStore,
    settings: EngineSettings,
) -> WrittenTable:
    """Publish a result.

    Args:
        output: The table.
        manifest: The committed output of the head stage.
        columns: The result's columns.
        query: Name of the query, which is that of the table by default.
        run_id: The run.
        store: The storage root.
        settings: Of the run; a large result is written by Spark.

    Raises:
        PublishError: The columns, the rows or the table do not fit the output.
        StagecoachError: The rows are lost, or they could not be written.
    """
    from stagecoach.assets.execution.publishing import publish_target
    from stagecoach.assets.project.front_matter import FrontMatter
    from stagecoach.assets.project.queries import Query
    from stagecoach.infra.publishing.check import check_publishable
    from stagecoach.infra.publishing.publish import publish
    from stagecoach.infra.spark.session import get_session

    check_publishable(
        columns,
        output.partition_by,
        output.format_name,
        output.key or (),
        output.delete_column,
    )
    made = Query(name=query, sql="", front_matter=FrontMatter(output=output))
    published = publish(
        manifest,
        columns,
        publish_target(made, None),
        store=store,
        settings=settings,
        spark=lambda: get_session(settings),
        run_id=run_id,
    )
    return WrittenTable(
        made.table, published.version.number, published.num_rows, reused=published.reused
    )
