"""The page of a Dagster run of a query: stages, timeline, estimates against actuals, lineage.

It is written to `runs/<run>/page.html` of the storage when the head stage has ended or a stage has
failed, in whatever process, and the metadata of that stage links it.

    Dagster's events of this run ─▶ when each stage ended, what it told of itself ─┐
    the storage's pointers       ─▶ the stages that an earlier run made           ─┼▶ page.html
    manifests                    ─▶ tasks, rows, bytes                            ─┘

A browser opens no `file://` link of a page that it got by HTTP. `stagecoach ui` serves the pages of
the storage and tells runs where (`STAGECOACH_PAGES`). Without it a copy is put beside the logs of
steps, where Dagster keeps these on local disk: its webserver offers them as downloads.
"""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import dagster as dg

from stagecoach.assets.execution.engine import StageRequest
from stagecoach.assets.execution.stage_places import StagePlaces
from stagecoach.assets.report.metadata import NAMESPACE, StageMetadata
from stagecoach.infra.config.settings import PAGES_VARIABLE
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.stages import StageGraph

logger = logging.getLogger(__name__)

_READERS = 8
_EXTENSION = "html"

PageMetadata = Mapping[str, dg.MetadataValue[Any]]


@runtime_checkable
class HasStore(Protocol):
    """A `StageRunner` that tells where the outputs of its stages are."""

    def store(self) -> ObjectStore:
        """The storage root."""
        ...


def write_run_page(
    context: dg.AssetExecutionContext,
    store: ObjectStore,
    request: StageRequest,
    places: StagePlaces[Any],
    ended: StageMetadata | str,
) -> PageMetadata:
    """Write the page of a run; what is to be said of it, nothing where it could not be written.

    Args:
        context: Of a step: that of the head stage, or one that failed.
        store: Where the outputs of its stages are.
        request: What the step was asked to do.
        places: Where the stages of the query are in Dagster.
        ended: What the stage told, or why it failed.
    """
    from stagecoach.assets.report.analysis import analyze_result
    from stagecoach.assets.report.page import analysis_page
    from stagecoach.infra.storage import layout

    try:
        now = time.time()
        stages, spans = _stages(context.instance, store, request, places)
        told = None if isinstance(ended, str) else ended
        problems = {request.stage_id: ended} if isinstance(ended, str) else {}
        stages[request.stage_id] = told
        spans[request.stage_id] = (now - (told.seconds or 0.0 if told else 0.0), now)
        started_at = _started_at(context, request, spans)
        run = _Run(request.graph, request.run_id, tuple(stages), _manifests(store, stages))
        analysis = analyze_result(run, spans, started_at, now - started_at, problems)
        moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(started_at))
        page = analysis_page(analysis, moment).encode()
        key = layout.run_page(request.run_id)
        store.write_bytes(key, page)
        address = os.environ.get(PAGES_VARIABLE)
        if address:
            link: str | None = f"{address}/runs/{request.run_id}"
        else:
            link = _offered_copy(context, request.graph.query, page)
        return _links(store, key, link)
    except Exception:
        # The stage is committed; a page about it must not make it fail, whatever its sources raise:
        # Dagster's databases, the storage, the local disk, numbers that another version has told.
        logger.warning("run %s: its page could not be written", request.run_id, exc_info=True)
        return {}


@dataclass(frozen=True)
class _Run:
    """A `FinishedRun`, see `stagecoach.assets.report.analysis`."""

    graph: StageGraph
    run_id: str
    stages: Sequence[StageMetadata | None]
    manifests: Sequence[Any]

    @property
    def num_rows(self) -> int:
        head = self.manifests[-1]
        return 0 if head is None else int(head.num_rows)

    def manifest(self, stage_id: int) -> Any:
        return self.manifests[stage_id]


def _stages(
    instance: dg.DagsterInstance,
    store: ObjectStore,
    request: StageRequest,
    places: StagePlaces[Any],
) -> tuple[list[StageMetadata | None], dict[int, tuple[float, float]]]:
    """What each stage told of itself, and when those that this run has run began and ended."""
    dagster_run_id = request.run_id.partition(".")[0]
    found: list[StageMetadata | None] = []
    spans: dict[int, tuple[float, float]] = {}
    for stage in request.graph.stages:
        event = None
        if stage.stage_id not in (request.stage_id, *request.outside):
            event = places.reported(instance, dagster_run_id, stage.stage_id)
        if event is None:
            found.append(_made_before(store, request, stage.stage_id))
            continue
        ended_at, metadata = event
        found.append(metadata)
        spans[stage.stage_id] = (ended_at - (metadata.seconds or 0.0), ended_at)
    return found, spans


def _made_before(store: ObjectStore, request: StageRequest, stage_id: int) -> StageMetadata | None:
    """What is known of a stage that an earlier run has made; None if none has."""
    from stagecoach.infra.runtime.records.pointers import read_pointer

    for root in (request.root_run_id, *(run.root_run_id for run in request.earlier)):
        pointer = read_pointer(store, root, stage_id)
        if pointer is not None:
            return StageMetadata(
                reused=True,
                fingerprint=pointer.fingerprint,
                engine=pointer.engine or None,
                fallback_reason=pointer.fallback_reason,
                deferred=pointer.deferred,
            )
    return None


def _manifests(store: ObjectStore, stages: Sequence[StageMetadata | None]) -> Sequence[Any]:
    """The commit of each stage, as far as it is there."""
    from stagecoach.infra.shuffle.commit import load_manifest

    def load(stage: StageMetadata | None) -> object:
        if stage is None or stage.fingerprint is None or stage.deferred is not None:
            return None
        return load_manifest(store, stage.fingerprint)

    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(load, stages))


def _started_at(
    context: dg.AssetExecutionContext,
    request: StageRequest,
    spans: Mapping[int, tuple[float, float]],
) -> float:
    first = min(start for start, _ in spans.values())
    if request.run_id != context.run.run_id:
        return first  # a run of several queries began long before the stages of this one
    record = context.instance.get_run_record_by_id(context.run.run_id)
    started = None if record is None else record.start_time
    return first if started is None else min(started, first)


def _offered_copy(context: dg.AssetExecutionContext, query: str, page: bytes) -> str | None:
    """The path of the page on Dagster's webserver, which offers what lies beside logs of steps."""
    local_path = getattr(context.instance.compute_log_manager, "get_captured_local_path", None)
    if local_path is None:  # the logs are not on local disk
        return None
    log_key = [context.run.run_id, "compute_logs", f"page_{query}"]
    path = Path(local_path(log_key, _EXTENSION))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(page)
    return "/".join(["/logs", *log_key, _EXTENSION])


def _links(store: ObjectStore, key: str, link: str | None) -> PageMetadata:
    uri = store.uri(key)
    where = dg.MetadataValue.path(uri) if store.is_local else dg.MetadataValue.text(uri)
    if link is None:
        return {f"{NAMESPACE}/page": where}
    return {f"{NAMESPACE}/page": dg.MetadataValue.url(link), f"{NAMESPACE}/page_file": where}
