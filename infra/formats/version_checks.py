"""Checks of logs of versions: the texts of versions, and the hint which one is the newest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from stagecoach.infra.formats.version_json import TableVersionError, UnknownFormatError
from stagecoach.infra.formats.version_log import V, VersionLog
from stagecoach.infra.integrity.findings import Check, Outcome, StoredDamage
from stagecoach.infra.integrity.objects import check_text
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectMissingError

HINTS = "hints which version is the newest"


def stored_versions(log: VersionLog[V]) -> Iterator[tuple[int, V | None]]:
    """Yield the versions that are kept, the newest first; None for one that cannot be read."""
    for number in reversed(log.numbers()):
        try:
            yield number, log.version(number)
        except ObjectMissingError:
            continue  # gc has removed it just now
        except TableVersionError:
            yield number, None


def version_check(log: VersionLog[V], number: int, kind: str, *, is_newest: bool) -> Check:
    """Return the check of the text of a version."""
    key = layout.log_version(log.folder, number)
    remedy = (
        "restore it from a copy, or remove it to go back to the version before it"
        if is_newest
        else "only readers of that version need it: restore it from a copy, or leave it to "
        "`stagecoach gc`"
    )
    known = StoredDamage(
        uri=log.store.uri(key), problem="", remedy=remedy, table=log.table, version=number
    )

    def run() -> Outcome:
        try:
            size = log.store.size(key)
            log.version(number)
        except UnknownFormatError:
            return Outcome(num_bytes=size, has_checksums=False, is_foreign=True)
        except TableVersionError as error:
            return Outcome(damages=[_with_problem(known, error)])
        return Outcome(num_bytes=size)

    return Check(
        kind=kind,
        known=known,
        run=run,
        is_needed=lambda missing: not missing and log.store.exists(key),
    )


def _with_problem(known: StoredDamage, error: TableVersionError) -> StoredDamage:
    cause = error.__cause__
    return replace(known, problem=f"it is damaged ({cause if cause is not None else error})")


def hint_check(log: VersionLog[V], kind: str = HINTS) -> Check:
    """Return the check of `current.json`, which readers can do without."""
    key = layout.log_current(log.folder)
    known = StoredDamage(
        uri=log.store.uri(key),
        problem="",
        remedy="nothing is lost: readers list the versions, and the next commit writes it again",
        table=log.table,
    )

    def parse(text: bytes) -> None:
        number = json.loads(text)["version"]
        if not isinstance(number, int) or number < 1:
            raise ValueError(f"{number!r} is not the number of a version")
        # Listed only for a hint that looks wrong: a version may have been committed meanwhile.
        if not log.store.exists(layout.log_version(log.folder, number)):
            kept = log.numbers()
            if not kept or number > kept[-1]:
                raise ValueError(f"it names version {number}, which is not there")

    def run() -> Outcome:
        return check_text(log.store, key, known, parse, is_sealed=lambda _: True)

    return Check(
        kind=kind,
        known=known,
        run=run,
        is_needed=lambda missing: not missing and log.store.exists(key),
    )
