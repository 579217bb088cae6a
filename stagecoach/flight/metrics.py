"""Prometheus metrics of a server; without the client library nothing is counted."""

from __future__ import annotations

from collections.abc import Callable

_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class ServeMetrics:
    """Counts statements and rows.

    Args:
        wanted: Whether anybody asks for them; without, the client library is not imported.
    """

    def __init__(self, *, wanted: bool = False) -> None:
        self.registry = None
        if not wanted:
            return
        from stagecoach.infra.host.extras import require_extra

        require_extra("serve", "prometheus_client", "--health-port")
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = registry = CollectorRegistry()
        self._gauge = Gauge
        self._statements = Counter(
            "stagecoach_serve_statements", "Statements.", ["outcome"], registry=registry
        )
        self._seconds = Histogram(
            "stagecoach_serve_statement_seconds",
            "Time from the arrival of a statement to its result or error.",
            ["outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._rows = Counter("stagecoach_serve_rows", "Rows that were sent.", registry=registry)
        self._bytes = Counter(
            "stagecoach_serve_bytes", "Bytes of rows that were sent.", registry=registry
        )
        self._refused = Counter(
            "stagecoach_serve_refused", "Calls that were refused.", ["why"], registry=registry
        )

    def statement(self, outcome: str, seconds: float) -> None:
        """Count a statement."""
        if self.registry is not None:
            self._statements.labels(outcome).inc()
            self._seconds.labels(outcome).observe(seconds)

    def sent(self, rows: int, num_bytes: int) -> None:
        """Count rows that were sent."""
        if self.registry is not None:
            self._rows.inc(rows)
            self._bytes.inc(num_bytes)

    def refused(self, why: str) -> None:
        """Count a call that was refused."""
        if self.registry is not None:
            self._refused.labels(why).inc()

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Have a number looked up whenever somebody asks."""
        if self.registry is not None:
            gauge = self._gauge(f"stagecoach_serve_{name}", text, registry=self.registry)
            gauge.set_function(value)

    def text(self) -> bytes:
        """Return all values in Prometheus's format."""
        if self.registry is None:
            return b""
        from prometheus_client import generate_latest

        return bytes(generate_latest(self.registry))
