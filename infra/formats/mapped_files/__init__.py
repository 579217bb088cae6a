"""Parquet files whose columns are mapped onto those of a table, by field ids or by names.

What tables with logs and manifests share: a task reads the footer of a file, finds the columns of
the table in it, and leaves out deleted rows. The format says which files there are.
"""

from __future__ import annotations
