"""Running checks of stored objects: several at a time, a bounded number of them in memory."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from stagecoach.infra.errors import StorageError
from stagecoach.infra.formats import names
from stagecoach.infra.formats.capabilities import Verifies
from stagecoach.infra.integrity.findings import Check, Outcome, StoredDamage
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore
from stagecoach.infra.upkeep.verify.outputs import output_checks
from stagecoach.infra.upkeep.verify.run_files import (
    analysis_checks,
    hint_checks,
    plan_checks,
    run_checks,
)
from stagecoach.infra.upkeep.verify.stored import verified_tables
from stagecoach.planner.errors import CatalogError

LOCAL_THREADS = 4
REMOTE_THREADS = 16
_WAITING = 4
"""Checks that wait for each thread."""


@dataclass(frozen=True, kw_only=True)
class VerifyProgress:
    """How far a verification is.

    Attributes:
        objects: Objects that were checked.
        num_bytes: Their size.
        known_objects: Objects that have been found so far, those that were checked among them.
        known_bytes: Their size.
        damaged: Damages that were found.
    """

    objects: int = 0
    num_bytes: int = 0
    known_objects: int = 0
    known_bytes: int = 0
    damaged: int = 0


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        damages: Everything that is damaged.
        checked: Objects that were checked, by kind.
        num_bytes: Their size.
        unchecked: Objects without checksums, by kind: only part of damage to them is found.
        unchecked_tables: Files of tables without checksums, by table; adoption gives them some.
        foreign: Objects that another version of Stagecoach wrote, by kind.
    """

    damages: tuple[StoredDamage, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict)
    num_bytes: int = 0
    unchecked: Mapping[str, int] = field(default_factory=dict)
    unchecked_tables: Mapping[str, int] = field(default_factory=dict)
    foreign: Mapping[str, int] = field(default_factory=dict)

    @property
    def num_objects(self) -> int:
        """Objects that were checked."""
        return sum(self.checked.values())


def verify_storage(
    store: ObjectStore,
    tables: Sequence[Verifies] = (),
    *,
    table: str | None = None,
    threads: int | None = None,
    progress: Callable[[VerifyProgress], None] = lambda _: None,
) -> VerifyReport:
    """Check everything in a storage root and in tables that are elsewhere.

    Files that gc or a run removes meanwhile are not reported.

    Args:
        store: The storage root.
        tables: Tables that are elsewhere.
        table: Name of the only table to check; None for everything.
        threads: How many objects are checked at a time; by default, as fits the store.
        progress: Told after each object.

    Raises:
        CatalogError: There is no such table.
        StorageError: The store failed.
    """
    if table is not None:
        _check_name(store, tables, table)
    checks = _table_checks(store, tables, table)
    if table is None:
        rest = (
            run_checks(store),
            plan_checks(store),
            analysis_checks(store),
            hint_checks(store),
            output_checks(store),
        )
        checks = itertools.chain(checks, *rest)
    are_local = store.is_local and all(item.is_local for item in tables)
    count = threads or (LOCAL_THREADS if are_local else REMOTE_THREADS)
    return _Verification(progress).run(checks, count)


def _table_checks(
    store: ObjectStore, tables: Sequence[Verifies], table: str | None
) -> Iterator[Check]:
    for item in itertools.chain(verified_tables(store), tables):
        if table is None or item.name.lower() == table.lower():
            yield from item.checks()


def _check_name(store: ObjectStore, tables: Sequence[Verifies], table: str) -> None:
    known = [item.name for item in itertools.chain(verified_tables(store), tables)]
    if not any(name.lower() == table.lower() for name in known):
        kinds = " or ".join((*names.MADE.names, *names.BY_KIND.names))
        raise CatalogError(
            f"there is no table '{table}' ({kinds}); there are: "
            f"{', '.join(sorted(known)) or 'none'}"
        )


class _Verification:
    """One run over all checks; only the calling thread touches what is counted."""

    def __init__(self, progress: Callable[[VerifyProgress], None]) -> None:
        self._progress = progress
        self._told = VerifyProgress()
        self._damages: list[StoredDamage] = []
        self._checked: Counter[str] = Counter()
        self._unchecked: Counter[str] = Counter()
        self._tables: Counter[str] = Counter()
        self._foreign: Counter[str] = Counter()

    def run(self, checks: Iterator[Check], threads: int) -> VerifyReport:
        found: deque[Check] = deque()
        running: dict[Future[Outcome | None], Check] = {}
        pool = ThreadPoolExecutor(threads, thread_name_prefix="verify")
        try:
            while True:
                while len(running) < threads * _WAITING:
                    check = found.popleft() if found else next(checks, None)
                    if check is None:
                        break
                    self._told = replace(
                        self._told,
                        known_objects=self._told.known_objects + 1,
                        known_bytes=self._told.known_bytes + check.num_bytes,
                    )
                    running[pool.submit(_outcome, check)] = check
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    check, outcome = running.pop(future), future.result()
                    if outcome is not None:
                        found.extend(outcome.more)
                        self._add(check, outcome)
        finally:
            pool.shutdown(cancel_futures=True)
        return VerifyReport(
            damages=tuple(self._damages),
            checked=dict(self._checked),
            num_bytes=self._told.num_bytes,
            unchecked=dict(self._unchecked),
            unchecked_tables=dict(self._tables),
            foreign=dict(self._foreign),
        )

    def _add(self, check: Check, outcome: Outcome) -> None:
        self._checked[check.kind] += 1
        self._damages += outcome.damages
        if outcome.is_foreign:
            self._foreign[check.kind] += 1
        elif not outcome.has_checksums:
            self._unchecked[check.kind] += 1
            if check.known.table:
                self._tables[check.known.table] += 1
        self._told = replace(
            self._told,
            objects=self._told.objects + 1,
            num_bytes=self._told.num_bytes + outcome.num_bytes,
            known_bytes=self._told.known_bytes + outcome.num_bytes - check.num_bytes,
            damaged=len(self._damages),
        )
        self._progress(self._told)


def _outcome(check: Check) -> Outcome | None:
    """What a check came to; None for an object that was removed meanwhile."""
    try:
        outcome = check.run()
    except ObjectMissingError:
        if not check.is_needed(True):
            return None
        missing = replace(check.known, problem="it is missing", is_missing=True)
        return Outcome(damages=[missing])
    except StorageError as error:
        if not _is_of_one_object(check, error):
            raise
        return Outcome(damages=[replace(check.known, problem=str(error))])
    if outcome.damages and not check.is_needed(any(d.is_missing for d in outcome.damages)):
        return None
    return outcome


def _is_of_one_object(check: Check, error: StorageError) -> bool:
    """Whether a device cannot read this object, and the store as such works."""
    return "://" not in check.known.uri and error.__cause__ is not None
