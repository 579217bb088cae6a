"""DuckDB as an engine inside a task.

Worker code.
"""

from __future__ import annotations
