"""Makes a process stop at a chosen moment of a run, so that a test can kill it there.

Python imports this module at start where its folder is on `PYTHONPATH`: in the driver and in every
Python worker of Spark. `STAGECOACH_TEST_STALL` says when, as JSON:

    {"at": "map_file" | "commit", "manifests": 2, "root": "/…/store", "marker": "/…/stalled"}

As soon as `root` has that many manifests, the next map file stops half written, or the next commit
stops before its manifest. The file `marker` appears, and the process waits to be killed.
"""

from __future__ import annotations

import glob
import json
import os
import time

SETTING = json.loads(os.environ.get("STAGECOACH_TEST_STALL", "null"))


def stall_if_due() -> None:
    pattern = os.path.join(SETTING["root"], "shuffle", "*", "*", "manifest.json")
    if len(glob.glob(pattern)) < SETTING["manifests"]:
        return
    with open(SETTING["marker"], "a", encoding="utf-8") as marker:
        marker.write(f"{os.getpid()}\n")
    time.sleep(3600)


def stall_map_files() -> None:
    from stagecoach.infra.storage import local_store

    write = local_store._Sink.write

    def write_half(self, data):
        half = memoryview(data)[: max(len(data) // 2, 1)]
        if self._uri.endswith(".arrow"):
            write(self, half)
            self._file.flush()
            stall_if_due()
            write(self, memoryview(data)[len(half) :])
            return len(data)
        return write(self, data)

    local_store._Sink.write = write_half


def stall_commits() -> None:
    from stagecoach.infra.shuffle import commit as commits

    commit = commits.commit_manifest

    def commit_late(*args, **kwargs):
        stall_if_due()
        return commit(*args, **kwargs)

    commits.commit_manifest = commit_late


if SETTING is not None:
    {"map_file": stall_map_files, "commit": stall_commits}[SETTING["at"]]()
