"""The window functions: their types and which of them DuckDB is proven to compute."""

from __future__ import annotations
