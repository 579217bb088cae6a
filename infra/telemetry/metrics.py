"""Prometheus metrics of stages.

Off unless somebody does, and then the client library is not even imported. A run is a process that
soon ends, so nobody can scrape it. There are two ways out:

    PROMETHEUS_MULTIPROC_DIR   the library keeps values in files there, which `MetricsFolder` adds
                               for all processes of the machine (`stagecoach ui --metrics-port`)
    metrics_pushgateway        the process pushes its values to a Prometheus Pushgateway

Only the driver counts; the processes of tasks need nothing.
"""

from __future__ import annotations

import glob
import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stagecoach.infra.host.extras import require_extra
from stagecoach.infra.host.processes import is_running
from stagecoach.infra.storage import secrets

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

log = logging.getLogger(__name__)

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
MAX_NAMES = 500
"""Most queries (or tables) that a process tells apart; all further ones are `other`."""
_OTHER = "other"
_JOB = "stagecoach"
_PUSH_SECONDS = 5.0
_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)
# Name of the file, in the library's scheme, that holds the sums of processes that have ended.
_ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class StageOutcome:
    """What became of a stage.

    Args:
        query: Its query.
        engine: What ran it, or was to run it.
        outcome: `computed`, `reused`, `deferred` or `failed`.
        seconds: Wall time.
        rows: Rows of the output.
        bytes_read: Stored bytes read.
        bytes_written: Stored bytes written.
        saved_bytes: Bytes neither read nor written thanks to reuse.
        saved_seconds: Seconds not spent thanks to reuse.
        fell_back: Whether Spark ran it in place of DuckDB.
        retried: Whether it was not the first try.
    """

    query: str
    engine: str
    outcome: str
    seconds: float = 0.0
    rows: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    saved_bytes: int = 0
    saved_seconds: float = 0.0
    fell_back: bool = False
    retried: bool = False


class StageMetrics:
    """The metrics of this process.

    Args:
        registry: Where they are registered; one of its own by default.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        require_extra("metrics", "prometheus_client", "metrics_pushgateway")
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self.registry = registry or CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"stagecoach_{name}", text, labels, registry=self.registry)

        self._stages = counter("stages", "Stages that ended.", "query", "engine", "outcome")
        self._sums = {
            "rows": counter("rows", "Rows that stages made.", "query"),
            "bytes_read": counter("read_bytes", "Stored bytes that stages read.", "query"),
            "bytes_written": counter("written_bytes", "Stored bytes of their outputs.", "query"),
            "saved_bytes": counter("saved_bytes", "Bytes saved by reuse.", "query"),
            "saved_seconds": counter("saved_seconds", "Seconds saved by reuse.", "query"),
            "fell_back": counter("fallbacks", "Stages that Spark ran for DuckDB.", "query"),
            "retried": counter("retries", "Stages that were tried again.", "query"),
        }
        self._published = counter("published_versions", "Versions of tables.", "table")
        # Without the query: twelve buckets for each would be many series.
        self._seconds = Histogram(
            "stagecoach_stage_seconds",
            "Wall time of stages.",
            ("engine", "outcome"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._names: dict[str, set[str]] = {"query": set(), "table": set()}
        self._lock = threading.Lock()

    def stage(self, outcome: StageOutcome) -> None:
        """Count a stage."""
        query = self._bounded("query", outcome.query)
        self._stages.labels(query, outcome.engine, outcome.outcome).inc()
        self._seconds.labels(outcome.engine, outcome.outcome).observe(outcome.seconds)
        for name, counter in self._sums.items():
            if amount := getattr(outcome, name):
                counter.labels(query).inc(amount)

    def published(self, table: str) -> None:
        """Count a new version of a table."""
        self._published.labels(self._bounded("table", table)).inc()

    def push(self, gateway: str, query: str) -> None:
        """Push all values under the name of the query; a gateway that fails is logged.

        Args:
            gateway: `host:port` or URL of a Prometheus Pushgateway.
            query: The query that has run; what was pushed for it before is replaced.
        """
        from prometheus_client import pushadd_to_gateway

        group = {"query_group": self._bounded("query", query), "instance": socket.gethostname()}
        try:
            pushadd_to_gateway(gateway, _JOB, self.registry, group, timeout=_PUSH_SECONDS)
        except (OSError, ValueError) as error:
            # It may be a URL with a password, which an error may quote.
            text = secrets.redact(f"{gateway}: {error}")
            log.warning("metrics cannot be pushed to %s", text)

    def _bounded(self, label: str, name: str) -> str:
        with self._lock:
            known = self._names[label]
            if name not in known and len(known) >= MAX_NAMES:
                return _OTHER
            known.add(name)
            return name


def metrics_of(gateway: str, environment: Mapping[str, str] | None = None) -> StageMetrics | None:
    """The metrics of this process; None where nobody collects them.

    Args:
        gateway: The setting `metrics_pushgateway`.
        environment: Variables; this process's own by default.
    """
    found = os.environ if environment is None else environment
    return _process_metrics() if gateway or found.get(FOLDER_VARIABLE) else None


@cache
def _process_metrics() -> StageMetrics:
    return StageMetrics()


class MetricsFolder:
    """The sums over all processes that keep their values in a folder; a collector of the library.

    Args:
        folder: The folder, made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """Forget everything: counters begin anew, which Prometheus expects of a restart."""
        for name in self._files():
            Path(name).unlink(missing_ok=True)

    def collect(self) -> Iterator[Metric]:
        """The sums, as a collector of the client library."""
        from prometheus_client.multiprocess import MultiProcessCollector

        with self._lock:
            self.forget_ended()
            found = list(MultiProcessCollector(None, path=str(self._folder)).collect())
        yield from found

    def forget_ended(self) -> None:
        """Add up the files of processes that have ended: every run would leave some for good."""
        for name in self._files():
            kind, _, pid = Path(name).stem.partition("_")
            if pid.isdigit() and not is_running(int(pid)):
                _add_values(name, str(self._folder / f"{kind}_{_ENDED}.db"))
                Path(name).unlink(missing_ok=True)

    def _files(self) -> list[str]:
        return sorted(glob.glob(str(self._folder / "*.db")))


def _add_values(source: str, target: str) -> None:
    from prometheus_client.mmap_dict import MmapedDict

    values = MmapedDict.read_all_values_from_file(source)
    sums = MmapedDict(target)
    try:
        for key, value, timestamp, _ in values:
            before, _ = sums.read_value(key)
            sums.write_value(key, before + value, timestamp)
    finally:
        sums.close()
