"""What the planner must know of each table format, and the registry through which it finds it."""

from __future__ import annotations
