"""`python -m benchmarks.faults`: see the package."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.faults.campaign import run_campaign
from benchmarks.faults.trial import BAD

# Shares of each group in a campaign of a thousand.
SHARES = {
    "damage": 330,
    "s3_damage": 110,
    "full_disk": 80,
    "network": 330,
    "server_killed": 50,
    "drivers_killed": 100,
}
# Faults of Spark's own processes, which take seconds each. Those of executors need a driver and two
# executor JVMs first: with four other Sparks on two cores 80 s, then 10 to 20 s a kill.
SPARK = {"worker": 15, "executor": 6, "driver": 6}
QUICK = {
    "damage": 7,
    "s3_damage": 2,
    "full_disk": 2,
    "network": 5,
    "server_killed": 1,
    "drivers_killed": 2,
}


def main() -> int:
    """Run a campaign; return 1 where a fault ended as none may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=500, help="how many to meet")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--quick", action="store_true", help="few, without Spark")
    parser.add_argument("--no-spark", action="store_true", help="none of Spark's own processes")
    parser.add_argument("--folder", type=Path, help="where to keep everything; a temporary one")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    logging.getLogger("benchmarks").setLevel(logging.ERROR)
    counts = QUICK if arguments.quick else {
        name: max(1, round(share * arguments.faults / 1000)) for name, share in SHARES.items()
    }  # fmt: skip
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="stagecoach-faults-"))
    started = time.monotonic()
    print(f"seed {arguments.seed}, folder {folder}", flush=True)
    try:
        tally = run_campaign(folder, counts, arguments.seed, lambda line: print(line, flush=True))
        if not arguments.quick and not arguments.no_spark:
            from benchmarks.faults.spark_faults import run_spark_faults

            run_spark_faults(folder / "spark", SPARK, arguments.seed, tally)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(tally.table())
    print("\n".join([*tally.notes, *tally.left_out]))
    bad = tally.total(*BAD)
    met = tally.total()
    print(f"{met} faults in {time.monotonic() - started:.0f} s, {bad} ended as none may")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
