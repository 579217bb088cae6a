"""`python -m benchmarks.stored_faults`: see the package."""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.stored_faults.campaign import run_campaign, summary
from benchmarks.stored_faults.trial import BAD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULT = Path(__file__).parents[1] / "results" / "stored_faults.json"


def main() -> int:
    """Run a campaign; return 1 where a fault ended as none may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=240, help="how many to meet")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark-every", type=int, default=10, help="0 for none with Spark")
    parser.add_argument("--folder", type=Path, help="of the log, from which a campaign goes on")
    parser.add_argument("--result", type=Path, default=RESULT, help="where to write the counts")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="stagecoach-stored-faults-"))
    started = time.monotonic()

    def spark() -> SparkSession:
        from stagecoach.infra.config.settings import EngineSettings
        from stagecoach.infra.spark.session import get_session

        return get_session(
            EngineSettings(
                storage_root=str(folder / "spark"), master="local[2]", parallelism=2,
                spark_conf={"spark.sql.shuffle.partitions": "2"},
            )
        )  # fmt: skip

    try:
        endings = run_campaign(
            folder,
            arguments.faults,
            arguments.seed,
            spark=spark if arguments.spark_every else None,
            spark_every=arguments.spark_every,
            tell=lambda line: print(line, flush=True),
        )
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    found = summary(endings, arguments.seed)
    text = json.dumps(found, indent=2) + "\n"
    arguments.result.write_text(text, encoding="utf-8")
    print(text, end="")
    bad = sum(ending.ending in BAD for ending in endings)
    seconds = time.monotonic() - started
    print(f"{len(endings)} faults in {seconds:.0f} s, {bad} ended as none may")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
