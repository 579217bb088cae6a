"""What gc of tables of any format goes by: what runs read, and how long readers need a version."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping

from stagecoach.infra.errors import StorageError
from stagecoach.infra.storage import checked_json
from stagecoach.infra.storage.object_store import ObjectMissingError, ObjectStore

READER_GRACE = datetime.timedelta(hours=1)
"""How long a version stays after another has followed it."""


def snapshot_uris(store: ObjectStore, key: str) -> set[str]:
    """The URIs of all table files in a run's snapshot.

    Raises:
        StorageError: The snapshot is damaged, so what the run reads is not known.
    """
    try:
        body = checked_json.load(store.read_bytes(key))
        tables = body.get("tables", {}).values()
        return {file["uri"] for table in tables for file in table["files"]}
    except ObjectMissingError:
        return set()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"{store.uri(key)} is damaged ({error}), so what it needs is not known; "
            "nothing was removed. Remove that file if its run is over"
        ) from error


def oldest_kept(
    written: Mapping[int, datetime.datetime], keep: int, limit: datetime.datetime
) -> int:
    """The number of the oldest version that stays: all after it do, so that there is no gap.

    Args:
        written: When each version was written, by number.
        keep: How many of the newest stay whatever their age.
        limit: A version stays that was followed by another then or later.
    """
    numbers = sorted(written)
    followed = itertools.pairwise(numbers)
    kept = [*numbers[-keep:], *(n for n, after in followed if written[after] >= limit)]
    return min(kept, default=0)
