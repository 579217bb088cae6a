"""Compare our tokens of random texts with Spark's: `python -m benchmarks.lexers --texts 200000`.

Ends with 1 where a text that is not refused is read differently. The result file keeps the counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.lexers.comparison import LexerComparison
from benchmarks.lexers.texts import random_texts
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark.session import get_session, stop_sessions

_RESULT = Path(__file__).parents[1] / "results" / "lexers.json"
_STEP = 10_000
_SHOWN = 20


def main() -> int:
    """Run the comparison and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    spark = get_session(EngineSettings(master="local[1]"))
    comparison = LexerComparison(spark)
    started = time.monotonic()
    found = 0
    for number in range(-(-arguments.texts // _STEP)):
        count = min(_STEP, arguments.texts - number * _STEP)
        texts = list(random_texts(arguments.seed * 1_000_003 + number, count))
        for difference in comparison.differences(texts):
            found += 1
            if found <= _SHOWN:
                print(f"{difference.text!r}\n    {difference.what}")
        counts = comparison.counts
        print(
            f"{counts.texts:,} texts, {counts.refused:,} refused, {counts.parsed:,} parsed, "
            f"{found} differences",
            file=sys.stderr,
        )
    stop_sessions()
    result = {
        "seed": arguments.seed,
        **vars(comparison.counts),
        "differences": found,
        "seconds": round(time.monotonic() - started, 1),
    }
    _RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
