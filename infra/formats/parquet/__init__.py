"""Plain Parquet files: a file, a folder or a glob, described by the files' footers."""

from __future__ import annotations
