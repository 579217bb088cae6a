"""Checks of folders of runs, of plans that queries keep, and of Spark's analyses of plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from stagecoach.infra.formats.snapshot import READABLE_VERSIONS, Snapshot
from stagecoach.infra.integrity.findings import Check, Outcome, StoredDamage
from stagecoach.infra.integrity.objects import ForeignVersionError, check_text
from stagecoach.infra.runtime.records.hints import parse_hint
from stagecoach.infra.runtime.records.parameters import parse_clock
from stagecoach.infra.runtime.records.pointers import parse_pointer
from stagecoach.infra.runtime.records.run_marks import BEGUN, ENDED
from stagecoach.infra.runtime.records.run_plan import parse_run_plan
from stagecoach.infra.runtime.stages.schema_check import parse_analysis
from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import CatalogError, GraphFormatError
from stagecoach.planner.plan import serde

SNAPSHOTS = "snapshots of runs"
POINTERS = "pointers of runs"
CLOCKS = "clocks of runs"
MARKS = "marks of runs"
LOGS = "logs and pages of runs"
PLANS = "plans"
RUN_PLANS = "plans of runs"
ANALYSES = "analyses of plans"
HINTS = "hints at commits"

_NEW_RUN = "a re-execution of the run fails: start a new run"
_PINNED_ANEW = "nothing is lost: a re-execution of the run finds the output by its fingerprint"
_PLANNED_ANEW = "nothing is lost: the query is planned again when it is needed"
_ANALYSED_ANEW = "nothing is lost: Spark analyses the query again when it is needed"
_COMPUTED_WHOLE = "nothing is lost: the next run computes the stage whole"
_NOT_REPLAYED = "the run's result stays; `stagecoach replay` cannot show how it came to be"
_ONLY_TOLD = "no run reads it; remove it, or leave it to `stagecoach gc`"


def run_checks(store: ObjectStore) -> Iterator[Check]:
    """Yield the checks of folders of runs."""
    for key in store.list(layout.RUNS_ROOT):
        parts = key.split("/")
        if len(parts) < 3 or parts[-1].startswith(".tmp-") or ".tmp-" in parts[-1]:
            continue
        owner, rest = f"run {parts[1]}", parts[2:]
        if rest == ["snapshot.json"]:
            yield _check(store, key, SNAPSHOTS, owner, _NEW_RUN, _parse_snapshot)
        elif rest[0] == "stages" and key.endswith(".json"):
            yield _check(store, key, POINTERS, owner, _PINNED_ANEW, parse_pointer)
        elif rest[0] == "plans":
            yield _check(store, key, RUN_PLANS, owner, _NOT_REPLAYED, _parse_run_plan)
        elif rest == ["clock.txt"]:
            yield _check(store, key, CLOCKS, owner, _NEW_RUN, parse_clock, _has_two_lines)
        elif rest[0] in (BEGUN, ENDED):
            # Their names tell all but whose process it is, without which gc waits for a day.
            yield _check(store, key, MARKS, owner, _ONLY_TOLD, _parse_mark, _always)
        else:
            yield _check(store, key, LOGS, owner, _ONLY_TOLD, lambda _: None, _never)


def plan_checks(store: ObjectStore) -> Iterator[Check]:
    """Yield the checks of plans that queries keep."""
    for key in store.list(layout.PLANS_ROOT):
        if key.endswith(".json"):
            owner = f"query {key.split('/')[1]}"
            yield _check(store, key, PLANS, owner, _PLANNED_ANEW, _parse_plan, _plan_is_sealed)


def analysis_checks(store: ObjectStore) -> Iterator[Check]:
    """Yield the checks of Spark's analyses of plans."""
    for key in store.list(layout.ANALYSIS_ROOT):
        if key.endswith(".json"):
            yield _check(store, key, ANALYSES, "", _ANALYSED_ANEW, parse_analysis)


def hint_checks(store: ObjectStore) -> Iterator[Check]:
    """Yield the checks of hints at the newest commits of incremental stages."""
    for key in store.list(layout.HINTS_ROOT):
        if key.endswith(".json"):
            yield _check(store, key, HINTS, "", _COMPUTED_WHOLE, parse_hint)


def _check(
    store: ObjectStore,
    key: str,
    kind: str,
    owner: str,
    remedy: str,
    parse: Callable[[bytes], object],
    is_sealed: Callable[[bytes], bool] = checked_json.is_sealed,
) -> Check:
    known = StoredDamage(uri=store.uri(key), problem="", remedy=remedy, owner=owner)

    def run() -> Outcome:
        return check_text(store, key, known, parse, is_sealed)

    return Check(
        kind=kind,
        known=known,
        run=run,
        is_needed=lambda missing: not missing and store.exists(key),
    )


def _parse_snapshot(text: bytes) -> None:
    version = checked_json.load(text)["format_version"]
    if version not in READABLE_VERSIONS:
        raise ForeignVersionError
    try:
        Snapshot.from_json(text)
    except CatalogError as error:
        raise ValueError(str(error.__cause__ or error)) from error


def _parse_run_plan(text: bytes) -> None:
    try:
        parse_run_plan(text)
    except GraphFormatError as error:
        raise ValueError(str(error)) from error


def _parse_plan(text: bytes) -> None:
    decoded = text.decode()
    try:
        serde.check_seal(decoded)
        if json.loads(decoded)["format_version"] not in serde.READABLE_VERSIONS:
            raise ForeignVersionError
        serde.load_graph(decoded)
    except GraphFormatError as error:
        raise ValueError(str(error)) from error


def _plan_is_sealed(text: bytes) -> bool:
    return serde.is_sealed(text.decode(errors="replace"))


def _parse_mark(text: bytes) -> None:
    if text:
        json.loads(text)


def _has_two_lines(text: bytes) -> bool:
    return b"\n" in text


def _always(_: bytes) -> bool:
    return True


def _never(_: bytes) -> bool:
    return False
