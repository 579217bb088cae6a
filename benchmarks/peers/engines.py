"""Which engines are compared, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Peer:
    """An engine that runs SQL over Parquet files on one machine.

    Args:
        name: What the table calls it, and its function in `runner.py`.
        requirements: What pip installs for it, in exact versions.
        dialect: To which sqlglot translates Spark's SQL; None for an engine that reads that.
        rewrites: Whether it gets a copy of the tables without string views.
    """

    name: str
    requirements: tuple[str, ...]
    dialect: str | None
    rewrites: bool = False


_ARROW = "pyarrow==26.0.1"

PEERS = (
    Peer(name="datafusion", requirements=("datafusion==55.0.0", _ARROW), dialect="postgres"),
    Peer(
        name="sail",
        # Its server speaks the protocol of Spark 4.0's clients.
        requirements=("pysail==0.7.2", "pyspark-client==4.0.1", "pandas==2.3.3", _ARROW),
        dialect=None,
    ),
    Peer(
        name="daft",
        requirements=("daft==0.7.26", "pyarrow==25.0.1"),
        dialect="postgres",
        rewrites=True,
    ),
    Peer(name="polars", requirements=("polars==2.1.0", _ARROW), dialect="postgres"),
)
"""In the order of the table. Each is installed by itself: they need other versions than we do."""
