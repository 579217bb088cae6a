"""Text files as tables: CSV, JSON lines and plain lines.

A file has no footer: columns are declared in the catalog file, and rows are estimated from bytes. A
task reads a range of bytes as blocks of whole lines (`stagecoach.infra.reading.line_blocks`).
"""

from __future__ import annotations
