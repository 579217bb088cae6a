"""Tables by name: the catalog file, statistics from Parquet footers, and the snapshot of a run."""

from __future__ import annotations
