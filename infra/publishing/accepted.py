"""Which results somebody has published by hand although they failed their checks.

    accepted/<table>/<fingerprint>.json

The run that is re-executed then finds its result published, and does not fail by the same checks.
"""

from __future__ import annotations

from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.object_store import ObjectStore

_ROOT = "accepted"


def accept(store: ObjectStore, table: str, fingerprint: str, moment: str) -> None:
    """Write down that a result is to be published whatever its checks say.

    Args:
        store: The storage root.
        table: Name of the table.
        fingerprint: Identity of the rows.
        moment: Now, ISO 8601 in UTC.
    """
    store.write_bytes(_key(table, fingerprint), checked_json.dump({"accepted_at": moment}))


def is_accepted(store: ObjectStore, table: str, fingerprint: str) -> bool:
    """Return whether a result was published by hand."""
    return store.exists(_key(table, fingerprint))


def _key(table: str, fingerprint: str) -> str:
    name = layout.check_component("fingerprint", fingerprint)
    return f"{_ROOT}/{layout.check_component('table', table)}/{name}.json"
