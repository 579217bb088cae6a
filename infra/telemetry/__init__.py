"""Log lines and metrics for machines to read."""

from __future__ import annotations
