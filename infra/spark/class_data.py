"""Archives class data of Spark's JVM, so that the next JVM starts faster.

Most of what a new JVM of Spark does in its first seconds is to read, verify and link some 20,000
classes from 300 jars. Java can map them from an archive of an earlier JVM instead ("application
class-data sharing"). The archive lies in this user's cache folder, under a name that follows from
the Java and the jars, and local sessions use it if it is there; without it they start as ever.
Java itself refuses an archive that does not fit, and then loads the classes from the jars.

`python -m stagecoach.infra.spark.class_data` makes the archive if it is missing
(some 30 seconds, 200 MB). The warm Spark of `stagecoach ui` runs that once in the background; who
builds an image of a container can run it there.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stagecoach.infra.config.settings import ENVIRONMENT_PREFIX, EngineSettings
from stagecoach.infra.spark.connect_app import start_service
from stagecoach.infra.spark.connect_conf import TOKEN_VARIABLE, free_port, server_conf, spark_home
from stagecoach.infra.spark.java import cache_folders, ensure_java, is_private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBMIT_VARIABLE = "SPARK_SUBMIT_OPTS"
"""Java options of what `spark-submit` starts here; Spark's own configuration comes after them."""
# The JVM says on its standard output what it cannot share. Nobody needs to know.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
# For a JVM that lives for seconds; the archive is for JVMs with other such options, too.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_DUMP_SECONDS = 300
_WARM_UP_SECONDS = 120
# An archive of a Spark that is still used is made again by its next `stagecoach ui`.
_KEEP_SECONDS = 90 * 24 * 3600
_TABLE = "class_data"
_SQL = f"""
SELECT a.s, sum(a.v) AS v, count(DISTINCT b.v) AS n, max(b.d) AS d,
  rank() OVER (ORDER BY count(*) DESC) AS place
FROM {_TABLE} a JOIN {_TABLE} b ON a.k = b.k LEFT JOIN {_TABLE} c ON b.v = c.v AND c.s > 'x'
WHERE a.v > 1 AND a.s IN (SELECT s FROM {_TABLE} WHERE k < 3)
GROUP BY a.s ORDER BY v DESC LIMIT 5
"""

log = logging.getLogger(__name__)


def archive_options(home: Path) -> str:
    """Options with which a JVM of Spark maps the archive; empty where there is none.

    Args:
        home: The JAVA_HOME that it will start on.
    """
    archive = next((path for path in _places(home) if _is_there(path)), None)
    return "" if archive is None else f"-XX:SharedArchiveFile={archive} -Xshare:auto {_QUIET}"


def _places(home: Path) -> Iterator[Path]:
    """Where the archive for this Java and the Spark of this process may be, best first."""
    name = _name(home)
    for folder in cache_folders():
        # A path with a blank would be two options.
        if name and folder.is_dir() and is_private(folder) and " " not in str(folder):
            yield folder / name


def _is_there(archive: Path) -> bool:
    """Whether it was made: a Java that cannot make one leaves an empty file, and is left alone."""
    return archive.is_file() and archive.stat().st_size > 0


def _name(home: Path) -> str:
    """Names the content: another Java, other jars or another place of them are another archive."""
    parts: list[str] = []
    try:
        library = (home / "lib" / "server" / "libjvm.so").resolve(strict=True)
        jars = Path(spark_home(), "jars")
        for path in (library, *sorted(jars.iterdir())):
            found = path.stat()
            parts.append(f"{path} {found.st_size} {found.st_mtime_ns}")
    except OSError as error:
        log.debug("no class data for %s: %s", home, error)
        return ""
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return f"spark-{digest[:16]}.jsa"


# ------------------------------------------------------------------ making it, a process


def make_archive() -> Path | None:
    """Make the archive if it is missing; None where this machine cannot have one.

    Starts a Spark in this process, which must not have one. Of processes that come together one
    makes it, and the others wait.
    """
    home = ensure_java()
    for folder in cache_folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_private(folder):
                break
    target = next(_places(home), None)
    if target is None:
        return None
    with _alone(target.with_suffix(".lock")):
        if not target.exists():
            _clean_up(target)
            made = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
            _record(made)
            if not made.exists():
                made.touch()
            made.replace(target)
    return target if _is_there(target) else None


def _clean_up(target: Path) -> None:
    """Remove what a maker that was killed has left, and archives that have been there for long."""
    old = time.time() - _KEEP_SECONDS
    for left in (*target.parent.glob(f".{target.name}-*"), *target.parent.glob("spark-*.jsa")):
        if left.name.startswith(".") or left.stat().st_mtime < old:
            left.unlink(missing_ok=True)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with open(lock, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _record(archive: Path) -> None:
    """Start a Spark that writes down its classes when it ends, and use it."""
    given = os.environ.get(SUBMIT_VARIABLE, "")
    os.environ[SUBMIT_VARIABLE] = f"{_BRIEF} {given} -XX:ArchiveClassesAtExit={archive} {_QUIET}"
    token = os.environ[TOKEN_VARIABLE] = secrets.token_urlsafe(32)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    port = free_port()
    with tempfile.TemporaryDirectory(prefix="stagecoach-classes-") as folder:
        settings = EngineSettings(master="local[2]", spill_dir=folder)
        builder = SparkSession.builder
        for name, value in {**server_conf(settings, port), "spark.log.level": "OFF"}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        gateway = session.sparkContext._gateway
        assert gateway is not None
        _use(session, folder)
        start_service(session)
        client = subprocess.run(
            [sys.executable, "-P", "-m", "stagecoach.infra.runtime.stages.warm_up"],
            env={
                **os.environ,
                f"{ENVIRONMENT_PREFIX}REMOTE": f"sc://localhost:{port}",
                TOKEN_VARIABLE: token,
            },
            timeout=_WARM_UP_SECONDS,
            check=False,
        )
        if client.returncode != 0:
            log.warning("the archive will be without the classes of Spark Connect")
        session.stop()
        gateway.shutdown()
        # The end of its input ends the JVM, which then writes the archive.
        process: subprocess.Popen[bytes] = gateway.proc
        assert process.stdin is not None
        process.stdin.close()
        process.wait(_DUMP_SECONDS)


def _use(session: SparkSession, folder: str) -> None:
    """What queries of classic Spark do: files, a join, a window, results as rows and as Arrow."""
    rows = session.range(100).selectExpr(
        "id % 5 AS k", "id AS v", "CAST(id AS STRING) AS s", "DATE '2024-01-01' AS d"
    )
    path = str(Path(folder, _TABLE))
    rows.write.parquet(path)
    session.read.parquet(path).createOrReplaceTempView(_TABLE)
    session.sql(_SQL).toArrow()
    session.sql(f"SELECT s, v FROM {_TABLE} ORDER BY v LIMIT 3").collect()
    rows.mapInArrow(lambda batches: batches, rows.schema).count()


def main() -> int:
    """Make the archive; 1 where that is not possible."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    archive = make_archive()
    if archive is None:
        log.warning("this machine makes no archive of Spark's classes; Spark starts without")
        return 1
    log.info("Spark's classes: %s, %d MB", archive, archive.stat().st_size >> 20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
