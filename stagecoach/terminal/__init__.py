"""What people see in a terminal: progress, results, errors, and a clean end after Ctrl-C."""

from __future__ import annotations
