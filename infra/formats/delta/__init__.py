"""Delta tables: folders with data files and a log of versions."""

from __future__ import annotations
