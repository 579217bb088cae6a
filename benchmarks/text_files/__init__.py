"""Text files with hostile contents, read beside `spark.read`."""

from __future__ import annotations
