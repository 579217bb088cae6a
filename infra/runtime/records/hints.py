"""Hints: the newest commit of an incremental stage, whatever files it was computed from.

`incremental/<stage key>.json` names an output and its commit. The next run of the stage looks there
for what it may take over. A hint is never relied on: it is written after the commit, the last one
counts, and where it is missing, old or damaged the stage is computed whole.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection
from dataclasses import dataclass

from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.listing import StoredObject, list_objects
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Hint:
    """A commit.

    Attributes:
        fingerprint: The output.
        manifest_hash: The commit of it.
    """

    fingerprint: str
    manifest_hash: str


def write_hint(store: ObjectStore, stage_key: str, hint: Hint) -> None:
    """Say which commit of a stage is the newest."""
    store.write_bytes(layout.hint(stage_key), checked_json.dump(vars(hint)))


def read_hint(store: ObjectStore, stage_key: str) -> Hint | None:
    """The newest commit of a stage, as far as is known."""
    key = layout.hint(stage_key)
    try:
        return parse_hint(store.read_bytes(key))
    except ObjectMissingError:
        return None
    except (ValueError, TypeError) as error:
        log.warning("the hint %s is damaged (%s), so it counts as none", store.uri(key), error)
        return None


def parse_hint(text: bytes) -> Hint:
    """Return the hint with this text.

    Raises:
        ValueError, TypeError: The text is damaged.
    """
    return Hint(**checked_json.load(text))


def old_hints(
    store: ObjectStore, kept: Collection[str], limit: datetime.datetime
) -> list[StoredObject]:
    """Return the hints at outputs that are not kept, written before the limit.

    Raises:
        StorageError: The store failed.
    """
    found: list[StoredObject] = []
    for item in list_objects(store, layout.HINTS_ROOT):
        if item.modified >= limit:
            continue
        try:
            hint = parse_hint(store.read_bytes(item.key))
        except ObjectMissingError:
            continue
        except (ValueError, TypeError):
            hint = None
        if hint is None or hint.fingerprint not in kept:
            found.append(item)
    return found
