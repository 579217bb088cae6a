"""Decide which files and rows of a scan cannot matter to a query."""

from __future__ import annotations
