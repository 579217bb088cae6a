"""Random histories: `python -m benchmarks.incremental_histories --histories 2000`.

Each seed is one history. A line of the log is written for each, so that a campaign that was stopped
resumes where it was. Ends with 1 if any run differs from one that computes everything, if the last
one differs from plain Spark, or if gc removed what a commit needs.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.incremental_histories.history import History
from benchmarks.resuming_log import logged_entries
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.session import get_session, stop_sessions

_RESULT = Path(__file__).parents[1] / "results" / "incremental_histories.json"
_MEMORY = Path("/dev/shm")
_COUNTED = ("runs", "tasks", "taken_over", "losses", "collections")
_STEP = 50


def main() -> int:
    """Run the campaign and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--log", type=Path, default=Path("incremental_histories.jsonl"))
    parser.add_argument("--result", type=Path, default=_RESULT)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # of losses, which are meant
    started = time.monotonic()
    done = logged(arguments.log)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC")
    conf = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "2g"}
    spark = get_session(EngineSettings(master="local[1]", spark_conf=conf))
    folder = _MEMORY if _MEMORY.is_dir() else None
    seeds = range(arguments.seed, arguments.seed + arguments.histories)
    with arguments.log.open("a", encoding="utf-8") as log:
        for count, seed in enumerate(seeds, 1):
            if seed in done:
                continue
            with tempfile.TemporaryDirectory(dir=folder) as place:
                done[seed] = {"seed": seed, **vars(History(seed, Path(place), spark).verdict())}
            log.write(json.dumps(done[seed]) + "\n")
            log.flush()
            if done[seed]["outcome"] != "equal":
                print(json.dumps(done[seed], indent=1), flush=True)
            if count % _STEP == 0:
                print(count, f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    stop_sessions()
    entries = [done[seed] for seed in seeds]
    outcomes = Counter(entry["outcome"] for entry in entries)
    result = {
        "seed": arguments.seed,
        "histories": arguments.histories,
        "outcomes": dict(outcomes),
        "queries": dict(sorted(Counter(entry["query"] for entry in entries).items())),
        **{name: sum(entry[name] for entry in entries) for name in _COUNTED},
    }
    arguments.result.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result))
    return 0 if set(outcomes) <= {"equal"} else 1


def logged(path: Path) -> dict[int, dict[str, Any]]:
    """The entries of a log, by seed; a last line that was cut off is removed from it."""
    return {entry["seed"]: entry for entry in logged_entries(path)}


if __name__ == "__main__":
    sys.exit(main())
