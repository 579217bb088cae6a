"""Run random queries beside plain Spark: `python -m benchmarks.random_queries --queries 10000`.

Each seed is one query and one way to plan it. A line of the log is written for each, so that a
campaign that was stopped resumes where it was. A query that differs is shrunk to a small one over a
few rows. Ends with 1 if there is such a query.
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

from benchmarks.random_queries.campaign import Campaign
from benchmarks.random_queries.trial import BAD
from benchmarks.resuming_log import logged_entries
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.session import get_session, stop_sessions

_RESULT = Path(__file__).parents[1] / "results" / "random_queries.json"
_STEP = 100


def main() -> int:
    """Run the campaign and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--log", type=Path, default=Path("random_queries.jsonl"))
    parser.add_argument("--keep", action="store_true", help="do not shrink queries that differ")
    arguments = parser.parse_args()
    logging.getLogger("stagecoach").setLevel(logging.ERROR)  # of stages that fall back to Spark
    started = time.monotonic()
    done = logged(arguments.log)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC")
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"}
    spark = get_session(EngineSettings(master="local[2]", spark_conf=conf))
    with tempfile.TemporaryDirectory() as folder, arguments.log.open("a", encoding="utf-8") as log:
        campaign = Campaign(spark, Path(folder))
        for seed in range(arguments.seed, arguments.seed + arguments.queries):
            if seed in done:
                continue
            entry = campaign.run(seed, shrinks=not arguments.keep)
            done[seed] = entry["outcome"]
            log.write(json.dumps(entry, ensure_ascii=False) + "\n")
            log.flush()
            if entry["outcome"] in BAD:
                print(json.dumps(entry, ensure_ascii=False, indent=1), flush=True)
            if (seed + 1) % _STEP == 0:
                print(_counts(done), f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    stop_sessions()
    chosen = range(arguments.seed, arguments.seed + arguments.queries)
    counts = Counter(outcome for seed, outcome in done.items() if seed in chosen)
    result = {"seed": arguments.seed, "queries": arguments.queries, "outcomes": dict(counts)}
    _RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 1 if any(outcome in BAD for outcome in counts) else 0


def logged(path: Path) -> dict[int, str]:
    """The outcomes in a log, by seed; a last line that was cut off is removed from it."""
    return {entry["seed"]: entry["outcome"] for entry in logged_entries(path)}


def _counts(done: dict[int, str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in Counter(done.values()).most_common())


if __name__ == "__main__":
    sys.exit(main())
