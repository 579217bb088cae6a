"""Published tables: immutable Parquet files, numbered versions, and a hint which one is newest."""

from __future__ import annotations
