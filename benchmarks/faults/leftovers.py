"""What is left in storage after a fault: commits that are whole, and nothing that nobody needs."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator, Mapping

from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.host.process_folders import sweep_process_folders
from stagecoach.infra.host.processes import is_running
from stagecoach.infra.shuffle.commit import is_lost, load_manifest
from stagecoach.infra.shuffle.manifest import ManifestError
from stagecoach.infra.shuffle.reader import verify_files
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.infra.upkeep.gc import collect_garbage

_ANALYSIS = re.compile(r"analysis/[0-9a-f]{64}\.json")
"""What Spark says of a query, which gc keeps: it is of no run."""
_PROCESS_FOLDER = re.compile(r"stagecoach-(?P<kind>[a-z]+)-(?P<pid>\d+)-\w+")


def lost_commits(store: ObjectStore, commits: Mapping[str, str]) -> Iterator[str]:
    """Commits that are gone or damaged, in words.

    Args:
        store: The storage root.
        commits: Fingerprints by the names of their stages.
    """
    for name, fingerprint in commits.items():
        try:
            manifest = load_manifest(store, fingerprint)
            if manifest is None or is_lost(store, manifest):
                yield f"the commit of {name}"
            else:
                verify_files(store, manifest)
        except (ManifestError, ShuffleReadError) as error:
            yield f"{name}: {error}"


def left_behind(store: ObjectStore, spill_folder: str) -> list[str]:
    """Objects and spilled files that garbage collection leaves of runs that have ended."""
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
    collect_garbage(store, older_than=datetime.timedelta(0), now=later)
    left = [key for key in store.list("") if not _ANALYSIS.fullmatch(key)]
    return left + list(_spilled(spill_folder))


def _spilled(folder: str) -> Iterator[str]:
    """What is left in a spill folder after another process has begun to use it.

    A process that lives has a folder for DuckDB, and one of Spark may still end its last task. Of
    files that processes share, those are left that a living one has locked, and what was checked.
    """
    sweep_process_folders(folder)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if name.startswith(("stagecoach-shared-", "stagecoach-checked-")):
            continue
        match = _PROCESS_FOLDER.fullmatch(name)
        is_ours = match is not None and int(match["pid"]) == os.getpid()
        in_use = match is not None and is_running(int(match["pid"]))
        if not in_use or (is_ours and match is not None and match["kind"] != "duckdb"):
            yield os.path.join(folder, name)
