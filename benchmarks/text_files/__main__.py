"""Read generated text files beside `spark.read`: `python -m benchmarks.text_files --files 2000`.

Each seed is one file with its options. A file that a task's reader leaves to Spark is counted by
its reason. Ends with 1 if rows differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.text_files.files import make_case
from benchmarks.text_files.trial import DIFFERS, LEFT, try_case
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.session import get_session, stop_sessions

_STEP = 200
_MOST_REASONS = 25


def main() -> int:
    """Run the campaign and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    started = time.monotonic()
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC")
    spark = get_session(EngineSettings(master="local[1]"))
    outcomes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.files):
        case = make_case(seed)
        with tempfile.TemporaryDirectory() as folder:
            outcome = try_case(spark, case, Path(folder))
        outcomes[f"{case.format}: {outcome.kind}"] += 1
        if outcome.kind == LEFT:
            reasons[outcome.detail] += 1
        if outcome.kind == DIFFERS:
            print(f"seed {seed}: {case}\n{outcome.detail}\n", flush=True)
        if (seed + 1) % _STEP == 0:
            print(dict(outcomes), f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    stop_sessions()
    for name, count in sorted(outcomes.items()):
        print(f"{count:8,}  {name}")
    print("left to Spark, most often because:")
    for reason, count in reasons.most_common(_MOST_REASONS):
        print(f"{count:8,}  {reason}")
    return 1 if any(name.endswith(DIFFERS) for name in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
