"""The events of a run of this process: JSON lines in `runs/<run_id>/events.jsonl` of the store."""

import datetime
import json
import logging
from collections.abc import Iterable, Mapping

from stagecoach.assets.project.names import name_problem
from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage.layout import run_prefix
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.stages import StageGraph

logger = logging.getLogger(__name__)

EVENTS_FILE = "events.jsonl"
AD_HOC_NAME = "query"


def save_events(store: ObjectStore, run_id: str, events: Iterable[Mapping[str, object]]) -> None:
    """Keep the events of a run; a store that refuses them changes nothing about the run."""
    lines = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
    key = f"{run_prefix(run_id)}/{EVENTS_FILE}"
    try:
        store.write_bytes(key, lines.encode())
    except StorageError:
        # The run has ended; its events are for people and must not change how it ended.
        logger.warning("run %s: its events could not be kept", run_id, exc_info=True)


def asset_name(graph: StageGraph) -> str:
    """The name that the assets of a query have in its run.

    Those of a query of the project keep their keys, so that its history is one.
    """
    return graph.query if name_problem(graph.query) is None else AD_HOC_NAME


def moment_text(seconds: float) -> str:
    """The time of an event, given in seconds since 1970."""
    moment = datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC)
    return moment.isoformat(timespec="milliseconds")
